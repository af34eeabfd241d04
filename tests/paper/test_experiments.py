"""The paper's experiments as data."""

import hashlib
import os
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.paper.small import write_experiment
from tfgw.datasets import load
from tfgw.datasets.synthetic import GENERATORS
from tfgw.paper.experiment import CLASSES, PRESETS, UNITS, load_experiment, names, select
from tfgw.paper.plan import plan
from tfgw.paper.series import Options
from tfgw.train.recipes import RECIPES


@pytest.mark.parametrize("name", names())
def test_every_experiment_can_be_planned(name: str) -> None:
    experiment = load_experiment(name)
    for preset in PRESETS if experiment.needs_runs else ():
        for protocol in experiment.protocols:
            series = plan(experiment, Options(preset=preset, protocol=protocol))
            rows = [row for row in experiment.rows if not row.protocols or protocol in row.protocols]
            assert len(series) == len(rows) * len(experiment.datasets)
            for one in series:
                assert (one.total > 0) == (one.row.path is not None and one.not_run is None)


def test_the_grid_of_the_paper() -> None:
    """K = β·classes with β in {2, 4, 6, 8} (ENZYMES {1, 2, 3, 4}), two widths for bio data, three dropouts."""
    table = load_experiment("table2")
    row = table.rows[0]
    found = table.configurations(row, "MUTAG", "full")
    assert len(found) == 4 * 2 * 3
    assert {one["num_templates"] for one in found} == {4, 8, 12, 16}
    assert {one["width"] for one in found} == {16, 32}
    assert {one["dropout"] for one in found} == {0.0, 0.2, 0.5}
    assert {one["num_templates"] for one in table.configurations(row, "ENZYMES", "full")} == {6, 12, 18, 24}
    social = table.configurations(row, "COLLAB", "full")
    assert {one["width"] for one in social} == {64}
    assert {one["num_templates"] for one in social} == {6, 12, 18, 24}
    assert {one["epochs"] for one in found} == {500}
    assert len(table.configurations(row, "MUTAG", "quick")) == 1


def test_cells_of_the_protocols() -> None:
    table = load_experiment("table2")
    chosen = {"datasets": ["MUTAG"], "models": ["tfgw-adj"]}
    assert plan(table, Options(), **chosen)[0].total == 10 * 3
    assert plan(table, Options(protocol="paper"), **chosen)[0].total == 3 * 10
    assert plan(table, Options(preset="full"), **chosen)[0].total == 24 * 10 + 10 * 3
    assert plan(table, Options(preset="full", protocol="paper"), **chosen)[0].total == 20 * 24 * 10


VARIANTS = {
    "tfgw": {},
    "tfgw-self-loops": {"self_loops": True},
    "tfgw-free-diagonal": {"free_diagonal": True},
    "tfgw-balanced-batches": {"balanced_batches": True},
    "tfgw-evaluated-selection": {"selection": "evaluated"},
    "tfgw-single-dropout": {"single_dropout": True},
    "tfgw-relu": {"activation": True},
}


def test_the_reproduction_has_every_variant_alone_and_all_together() -> None:
    """Everything else is the same in all rows, and the plain row is the benchmark's."""
    found = load_experiment("reproduction")
    rows = {row.model: row for row in found.rows}
    everything = {name: value for changes in VARIANTS.values() for name, value in changes.items()}
    without_templates = {name: value for name, value in everything.items() if name != "free_diagonal"}
    expected = VARIANTS | {"tfgw-all": everything, "gin": {}, "gin-all": without_templates}
    assert rows.keys() == expected.keys()
    for dataset, preset in product(found.datasets, ("quick", "full")):
        plain = {model: found.configurations(rows[model], dataset, preset)[0] for model in ("tfgw", "gin")}
        assert all(configuration["dropout"] > 0 for configuration in plain.values())
        for model, changes in expected.items():
            (configuration,) = found.configurations(rows[model], dataset, preset)
            assert configuration.pop("recipe", {}) == changes
            assert configuration == plain[model.partition("-")[0]]
    table = load_experiment("table2")
    benchmark = {row.model: row for row in table.rows}
    for model, same in (("tfgw", "tfgw-adj"), ("gin", "gin")):
        for dataset in found.datasets:
            (configuration,) = found.configurations(rows[model], dataset, "full")
            assert configuration in table.configurations(benchmark[same], dataset, "full")
            assert rows[model].paper[dataset] == benchmark[same].paper[dataset]


