"""A trained model serves graphs it has never seen: any of them, in any order, however their nodes are numbered."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_cli import write_tu_folder
from tfgw.cli import main
from tfgw.datasets import load, random_split, save
from tfgw.datasets.cache import cached_tables
from tfgw.datasets.graph_tables import GraphTables, starts
from tfgw.datasets.tu_files import open_files
from tfgw.train import load_model, save_model
from tfgw.train.model_file import KIND
from tfgw.train.tensor_file import read_tensors, write_tensors

pytestmark = pytest.mark.usefixtures("workplace")

FOLDER = os.environ.get("TFGW_DATA")
QUICK = ["--epochs", "2", "--accelerator", "cpu", "--estimators", "1", "--templates", "4", "--template-nodes", "6"]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("tfgw: error: ")


def renumbered(tables: GraphTables, graphs: np.ndarray, rng: np.random.Generator) -> GraphTables:
    """These graphs in this order, without targets, the nodes of each in a random order."""
    first_node, first_edge = starts(tables.node_counts), starts(tables.edge_counts)
    nodes, edges = [], []
    for graph in graphs:
        order = rng.permutation(tables.node_counts[graph])
        nodes.append(first_node[graph] + order)
        part = tables.edges[:, first_edge[graph] : first_edge[graph] + tables.edge_counts[graph]]
        edges.append(np.argsort(order)[part][:, rng.permutation(part.shape[1])])
    rows = np.concatenate(nodes)
    return GraphTables(
        node_counts=tables.node_counts[graphs],
        edge_counts=tables.edge_counts[graphs],
        edges=np.concatenate(edges, axis=1),
        node_labels=None if tables.node_labels is None else tables.node_labels[rows],
        node_attributes=None if tables.node_attributes is None else tables.node_attributes[rows],
    )


def check_that_a_part_is_predicted_as_in_the_whole(
    capsys: pytest.CaptureFixture[str], dataset: str, *options: str, graphs: int
) -> None:
    answer(capsys, "train", "--dataset", dataset, *QUICK, *options, "--output", "run")
    tables = cached_tables(open_files(dataset))
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(tables.node_counts))[:graphs]
    part = str(save(renumbered(tables, chosen, rng), "part"))
    whole = answer(capsys, "predict", "run", "--dataset", dataset)["predictions"]
    alone = answer(capsys, "predict", "run", "--dataset", f"./{part}")["predictions"]
    assert len({entry["probability"] for entry in alone}) > 1
    for place, graph in enumerate(chosen.tolist()):
        assert alone[place] == whole[graph] | {"graph": place, "label": None}
    distances = answer(capsys, "embed", "run", "--dataset", dataset)["distances"]
    assert answer(capsys, "embed", "run", "--dataset", f"./{part}")["distances"] == [distances[i] for i in chosen]


def with_attributes(folder: Path) -> Path:
    """Give the nodes attributes that tell little, and a label that the first graphs do not have."""
    tables = cached_tables(open_files(folder))
    rng, nodes = np.random.default_rng(1), int(tables.node_counts.sum())
    (folder / f"{folder.name}_node_attributes.txt").write_text(
        "".join(f"{v!r}\n" for v in rng.normal(size=nodes).tolist())
    )
    labels = tables.node_labels[:, 0].copy()
    labels[-1] = 8
    (folder / f"{folder.name}_node_labels.txt").write_text("".join(f"{label}\n" for label in labels))
    return folder


@pytest.mark.parametrize("features", ["auto", "labels", "both", "degree", "degree_scalar", "constant"])
def test_a_part_is_predicted_as_in_the_whole(
    workplace: Path, capsys: pytest.CaptureFixture[str], features: str
) -> None:
    folder = with_attributes(write_tu_folder(workplace / "MINE"))
    check_that_a_part_is_predicted_as_in_the_whole(capsys, str(folder), "--features", features, graphs=7)


@pytest.mark.skipif(not FOLDER, reason="TFGW_DATA names no folder with the real datasets")
@pytest.mark.parametrize("name", ["MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY"])
def test_a_part_of_real_data_is_predicted_as_in_the_whole(capsys: pytest.CaptureFixture[str], name: str) -> None:
    check_that_a_part_is_predicted_as_in_the_whole(capsys, f"{FOLDER}/{name}.zip", graphs=50)


@pytest.fixture
def run(workplace: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A model of labels 0 and 1."""
    answer(capsys, "train", "--dataset", str(write_tu_folder(workplace / "MINE")), *QUICK, "--output", "run")
    return workplace / "run"


def change_labels(folder: Path, count: int) -> None:
    path = folder / f"{folder.name}_node_labels.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([str(20 + i) for i in range(count)] + lines[count:]) + "\n")


