"""Splits: every graph where it belongs, and nowhere twice."""

import json
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from torch_geometric.data import Data

from tests.paper.small import CYCLES, GRID, experiment
from tfgw.datasets import from_networkx, load, skip_circles
from tfgw.paper.experiment import load_experiment
from tfgw.paper.folds import Fold
from tfgw.paper.isomorphism import isomorphism_groups
from tfgw.paper.plan import plan
from tfgw.paper.protocols import PROTOCOLS, Fair, Paper, TrainAll, get_protocol
from tfgw.paper.published_splits import read_splits, splits_file
from tfgw.paper.records import Record, Records
from tfgw.paper.run_context import RunContext
from tfgw.paper.series import Options, Series

LABELS = np.array([0] * 70 + [1] * 50)


def test_registry() -> None:
    """Each protocol by its name, and the name that its cells and records carry."""
    assert {name: protocol.cell_name for name, protocol in PROTOCOLS.items()} == {
        "fair": "fair",
        "paper": "paper",
        "synthetic": "synthetic",
        "sweep": "fair",
        "timing": "timing",
        "train-all": "train-all",
    }
    with pytest.raises(ValueError, match="protocol 'kfold': unknown; choose one of fair, paper"):
        get_protocol("kfold")


def test_what_protocols_do() -> None:
    """Splits from a file, preprocessing, cells one after the other, deviations over folds, results that take epochs."""
    flags = ("takes_splits", "preprocesses", "runs_alone", "repeats_the_paper", "depends_on_epochs")
    found = {name: [flag for flag in flags if getattr(one, flag)] for name, one in PROTOCOLS.items()}
    assert found == {
        "fair": ["takes_splits", "preprocesses", "depends_on_epochs"],
        "paper": ["preprocesses", "repeats_the_paper", "depends_on_epochs"],
        "synthetic": ["depends_on_epochs"],
        "sweep": ["preprocesses", "depends_on_epochs"],
        "timing": ["runs_alone"],
        "train-all": ["takes_splits", "preprocesses", "depends_on_epochs"],
    }
    assert [name for name, one in PROTOCOLS.items() if not one.shares_graphs] == ["synthetic"]


def test_a_sweep_shares_the_selection_of_fair(tmp_path: Path) -> None:
    """A figure that sweeps a grid and a table that selects from it run these cells once."""
    mine = experiment(tmp_path, GRID, protocol='fair", "sweep')
    fair, sweep = (plan(mine, Options(preset="smoke", protocol=name))[0] for name in mine.protocols)
    assert [cell.key for cell in fair.first_cells()] == [cell.key for cell in sweep.first_cells()]
    assert (fair.total, sweep.total) == (10 * 3 + 10 * 4, 10 * 3)


def test_train_all_trains_on_all_graphs_outside_of_the_folds_of_fair() -> None:
    for fold, of_fair in zip(TrainAll().folds(LABELS, seed=3), Fair().folds(LABELS, seed=3), strict=True):
        used = TrainAll().used(fold)
        assert used.test.tolist() == of_fair.test.tolist()
        assert len(used.validation) == 0
        assert used.train.tolist() == sorted({*range(120)} - {*used.test.tolist()})


def put_accuracies(series: Series, records: Records) -> None:
    """The accuracy of a cell is its fold in thousands and its seed in units, so that each differs."""
    for one in series.first_cells():
        result = {"test_accuracy": 1000 * one.fold + one.seed}
        records.put({"cell": one.as_dict(), "status": "done", "result": result, "run": {}})


def accuracies(groups: list[list[Record]]) -> list[list[float]]:
    return [[record["result"]["test_accuracy"] for record in group] for group in groups]


def test_the_runs_of_a_fold_are_a_group_of_train_all(tmp_path: Path) -> None:
    (series,) = plan(experiment(tmp_path, CYCLES, protocol="train-all"), Options(preset="smoke"))
    records = Records(tmp_path / "results")
    put_accuracies(series, records)
    expected = [[1000 * fold + run for run in (1, 2, 3, 4)] for fold in range(10)]
    assert accuracies(series.protocol.complete_groups(series, records)) == expected
    unfinished = series.first_cells()[9]  # of the third fold
    records.put({"cell": unfinished.as_dict(), "status": "failed", "error": "", "run": {}})
    assert accuracies(series.protocol.complete_groups(series, records)) == expected[:2] + expected[3:]