def test_the_reproduction_has_many_holdouts() -> None:
    found = load_experiment("reproduction")
    for one in plan(found, Options(preset="full")):
        assert (one.protocol.name, one.sizes["holdouts"], one.sizes["folds"]) == ("paper", 50, 10)
        assert one.configurations[0]["epochs"] == 500
    for one in plan(found, Options()):
        assert (one.sizes["holdouts"], one.sizes["folds"]) == (20, 1)


def test_a_model_that_is_not_run_has_a_reason_and_no_cells(tmp_path: Path) -> None:
    reason = """not_run = [
        { datasets = ['MUTAG'], presets = ['smoke'], reason = 'too large' },
        { datasets = ['PTC_MR'], presets = ['full'], reason = 'too slow' },
        { datasets = ['NCI1', 'COLLAB'], reason = 'no labels' },
    ]"""
    path = write_experiment(tmp_path, f'class = "tfgw.baselines:GIN"\n{reason}\n', presets="folds = 3")
    names = 'datasets = ["MUTAG", "PTC_MR", "NCI1"]'
    path.write_text(re.sub("^datasets = .*", names, path.read_text(), flags=re.MULTILINE))
    mine = load_experiment(str(path))
    found = {preset: plan(mine, Options(preset=preset)) for preset in PRESETS}
    reasons = {preset: [one.not_run for one in series] for preset, series in found.items()}
    assert reasons == {
        "smoke": ["too large", None, "no labels"],
        "quick": [None, None, "no labels"],
        "full": [None, "too slow", "no labels"],
    }
    missing, planned, _ = found["smoke"]
    assert (missing.has_cells, missing.total, missing.first_cells()) == (False, 0, [])
    assert (planned.has_cells, planned.total) == (True, 3 * 4)


def test_a_reason_names_known_presets(tmp_path: Path) -> None:
    reason = "not_run = [{ datasets = ['MUTAG'], presets = ['quik'], reason = 'too slow' }]"
    path = write_experiment(tmp_path, f'class = "tfgw.baselines:GIN"\n{reason}\n')
    with pytest.raises(ValueError, match="not_run: preset 'quik': unknown; choose from smoke, quick, full"):
        load_experiment(str(path))


def test_the_benchmark_has_both_recipes_on_every_dataset() -> None:
    """Rows of the default recipe are those of the experiment `recipe`: their cells are equal and are run once."""
    table, recipe = load_experiment("table2"), load_experiment("recipe")
    same = {"tfgw-kernel": "tfgw-kernel"}
    same |= {f"{model}-default": model for model in ("tfgw", "gin", "dropgin", "ot-gnn", "diffpool")}
    assert same.keys() <= {row.model for row in table.rows}
    assert table.datasets == recipe.datasets
    for preset, dataset in product(("quick", "full"), table.datasets):
        options = Options(preset=preset)
        ours = {one.row.model: one for one in plan(table, options, datasets=[dataset], models=list(same))}
        theirs = {one.row.model: one for one in plan(recipe, options, datasets=[dataset])}
        for model, other in same.items():
            keys = [cell.key for cell in ours[model].first_cells()]
            assert keys == [cell.key for cell in theirs[other].first_cells()]
            assert len(keys) == 10 * (1 if model == "tfgw-kernel" else 3 if preset == "quick" else 10)
    with pytest.raises(ValueError, match="model 'gin-default': not in this experiment"):
        plan(table, Options(protocol="paper"), models=["gin-default"])


