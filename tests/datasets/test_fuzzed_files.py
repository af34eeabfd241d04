"""Corrupted files: an error in one line that names the file, or graphs that a plain reader of the same file finds too.

``TFGW_FUZZED_FILES`` says how many of each format.
"""

import csv
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest

from tests.datasets.molecule_files import molecules, write_csv, write_parquet
from tests.datasets.test_graphml import write as write_graphml
from tests.datasets.test_json_lines import corrupted
from tfgw.datasets import GraphDataset, TableColumns, load

FUZZED = int(os.environ.get("TFGW_FUZZED_FILES", "60"))
COLUMNS = TableColumns(smiles="SMILES", target="aromatic", identifier="name")


def load_or_refuse(source: Path, name: str, **options: object) -> GraphDataset | None:
    """The graphs; nothing if they are refused in one line that has the name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows that are left out
            return load(source, **options)
    except (ValueError, FileNotFoundError) as error:
        message = str(error)
    assert "\n" not in message
    assert name in message
    return None


def fuzz(content: bytes, write: Callable[[bytes], object], check: Callable[[], bool], *, seed: int) -> int:
    """How many of the corrupted contents were refused; ``check`` says of one that is written if it was read."""
    rng = random.Random(seed)
    refused = 0
    for _ in range(FUZZED):
        write(corrupted(content, rng))
        refused += not check()
    return refused


def elements_in(path: Path) -> list[list[str]]:
    """Elements of the molecules of a CSV file, by readers of others."""
    from rdkit import Chem, rdBase

    with path.open(encoding="utf-8-sig", newline="") as stream, rdBase.BlockLogs():
        rows = [row for row in csv.DictReader(stream) if (row["aromatic"] or "").strip()]
        smiles = [(row["SMILES"] or "").strip() for row in rows]
        # RDKit takes what follows a space for the molecule's name, and stops at a zero byte or goes on after it.
        read = [Chem.MolFromSmiles(text) for text in smiles if len(text.split()) == 1 and "\0" not in text]
        return [[atom.GetSymbol() for atom in one.GetAtoms()] for one in read if one is not None and one.GetNumAtoms()]


def test_csv(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    path = write_csv(tmp_path / "mols.csv", molecules(8))
    read = 0

    def check() -> bool:
        nonlocal read
        dataset = load_or_refuse(path, "mols.csv", columns=COLUMNS)
        if dataset is None:
            return False
        known = dataset.encoding.vocabulary[0]
        found = [[known[place] for place in graph.x.argmax(1).tolist()] for graph in dataset]
        assert found == elements_in(path)
        read += 1
        return True

    refused = fuzz(path.read_bytes(), path.write_bytes, check, seed=1)
    assert 0 < refused < FUZZED
    assert read + refused == FUZZED


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("rdkit")
    pytest.importorskip("pyarrow")
    path = write_parquet(tmp_path / "mols.parquet", molecules(8))
    whole = load(path, columns=COLUMNS)

    def check() -> bool:
        dataset = load_or_refuse(path, "mols.parquet", columns=COLUMNS)
        return dataset is not None and 0 < len(dataset) <= len(whole)

    assert fuzz(path.read_bytes(), path.write_bytes, check, seed=2) > FUZZED // 2


def test_graphml(tmp_path: Path) -> None:
    folder = write_graphml(tmp_path / "mine", 3)
    path = folder / "g1.graphml"

    def check() -> bool:
        dataset = load_or_refuse(folder, "mine")
        if dataset is None:
            return False
        graph = nx.read_graphml(path)
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        assert dataset[1].num_nodes == len(graph)
        assert dataset[1].num_edges == graph.to_directed().number_of_edges()
        return True

    assert 0 < fuzz(path.read_bytes(), path.write_bytes, check, seed=3) < FUZZED


TABLES = ("A", "graph_indicator", "graph_labels", "node_labels", "edge_labels")


@pytest.mark.parametrize("table", TABLES)
def test_a_folder_in_tu_format(tiny: dict[str, str], write_folder: Callable[..., Path], table: str) -> None:
    folder = write_folder(tiny)
    path = folder / f"TINY_{table}.txt"

    def check() -> bool:
        dataset = load_or_refuse(folder, "TINY")
        if dataset is None:
            return False
        numbers = [[int(field) for field in line.split(b",")] for line in path.read_bytes().rstrip().split(b"\n")]
        if table == "graph_indicator":
            assert [graph.num_nodes for graph in dataset] == list(Counter(row[0] for row in numbers).values())
        elif table == "A":
            edges = {tuple(row) for row in numbers if row[0] != row[1]}
            assert sum(graph.num_edges for graph in dataset) == len(edges)
        elif table == "graph_labels":
            assert [[dataset.classes[int(graph.y)]] for graph in dataset] == numbers
        elif table == "node_labels":
            known = dataset.encoding.vocabulary
            assert [[known[0][place]] for place in dataset.x.argmax(1).tolist()] == numbers or len(known) > 1
        return True

    fuzz(path.read_bytes(), path.write_bytes, check, seed=TABLES.index(table) + 4)


def test_a_zip(tiny: dict[str, str], write_zip: Callable[..., Path]) -> None:
    path = write_zip(tiny)
    edges = load(path).edge_index

    def check() -> bool:
        dataset = load_or_refuse(path, "TINY.zip")
        assert dataset is None or dataset.edge_index.equal(edges)  # checksums do not let others through
        return dataset is not None

    assert fuzz(path.read_bytes(), path.write_bytes, check, seed=9) > FUZZED // 2