def test_each_seed_of_a_synthetic_dataset_is_a_group(tmp_path: Path) -> None:
    """The graphs are those that the generator makes of the seed."""
    table = load_experiment("table1")
    series = plan(table, Options(preset="smoke"), datasets=["SKIP-CIRCLES"], models=["gin"])[0]
    records, cells = Records(tmp_path), series.first_cells()
    assert series.protocol.complete_groups(series, records) == []
    for one in cells[1:]:
        records.put({"cell": one.as_dict(), "status": "done", "result": {}, "run": {}})
    assert len(cells) > 1
    found = series.protocol.complete_groups(series, records)
    assert [[record["cell"]["split_seed"] for record in group] for group in found] == [
        [one.split_seed] for one in cells[1:]
    ]
    parts = series.protocol.parts(cells[1], RunContext(results=tmp_path, accelerator="cpu"))
    expected = skip_circles(seed=cells[1].split_seed)
    assert parts.validation is None
    for part, other in ((parts.train, expected.train), (parts.test, expected.test)):
        assert part.y.tolist() == other.y.tolist()
        assert part.edge_index.equal(other.edge_index)
    assert not parts.train.edge_index.equal(skip_circles(seed=cells[0].split_seed).train.edge_index)


def test_units_on_which_models_are_compared() -> None:
    """A hold-out of the paper's protocol has several folds; elsewhere each fold is one."""
    cells = [{"split_seed": seed, "fold": fold} for seed in (0, 3) for fold in (1, 2)]
    assert [Paper().unit(one) for one in cells] == [(0,), (0,), (3,), (3,)]
    assert [Fair().unit(one) for one in cells] == [(0, 1), (0, 2), (3, 1), (3, 2)]


def test_train_all_can_select_no_configuration(tmp_path: Path) -> None:
    two = GRID.replace("[0.5, 0.2, 0.3]", "[0.5, 0.2]")
    assert two != GRID
    mine = experiment(tmp_path, two, protocol="train-all")
    with pytest.raises(ValueError, match="has several configurations, but the protocol train-all does not select one"):
        plan(mine, Options(preset="smoke"))[0].first_cells()


@pytest.mark.parametrize("make", [Paper().folds, Fair().folds])
def test_parts_are_disjoint_and_complete(make, seed: int) -> None:
    folds = make(LABELS, seed=seed)
    assert len(folds) == 10
    for fold in folds:
        assert sorted(np.concatenate(fold)) == list(range(120))
        for part in fold:
            assert abs(LABELS[part].mean() - LABELS.mean()) < 0.1


def test_paper_sizes() -> None:
    """81 / 9 / 10 % of the graphs; one hold-out for all folds, each graph of the rest validates once."""
    folds = Paper().folds(LABELS, seed=0)
    assert {tuple(map(len, fold)) for fold in folds} <= {(97, 11, 12), (98, 10, 12)}
    assert len({tuple(fold.test) for fold in folds}) == 1
    assert len(np.unique(np.concatenate([fold.validation for fold in folds]))) == 108
    assert tuple(Paper().folds(LABELS, seed=1)[0].test) != tuple(folds[0].test)


def test_fair_tests_each_graph_once() -> None:
    folds = Fair().folds(LABELS, seed=0)
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(120))
    assert {len(fold.validation) for fold in folds} == {11}


@pytest.mark.parametrize("make", [Paper().folds, Fair().folds])
def test_groups_stay_together(make, seed: int) -> None:
    groups = np.random.default_rng(seed).integers(60, size=120)
    for fold in make(LABELS, seed=seed, groups=groups):
        parts = [set(groups[part]) for part in fold]
        assert not parts[0] & parts[1]
        assert not parts[0] & parts[2]
        assert not parts[1] & parts[2]
        assert sum(map(len, fold)) == 120


def test_isomorphic_graphs_are_found() -> None:
    """The ring and the two triangles look alike to message passing, but only one of them is connected."""
    ring, triangles = nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    shuffled = nx.relabel_nodes(ring, {0: 3, 3: 1, 1: 0})
    graphs = [ring, triangles, nx.Graph(shuffled), nx.path_graph(6), triangles.copy()]
    groups = isomorphism_groups(from_networkx(graphs, features="constant"))
    assert groups.tolist() == [0, 1, 0, 2, 1]