def test_a_row_like_one_of_another_experiment_changes_what_it_names(tmp_path: Path) -> None:
    """It keeps the presets of that experiment, which come before those of its own."""
    path = write_experiment(tmp_path, 'like = "table1/dropgin"\nnote = "mine"\n', presets="folds = 7")
    (row,) = load_experiment(str(path)).rows
    table = load_experiment("table1")
    (other,) = (one for one in table.rows if one.model == "dropgin")
    assert (row.model, row.title, row.note) == ("it", "It", "mine")
    assert (row.path, row.fixed, row.paper) == (other.path, other.fixed, other.paper)
    assert row.presets == {preset: table.presets[preset] | other.presets.get(preset, {}) for preset in PRESETS}
    for name, message in {
        "table9/gin": "'table9' is not an experiment of the paper",
        "table1/gat": "table1 has no such row",
    }.items():
        path.write_text(path.read_text().replace("table1/dropgin", name))
        with pytest.raises(ValueError, match=f"like = '{name}': {message}"):
            load_experiment(str(path))
        path.write_text(path.read_text().replace(name, "table1/dropgin"))


def test_values_by_dataset_need_an_entry_or_a_default(tmp_path: Path) -> None:
    """An entry of the dataset comes before that of its kind, and that before the default."""

    def width(dataset: str, entries: str) -> int:
        model = f'class = "tfgw.baselines:GIN"\nfixed = {{ width = {{ {entries} }} }}\n'
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        mine = load_experiment(str(write_experiment(folder, model)))
        (configuration,) = mine.configurations(mine.rows[0], dataset, "smoke")
        return configuration["width"]

    assert width("MUTAG", "MUTAG = 3, bio = 4, default = 5") == 3
    assert width("PTC_MR", "MUTAG = 3, bio = 4, default = 5") == 4
    assert width("IMDB-BINARY", "MUTAG = 3, bio = 4, default = 5") == 5
    with pytest.raises(ValueError, match="no value for IMDB-BINARY and no default"):
        width("IMDB-BINARY", "MUTAG = 3, bio = 4")


def test_templates_per_class_need_known_classes(tmp_path: Path) -> None:
    model = 'class = "tfgw.estimators:TFGWClassifier"\nfixed = { templates_per_class = 4 }\n'
    mine = load_experiment(str(write_experiment(tmp_path, model)))
    (configuration,) = mine.configurations(mine.rows[0], "ENZYMES", "smoke")
    assert configuration["num_templates"] == 4 * 6
    with pytest.raises(ValueError, match="templates_per_class: the classes of SHAPES are not known"):
        mine.configurations(mine.rows[0], "SHAPES", "smoke")


@pytest.mark.skipif(not os.environ.get("TFGW_DATA"), reason="needs TFGW_DATA, a folder with the TU archives")
@pytest.mark.parametrize("name", sorted(CLASSES.keys() - GENERATORS.keys() - {"COLLAB"}))  # which takes long to load
def test_classes_of_real_datasets(name: str) -> None:
    assert load(name).num_classes == CLASSES[name]


@pytest.mark.parametrize("name", GENERATORS)
def test_classes_of_generated_datasets(name: str) -> None:
    assert GENERATORS[name](seed=0).train.num_classes == CLASSES[name]


def test_accuracies_are_shown_in_percent_or_as_fractions() -> None:
    assert (UNITS["percent"].show(0.87654), UNITS["fraction"].show(0.87654)) == ("87.7", "0.88")
    assert UNITS["percent"].show(None) == UNITS["fraction"].show(None) == "-"


