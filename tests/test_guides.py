"""The code of the guides runs as it stands, on small data under the names that a page takes as given.

Commands are parsed, not run: most need files or take long.
"""

import gzip
import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from tests.readme import blocks, run_blocks
from tfgw.cli.arguments import build_parser
from tfgw.datasets import from_networkx, save
from tfgw.estimators import TFGWClassifier, TFGWKernelClassifier
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train.recipes import RECIPES

DOCS = Path(__file__).parents[1] / "docs"
FRAGMENTS = {"experiments.md", "recipe.md"}  # constructors and signatures, for the text around them
PAGES = [
    str(page.relative_to(DOCS))
    for page in sorted(DOCS.rglob("*.md"))
    if page.parent.name != "api" and page.name not in FRAGMENTS and blocks(page.read_text(), "python")
]


def commands(page: Path) -> list[str]:
    """The commands ``tfgw …`` in indented and fenced blocks of a page, without comments."""
    text = page.read_text()
    lines = [*re.findall(r"^ {4}(.*)$", text, re.MULTILINE), *"\n".join(blocks(text, "")).splitlines()]
    parts = [part.strip() for line in lines for part in line.partition("#")[0].split(";")]
    return [part for part in parts if part.startswith("tfgw ")]


COMMANDS = sorted({command for page in DOCS.rglob("*.md") for command in commands(page)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, in which the default recipe takes a second."""
    monkeypatch.chdir(tmp_path)
    quick = {"epochs": 2, "fewest_steps": 2, "n_estimators": 1}
    monkeypatch.setitem(RECIPES, "default", RECIPES["default"] | quick)
    monkeypatch.setattr(plt, "show", lambda: None)
    return tmp_path


def rings_and_paths() -> tuple[list[nx.Graph], list[str]]:
    """Five of each, with the node attributes of a molecule."""
    graphs = [nx.cycle_graph(n) for n in range(5, 10)] + [nx.path_graph(n) for n in range(6, 11)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: 7 if node == 0 else 6 for node in graph}, "atom")
        nx.set_node_attributes(graph, {node: node / 10 for node in graph}, "charge")
    return graphs, ["ring"] * 5 + ["path"] * 5


def given(page: str, folder: Path) -> dict[str, Any]:
    """What a page takes as given: names, and files in the folder."""
    graphs, labels = rings_and_paths()
    dataset = from_networkx(graphs, y=[0] * 5 + [1] * 5, node_labels="atom")
    if page == "how-to/own-data.md":
        return {"graphs": graphs, "labels": labels, "new_graphs": [nx.cycle_graph(12)], "list_of_data": list(dataset)}
    if page == "how-to/own-encoder.md":
        ends = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        return {"train_graphs": [Data(x=torch.rand(3, 7), edge_index=ends, y=torch.tensor([n % 2])) for n in range(4)]}
    if page == "how-to/scikit-learn.md":
        return {"TFGWClassifier": TFGWClassifier, "graphs": graphs, "labels": labels}
    if page == "how-to/molecules.md":
        rows = ["SMILES,active,id", "CCO,0,a", "c1ccccc1O,1,b", "CC(=O)O,0,c", "c1ccccc1,1,d"]
        (folder / "molecules.csv").write_text("\n".join(rows))
        return {}
    if page == "baselines.md":
        parts = ("graphs", "other_graphs", "test_graphs"), ("labels", "other_labels", "test_labels")
        return dict.fromkeys(parts[0], dataset) | dict.fromkeys(parts[1], dataset.y)
    if page in ("start.md", "reproduction.md"):
        return {}

    model = TFGWClassifier(random_state=0).fit(dataset, dataset.y)
    if page == "report.md":
        names = {"train": dataset, "test": dataset, "estimator": model, "model": model, "trained": model.trained_}
        return names | {"graph": dataset[0], "graphs": dataset, "labels": labels, "y": dataset.y}
    if page == "explanations.md":
        (folder / "runs" / "MUTAG-1").mkdir(parents=True)
        model.save("runs/MUTAG-1/model.safetensors")
        save(dataset, folder / "data" / "MUTAG")
        config = TFGWConfig(in_channels=2, out_channels=2, num_templates=2, template_nodes=4)
        network = TFGWModel(config).init_templates(dataset).eval()
        machine = TFGWKernelClassifier(levels=[1]).fit(dataset, dataset.y)
        return {"FOLDER": folder / "data", "network": network, "machine": machine, "data": dataset[3]}
    assert page == "files.md"
    (folder / "run").mkdir()
    model.save("run/model.safetensors")
    for name in ("new", "labelled"):
        save(dataset, folder / name)
    (folder / "new" / "new_graph_labels.txt").unlink()
    (example,) = blocks((DOCS / "files.md").read_text(), "json")
    (folder / "molecules.jsonl.gz").write_bytes(gzip.compress(example.replace('"C"', "6").replace('"O"', "7").encode()))
    return {}


@pytest.mark.parametrize("page", PAGES)
def test_the_code_of_a_page_runs(page: str, folder: Path) -> None:
    run_blocks(DOCS / page, given(page, folder))
    plt.close("all")


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_takes_the_options_of_a_command(command: str) -> None:
    build_parser().parse_args(shlex.split(command.removesuffix("…"))[1:])