@pytest.mark.skipif(not os.environ.get("TFGW_DATA"), reason="needs TFGW_DATA, a folder with the TU archives")
@pytest.mark.parametrize("name", ["MUTAG", "PTC_MR"])
def test_isomorphic_graphs_of_real_data(name: str) -> None:
    """The groups that networkx finds."""
    dataset = load(name)
    graphs = [as_networkx(graph) for graph in dataset]
    same_label = nx.isomorphism.categorical_node_match("label", None)
    firsts: dict[str, list[int]] = {}
    expected = []
    for number, graph in enumerate(graphs):
        alike = firsts.setdefault(nx.weisfeiler_lehman_graph_hash(graph, node_attr="label"), [])
        match = (other for other in alike if nx.is_isomorphic(graph, graphs[other], node_match=same_label))
        expected.append(next(match, number))
        if expected[-1] == number:
            alike.append(number)
    found = isomorphism_groups(dataset)
    assert len(np.unique(found)) == len(set(expected)) == len(set(zip(found.tolist(), expected, strict=True)))


def as_networkx(data: Data) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from((node, {"label": int(label)}) for node, label in enumerate(data.x.argmax(1)))
    graph.add_edges_from(data.edge_index.T.tolist())
    return graph


def write_splits(path: Path, folds: list[Fold]) -> Path:
    """As Errica et al. published theirs."""
    entries = [
        {"test": test.tolist(), "model_selection": [{"train": train.tolist(), "validation": validation.tolist()}]}
        for train, validation, test in folds
    ]
    path.write_text(json.dumps(entries))
    return path


@pytest.mark.parametrize("inner", [1, 3])
def test_published_splits(tmp_path: Path, inner: int) -> None:
    """Of several divisions of the graphs outside of a test fold the first is used."""
    folds = Fair().folds(LABELS, seed=3)
    path = write_splits(tmp_path / "splits.json", folds)
    entries = json.loads(path.read_text())
    for entry in entries:
        (first,) = entry["model_selection"]
        swapped = {"train": first["validation"], "validation": first["train"]}
        entry["model_selection"] += [swapped] * (inner - 1)
    path.write_text(json.dumps(entries))
    found = read_splits(path, num_graphs=120)
    for one, other in zip(found, folds, strict=True):
        for part, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, expected)


def test_a_file_of_splits_is_named_or_found_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "MUTAG_splits.json"
    path.touch()
    assert splits_file(path, "NCI1") == splits_file(tmp_path, "MUTAG") == path
    assert splits_file(tmp_path, "NCI1") is None  # it has folds of its own
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"NCI1_splits\.json: no such file of splits"):
        splits_file(tmp_path, "NCI1")


def test_wrong_splits_are_refused(tmp_path: Path) -> None:
    folds = Fair().folds(LABELS, seed=3)
    path = tmp_path / "splits.json"
    with pytest.raises(ValueError, match="fold 0: contains a graph outside 0 to 99"):
        read_splits(write_splits(path, folds), num_graphs=100)
    with pytest.raises(ValueError, match="contains a graph outside 0 to 118"):
        read_splits(path, num_graphs=119)
    negative = folds[0]._replace(test=np.array([-1, *folds[0].test[1:]]))
    with pytest.raises(ValueError, match="fold 0: contains a graph outside 0 to 119"):
        read_splits(write_splits(path, [negative, *folds[1:]]), num_graphs=120)
    with pytest.raises(ValueError, match="expected 10 folds, found 9"):
        read_splits(write_splits(path, folds[:9]), num_graphs=120)
    twice = folds[4]._replace(validation=folds[4].test)
    with pytest.raises(ValueError, match="fold 4: a graph is in two parts"):
        read_splits(write_splits(path, [*folds[:4], twice, *folds[5:]]), num_graphs=120)
    empty = folds[6]._replace(validation=folds[6].validation[:0])
    with pytest.raises(ValueError, match="fold 6: one of train, validation, test is empty"):
        read_splits(write_splits(path, [*folds[:6], empty, *folds[7:]]), num_graphs=120)
    for wrong in (1.5, True, 10**30, "3", [4]):
        entries = json.loads(write_splits(path, folds).read_text())
        entries[2]["test"][0] = wrong
        path.write_text(json.dumps(entries))
        with pytest.raises(ValueError, match=r"splits\.json: not a file of splits"):
            read_splits(path, num_graphs=120)
    path.write_text('{"test": 1}')
    with pytest.raises(ValueError, match="not a file of splits"):
        read_splits(path, num_graphs=120)