def test_unseen_labels_are_reported(workplace: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_tu_folder(workplace / "OTHER", graphs=4)
    change_labels(other, 6)
    report = "6 of 19 nodes (in 2 graphs) have a label unknown to the model: 20, 21, 22, 23, 24, ..."
    for command in ("predict", "embed", "check", "evaluate"):
        assert main([command, str(run), "--dataset", str(other)]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line == f"tfgw: warning: OTHER: {report}; their one-hot features are all 0"
        assert answer(capsys, command, str(run), "--dataset", str(other))["unseen_labels"] == {
            "what": "label",
            "nodes": 6,
            "of_nodes": 19,
            "graphs": 2,
            "num_labels": 6,
            "labels": [20, 21, 22, 23, 24],
        }
    assert answer(capsys, "predict", str(run))["unseen_labels"] is None


def test_graphs_of_another_kind_are_refused(workplace: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_tu_folder(workplace / "OTHER", graphs=4)
    arguments = ["predict", str(run), "--dataset", str(other)]
    change_labels(other, 10)
    assert "10 of 19 nodes (in 3 graphs) have a label unknown to the model: 20" in failure(capsys, *arguments)
    (other / "OTHER_node_labels.txt").rename(other / "OTHER_node_attributes.txt")
    assert failure(capsys, *arguments) == "OTHER: the model requires node labels, but the graphs have only attributes"
    (other / "OTHER_node_attributes.txt").unlink()
    assert failure(capsys, *arguments) == "OTHER: the model requires node labels, but the graphs have none"
    (other / "OTHER_node_labels.txt").write_text("0, 1\n" * 19)
    message = "OTHER: the model requires 1 column of node labels, but the graphs have 2"
    assert failure(capsys, *arguments) == message
    assert "load the dataset with the model's method load" in failure(
        capsys, "predict", str(run), "--dataset", "4-CYCLES"
    )


def test_a_file_of_an_earlier_version_serves_its_own_data(
    workplace: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = answer(capsys, "predict", str(run), "--dataset", "./MINE")
    tensors, description = read_tensors(run / "model.safetensors", kind=KIND)
    del description["encoding"]
    write_tensors(run / "model.safetensors", tensors, description, kind=KIND)
    assert answer(capsys, "predict", str(run), "--dataset", "./MINE") == expected
    answer(capsys, "evaluate", str(run))
    other = write_tu_folder(workplace / "OTHER", graphs=4)
    assert failure(capsys, "predict", str(run), "--dataset", str(other)).endswith("train it again")


def test_a_split_that_cannot_be_made_again_is_refused(
    workplace: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workplace / "MINE" / "MINE_graph_labels.txt").unlink()
    assert "MINE: has changed since the model was trained" in failure(capsys, "evaluate", str(run))
    assert len(answer(capsys, "predict", str(run), "--dataset", "./MINE")["predictions"]) == 20


def test_graphs_of_training_are_recognised_elsewhere(
    workplace: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held_out = answer(capsys, "evaluate", str(run))
    shutil.copytree("MINE", "COPY")
    assert answer(capsys, "evaluate", str(run), "--dataset", "./COPY") == held_out
    assert answer(capsys, "evaluate", str(run), "--dataset", "./COPY", "--all")["graphs"] == 20
    save(load("./MINE")[:7], "SEVEN")
    assert answer(capsys, "evaluate", str(run), "--dataset", "./SEVEN")["graphs"] == 7


def test_the_library_reads_through_a_model_too(workplace: Path, run: Path) -> None:
    trained = load_model(str(run / "model.safetensors"))
    save_model(trained, "copy.safetensors")
    assert load_model("copy.safetensors").encoding == trained.encoding
    whole = load(workplace / "MINE")
    save(whole[[4, 1]], "some")
    assert trained.outputs(trained.load("./some")).equal(trained.outputs(whole)[[4, 1]])
    save(whole[:1].with_node_features(lambda x: x * 0 + 2), "other")
    with pytest.raises(ValueError, match="other: the model requires node labels, but the graphs have only attributes"):
        trained.load("./other")
    with pytest.raises(ValueError, match="its features are one-hot degrees from 0 to 2, but the model has 2 one-hot"):
        trained.predict(load("./other", features="degree"))


def test_what_nodes_are_described_by_is_said(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(with_attributes(write_tu_folder(workplace / "MINE")))
    for features, said in {
        "auto": "1 node attributes and 3 one-hot node labels",
        "attributes": "1 node attributes",
        "both": "1 node attributes and 3 one-hot node labels",
        "degree": "one-hot degrees from 0 to 2",
    }.items():
        assert main(["train", "--dataset", folder, *QUICK, "--features", features, "--output", features]) == 0
        assert f"tfgw: node features: {said}" in capsys.readouterr().err.splitlines()
        assert json.loads((workplace / features / "results.json").read_text())["features"] == said


def test_graphs_that_are_held_out_are_measured_and_not_learned_from(capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(Path("numbered"), graphs=60)
    owners = np.loadtxt(folder / "numbered_graph_indicator.txt", dtype=int)
    np.savetxt(folder / "numbered_node_attributes.txt", np.sin(owners), "%.6f")
    (folder / "numbered_node_labels.txt").unlink()
    shares = ["--validation", "0.2", "--test", "0.3"]
    found = answer(capsys, "train", "--dataset", "./numbered", *QUICK, *shares, "--output", "run")
    dataset, trained = load("./numbered"), load_model("run/model.safetensors")
    split = random_split(dataset, val=0.2, test=0.3, seed=0)
    nodes = np.concatenate([dataset[int(i)].x.double().numpy() for i in split.train])
    np.testing.assert_allclose(trained.preprocessing.mean, nodes.mean(0), rtol=1e-6)
    np.testing.assert_allclose(trained.preprocessing.scale, nodes.std(0), rtol=1e-6)
    accuracies = [found[f"{part}_accuracy"] for part in ("train", "validation", "test")]
    assert accuracies == [trained.evaluate(dataset[part]).score for part in split]
    assert accuracies[1] != accuracies[2]
    assert [found[f"{part}_graphs"] for part in ("train", "validation", "test")] == [30, 12, 18]