def test_an_experiment_like_another_changes_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text('like = "table2"\ntitle = "Short"\ndatasets = ["NCI1"]\n')
    mine, theirs = load_experiment(str(path)), load_experiment("table2")
    assert (mine.name, mine.title, mine.datasets) == ("short", "Short", ("NCI1",))
    assert (mine.rows, mine.protocols, mine.presets) == (theirs.rows, theirs.protocols, theirs.presets)
    path.write_text('like = "table9"\n')
    with pytest.raises(ValueError, match=r"invalid file: .*like = 'table9': not an experiment of the paper"):
        load_experiment(str(path))


def test_settings_of_a_model_come_before_those_of_the_experiment(tmp_path: Path) -> None:
    model = 'class = "tfgw.baselines:GIN"\npresets = { smoke = { folds = 3, runs = { default = 2, social = 5 } } }\n'
    mine = load_experiment(str(write_experiment(tmp_path, model, presets="folds = 7\nholdouts = 6\ngraphs = 0")))

    def sizes(dataset: str) -> list[int]:
        return [mine.setting(mine.rows[0], dataset, "smoke", name) for name in ("folds", "holdouts", "runs", "epochs")]

    assert (sizes("MUTAG"), sizes("COLLAB")) == ([3, 6, 2, 1], [3, 6, 5, 1])


def test_configurations_are_all_combinations_in_the_order_of_the_grid(tmp_path: Path) -> None:
    """The preset smoke has the grid of quick, which another preset does not have."""
    model = 'class = "tfgw.baselines:GIN"\ngrid = { quick = { width = [5, 4], dropout = [0.5, 0.0] } }\n'
    mine = load_experiment(str(write_experiment(tmp_path, model)))
    for preset in ("smoke", "quick"):
        found = mine.configurations(mine.rows[0], "MUTAG", preset)
        assert [(one["width"], one["dropout"]) for one in found] == [(5, 0.5), (5, 0.0), (4, 0.5), (4, 0.0)]
        assert {one["epochs"] for one in found} == {mine.setting(mine.rows[0], "MUTAG", preset, "epochs")}
        assert all(list(one) == sorted(one) for one in found)
    assert mine.configurations(mine.rows[0], "MUTAG", "full") == [{"epochs": 500}]


def test_selected_names_keep_the_order_of_the_experiment() -> None:
    assert select(["a", "b", "c"], ["c", "a"], "model") == ["a", "c"]
    assert select(["a", "b"], None, "model") == select(["a", "b"], [], "model") == ["a", "b"]


def test_options_reach_every_cell(tmp_path: Path) -> None:
    """What decides a result is part of the cell: grouping, the file of splits, what is collected, the graphs."""
    path = tmp_path / "splits.json"
    path.write_text("[]")
    model = 'class = "tfgw.baselines:GIN"\ncollect = "embedding"\n'
    mine = load_experiment(str(write_experiment(tmp_path, model, presets="folds = 2\ngraphs = 20")))
    (grouped,), (divided,) = (
        plan(mine, options) for options in (Options(preset="smoke", grouped=True), Options(preset="smoke", splits=path))
    )
    for cell in grouped.first_cells():
        assert (cell.grouped, cell.splits, cell.graphs, cell.collect) == (True, None, 20, "embedding")
        assert (cell.model, cell.protocol, cell.dataset) == ("tfgw.baselines:GIN", "fair", grouped.dataset)
    digest = hashlib.sha256(b"[]").hexdigest()
    for cell in divided.first_cells():
        assert (cell.grouped, cell.splits, cell.graphs) == (False, digest, None)
    for options in (Options(splits=path, protocol="paper"), Options(splits=path, grouped=True)):
        with pytest.raises(ValueError, match="splits: only supported for the protocol 'fair' or 'train-all'"):
            plan(load_experiment("table2"), options)


