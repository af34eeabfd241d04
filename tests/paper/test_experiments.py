"""The paper's experiments as data."""

from pathlib import Path

import pytest

from tests.paper.small import write_experiment
from tfgw.paper.experiment import PRESETS, load_experiment, names
from tfgw.paper.plan import plan
from tfgw.paper.series import Options
from tfgw.train.recipes import RECIPES


@pytest.mark.parametrize("name", names())
def test_every_experiment_can_be_planned(name: str) -> None:
    experiment = load_experiment(name)
    for preset in PRESETS if experiment.needs_runs else ():
        for protocol in experiment.protocols:
            series = plan(experiment, Options(preset=preset, protocol=protocol))
            assert len(series) == len(experiment.rows) * len(experiment.datasets)
            for one in series:
                assert (one.total > 0) == (one.row.path is not None)


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
    (configuration,) = experiment.configurations(rows["gin"], "MUTAG", "quick")
    assert configuration == {"recipe": RECIPES["default"]}  # and no epochs, which are the recipe's
    (configuration,) = experiment.configurations(rows["gin"], "MUTAG", "smoke")
    assert configuration["epochs"] == 2
    (configuration,) = experiment.configurations(rows["tfgw-paper"], "ENZYMES", "quick")
    assert configuration == {"num_templates": 24, "recipe": "paper"}