def test_which_splits_a_cell_uses(tmp_path: Path) -> None:
    """Published ones if the experiment names them, the protocol supports them and all graphs are used."""
    table = load_experiment("table2")
    assert len(set(table.splits.values())) == 6
    assert table.datasets == ("MUTAG", "PTC_MR", *table.splits)
    assert load_experiment("recipe").splits == load_experiment("table4").splits == table.splits
    assert load_experiment("check-epochs").splits == {}

    def used(dataset: str, **options: Any) -> str | None:
        found = plan(table, Options(**options), datasets=[dataset], models=["gin"])
        (splits,) = {cell.splits for one in found for cell in one.first_cells()}
        return splits

    assert used("NCI1") == used("NCI1", preset="full") == table.splits["NCI1"]
    assert used("MUTAG") is None
    for options in ({"own_folds": True}, {"grouped": True}, {"preset": "smoke"}, {"protocol": "paper"}):
        assert used("NCI1", **options) is None
    (tmp_path / "NCI1_splits.json").write_text("[]")
    assert used("NCI1", splits=tmp_path) == hashlib.sha256(b"[]").hexdigest()
    with pytest.raises(ValueError, match="splits: cannot be combined with folds of our own"):
        used("NCI1", splits=tmp_path, own_folds=True)
    path = write_experiment(tmp_path, 'class = "tfgw.baselines:GIN"\n')
    path.write_text('splits = "theirs"\n' + path.read_text())
    with pytest.raises(ValueError, match="splits = 'theirs': must be 'own' or 'published'"):
        load_experiment(str(path))


def test_statistics_need_no_runs() -> None:
    tables = [load_experiment(name) for name in names()]
    (statistics, *_) = [table for table in tables if not table.needs_runs]
    with pytest.raises(ValueError, match=f"{statistics.name} needs no runs; use 'tfgw paper show'"):
        plan(statistics, Options())


def test_accuracies_of_the_paper_are_beside_ours() -> None:
    """Table 1 of the paper: mean and standard deviation."""
    rows = {row.model: row for row in load_experiment("table1").rows}
    assert rows["tfgw-fix"].paper == {"4-CYCLES": (0.63, 0.11), "SKIP-CIRCLES": (1.0, 0.0)}
    assert rows["dropgin"].paper == {"4-CYCLES": (1.0, 0.01), "SKIP-CIRCLES": (0.82, 0.28)}
    published = [row for row in load_experiment("table2").rows if row.paper]
    assert len(published) > 5


def test_tables_share_cells() -> None:
    """The ablation's L = 2 is the benchmark's TFGW: it is run once."""
    two, four = load_experiment("table2"), load_experiment("table4")
    (one,) = plan(two, Options(), datasets=["MUTAG"], models=["tfgw-adj"])
    (other,) = plan(four, Options(), datasets=["MUTAG"], models=["l2-adj"])
    assert [cell.key for cell in one.first_cells()] == [cell.key for cell in other.first_cells()]


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="no experiment 'table9'"):
        load_experiment("table9")
    with pytest.raises(ValueError, match="model 'gat': not in this experiment"):
        plan(load_experiment("table2"), Options(), models=["gat"])
    with pytest.raises(ValueError, match="protocol 'kfold'"):
        plan(load_experiment("table2"), Options(protocol="kfold"))


def test_a_recipe_is_part_of_a_cell_in_full() -> None:
    """A record must not hold for what the name of a recipe means later."""
    experiment = load_experiment("recipe")
    rows = {row.model: row for row in experiment.rows}
    (configuration,) = experiment.configurations(rows["tfgw"], "MUTAG", "quick")
    assert configuration == {"recipe": RECIPES["default"]}  # and no epochs, which are the recipe's
    (without_layer,) = experiment.configurations(rows["gin"], "MUTAG", "quick")
    assert without_layer["recipe"] == {k: v for k, v in RECIPES["default"].items() if k != "training_tol"}
    (configuration,) = experiment.configurations(rows["gin"], "MUTAG", "smoke")
    assert configuration["epochs"] == 2
    (configuration,) = experiment.configurations(rows["tfgw-paper"], "ENZYMES", "quick")
    assert configuration == {"num_templates": 24, "recipe": "paper"}
