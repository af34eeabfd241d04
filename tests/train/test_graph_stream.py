"""Graphs of files in chunks: the same bits as all at once, whatever the file, the chunks and the workers."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.paper.small import wait_until
from tests.paper.test_runner import processes_of
from tests.streams import random_trees, small_trained, write_json_lines, write_tu, write_tu_zip
from tfgw.datasets import GraphDataset, TableColumns, load, save
from tfgw.datasets.graph_tables import GraphTables, concatenated
from tfgw.datasets.molecule_table import read_molecules
from tfgw.datasets.tu_files import open_files
from tfgw.datasets.tu_format import read_tables
from tfgw.datasets.tu_stream import TuSource
from tfgw.train import StreamTally, TrainedModel, graph_stream
from tfgw.train.ordered_pool import ordered_map

GRAPHS = 53
EDGE = torch.tensor([[0, 1], [1, 0]])
TABLES = random_trees(GRAPHS)


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainedModel:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return small_trained(TABLES, tmp_path / "model.safetensors")


def joined(chunks: Any) -> dict[str, list[Any]]:
    chunks = list(chunks)
    return {name: [value for chunk in chunks for value in chunk[name]] for name in chunks[0]}


def distances(columns: dict[str, list[Any]]) -> torch.Tensor:
    return torch.tensor([columns[f"template_{number}"] for number in range(3)]).T


WRITERS: dict[str, Callable[[GraphTables, Path], Path]] = {
    "folder": write_tu,
    "trees.zip": write_tu_zip,
    "trees.jsonl": write_json_lines,
    "trees.parquet": save,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_stream_gives_the_bits_of_the_whole(name: str, trained: TrainedModel, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    source = WRITERS[name](TABLES, tmp_path / name.removesuffix(".zip"))
    whole = trained.load(source)
    expected = trained.embed(whole)
    for options in ({"batch_size": 7}, {"batch_size": 1000, "workers": 0}, {"batch_size": 1, "workers": 3}):
        found = joined(trained.embed_stream(source, **options))
        assert torch.equal(distances(found), expected)
        assert found["graph"] == list(range(GRAPHS))
    skipped = joined(trained.embed_stream(source, batch_size=10, tally=StreamTally(records=13, graphs=13)))
    assert skipped["graph"] == list(range(13, GRAPHS))
    assert torch.equal(distances(skipped), expected[13:])
    predicted = joined(trained.predict_stream(source, batch_size=8))
    assert predicted["prediction"] == trained.predict(whole)
    assert predicted["label"] == TABLES.targets.tolist()  # type: ignore[union-attr]
    assert torch.equal(
        torch.tensor([predicted["probability_0"], predicted["probability_1"]]).T, trained.probabilities(whole)
    )
    if name.endswith(".jsonl"):
        assert predicted["id"] == [f"tree-{graph}" for graph in range(GRAPHS)]


def test_datasets_and_any_iterable_can_be_streamed(trained: TrainedModel, tmp_path: Path) -> None:
    whole = trained.load(write_tu(TABLES, tmp_path / "folder"))
    expected = trained.embed(whole)
    chosen = whole[[5, 40, 2]]
    found = joined(trained.embed_stream(chosen, batch_size=2))
    assert found["graph"] == [5, 40, 2]
    assert torch.equal(distances(found), expected[[5, 40, 2]])
    generated = joined(trained.embed_stream((graph for graph in whole), batch_size=20))
    assert generated["graph"] == list(range(GRAPHS))
    assert torch.equal(distances(generated), expected)


def test_tables_of_molecules(tmp_path: Path) -> None:
    """Rows that cannot be read are left out, counted over all chunks, and not counted as graphs."""
    pytest.importorskip("rdkit")
    smiles = ["CCO", "C1CC", "c1ccccc1", "", "CC(=O)O", "N", "junk!", "CCN", "O=C=O"]
    rows = [f"{text},{number % 2},m{number}" for number, text in enumerate(smiles)]
    path = tmp_path / "molecules.csv"
    path.write_text("\n".join(["smiles,active,name", *rows]) + "\n")
    columns = TableColumns(smiles="smiles", target="active", identifier="name")
    tables, skipped = read_molecules(path, columns, labelled=False)
    assert skipped is not None
    trained = small_trained(tables, tmp_path / "model.safetensors", features="labels")
    expected = distances_of(trained, path, columns)
    for size in (1, 2, 4, 100):
        with pytest.warns(UserWarning, match=f"molecules: {re.escape(str(skipped))}"):
            found = joined(trained.predict_stream(path, columns=columns, batch_size=size))
        assert found["graph"] == list(range(6))
        assert found["id"] == ["m0", "m2", "m4", "m5", "m7", "m8"]
        assert found["label"] == [0, 0, 0, 1, 1, 0]
    with pytest.warns(UserWarning, match="3 of 9 rows cannot be read"):
        embedded = joined(trained.embed_stream(path, columns=columns, batch_size=2))
    assert torch.equal(distances(embedded), expected)
    own = dataclasses.replace(trained, columns=columns)  # the columns of the table that it was trained on
    with pytest.warns(UserWarning, match="cannot be read"):
        assert joined(own.embed_stream(path, batch_size=3)) == embedded
    with pytest.warns(UserWarning, match="cannot be read"):
        assert torch.equal(own.embed(own.load(path)), expected)
    path.write_text("smiles,name\n!,a\n")
    with pytest.raises(ValueError, match="molecules: no graphs; 1 of 1 rows cannot be read"):
        list(trained.embed_stream(path, columns=columns))


def distances_of(trained: TrainedModel, path: Path, columns: TableColumns) -> torch.Tensor:
    with pytest.warns(UserWarning, match="cannot be read"):
        return trained.embed(trained.load(path, columns=columns))


def test_a_stream_continues_from_its_tally(trained: TrainedModel, tmp_path: Path) -> None:
    """Also from what JSON makes of it."""
    labels = np.array(TABLES.node_labels)
    labels[[0, 4, -1]] = [[17], [9], [18]]
    folder = write_tu(dataclasses.replace(TABLES, node_labels=labels), tmp_path / "folder")
    stream = trained.stream(folder, batch_size=9)
    seen = [next(iter(stream)).positions]
    state = json.loads(json.dumps(stream.tally.as_dict()))
    rest = trained.stream(folder, batch_size=9, tally=StreamTally.from_dict(state))
    with pytest.warns(UserWarning, match="unknown to the model: 9, 17, 18"):
        seen += [graphs.positions for graphs in rest]
    assert [position for positions in seen for position in positions] == list(range(GRAPHS))
    assert rest.unseen is not None
    assert (rest.unseen.nodes, rest.unseen.of_nodes) == (3, len(labels))


def test_python_code_runs_in_processes_where_there_are_many_cores(
    trained: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_stream, "_THREADS_FOR_PYTHON", 0)
    source = write_json_lines(TABLES, tmp_path / "trees.jsonl")
    found = joined(trained.embed_stream(source, batch_size=20, workers=1))
    assert torch.equal(distances(found), trained.embed(trained.load(source)))


@pytest.mark.parametrize(
    ("name", "workers", "expected"),
    [
        ("trees.jsonl", 3, (3, False)),
        ("trees.jsonl", 4, (4, True)),
        ("folder", 4, (4, False)),  # parsed by native code, which threads do not slow down
        ("trees.jsonl", 0, (0, False)),
        ("folder", None, (6, False)),
        ("trees.jsonl", None, (6, True)),
    ],
)
def test_more_than_three_workers_parse_json_in_processes(
    name: str,
    workers: int | None,
    expected: tuple[int, bool],
    trained: TrainedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[tuple[int, bool]] = []

    def note(function: Any, items: Any, *, workers: int, processes: bool) -> Any:
        found.append((workers, processes))
        return map(function, items)

    monkeypatch.setattr(graph_stream, "ordered_map", note)
    monkeypatch.setattr("os.cpu_count", lambda: 6)
    list(trained.stream(WRITERS[name](TABLES, tmp_path / name), workers=workers))
    assert found == [expected]


def test_a_tally_is_what_has_been_read(trained: TrainedModel, tmp_path: Path) -> None:
    """Graphs, their nodes and the lines of the file, chunk by chunk; nothing is unknown here."""
    stream = trained.stream(write_json_lines(TABLES, tmp_path / "trees.jsonl"), batch_size=20, workers=0)
    counts = TABLES.node_counts
    for last, _ in zip((20, 40, GRAPHS), stream, strict=True):
        assert (stream.tally.records, stream.tally.graphs) == (last, last)
        assert stream.tally.nodes == int(counts[:last].sum())
    assert (stream.unseen, stream.tally.skipped, stream.name) == (None, None, "trees")
    assert StreamTally.from_dict({}) == StreamTally()
    assert StreamTally.from_dict(stream.tally.as_dict()) == stream.tally


def test_a_name_is_looked_up_in_the_folder_of_datasets(trained: TrainedModel, tmp_path: Path) -> None:
    whole = trained.load(write_tu(TABLES, tmp_path / "folder" / "trees"))
    assert torch.equal(trained.embed(trained.load("trees", data_dir=tmp_path / "folder")), trained.embed(whole))
    found = joined(trained.embed_stream("trees", data_dir=tmp_path / "folder"))
    assert torch.equal(distances(found), trained.embed(whole))
    with pytest.raises(ValueError, match="train it again"):
        dataclasses.replace(trained, encoding=None).load("trees", data_dir=tmp_path / "folder")


def test_any_iterable_has_a_name_and_may_not_be_empty(trained: TrainedModel) -> None:
    with pytest.raises(ValueError, match=r"^graphs: no graphs$"):
        list(trained.stream(iter([])))


def test_files_out_of_order_are_read_whole(trained: TrainedModel, tmp_path: Path) -> None:
    folder = write_tu(TABLES, tmp_path / "folder")
    path = folder / "trees_A.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[-6:] + lines[:-6]) + "\n")
    found = joined(trained.embed_stream(folder, batch_size=6, tally=StreamTally(records=2, graphs=2)))
    assert torch.equal(distances(found), trained.embed(trained.load(folder))[2:])


@pytest.mark.parametrize("size", [1, 2, 4, 100])
def test_chunks_of_tu_files_are_those_of_the_whole(size: int, tmp_path: Path) -> None:
    """With repeated edges, loops, edge labels and blocks of text that end anywhere."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    tables = {
        "A": "2, 1\n1, 2\n2, 3\n3, 2\n1, 2\n4, 4\n5, 4\n4, 5\n9, 8\n8, 9\n8, 8\n",
        "graph_indicator": "1\n1\n1\n2\n2\n3\n4\n5\n5\n",
        "edge_labels": "".join(f"{label}\n" for label in range(11)),
        "graph_attributes": "0.5\n1\n2\n3\n4\n",
    }
    for table, text in tables.items():
        (folder / f"tiny_{table}.txt").write_text(text)
    source = TuSource(open_files(folder))
    found, expected = concatenated([chunk.tables() for chunk in source.chunks(size)]), read_tables(source.files)
    assert source.count() == 5
    for field in dataclasses.fields(expected):
        mine, whole = getattr(found, field.name), getattr(expected, field.name)
        assert (mine is None) == (whole is None)
        assert mine is None or np.array_equal(mine, whole), field.name


@pytest.mark.parametrize(
    ("table", "text", "message"),
    [
        ("A", "1, 2\n2, 1\n9999, 1\n", "node 9999 does not exist"),
        ("A", "1, 2\n2, x\n", "line 2: expected 2 comma-separated integers"),
        ("graph_indicator", "1\n1\n3\n", "graph 3 after graph 1"),
        ("node_labels", "1\n2\n", "2 lines, but the dataset has"),
    ],
)
def test_errors_are_those_of_the_whole_and_come_first(
    table: str, text: str, message: str, trained: TrainedModel, tmp_path: Path
) -> None:
    folder = write_tu(TABLES, tmp_path / "folder")
    (folder / f"trees_{table}.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        next(trained.embed_stream(folder, batch_size=1))


def test_unknown_labels_are_counted_over_all_chunks(trained: TrainedModel, tmp_path: Path) -> None:
    labels = np.array(TABLES.node_labels)
    labels[[0, 4, -1]] = [[17], [9], [17]]
    changed = dataclasses.replace(TABLES, node_labels=labels)
    for source in (write_tu(changed, tmp_path / "folder"), write_json_lines(changed, tmp_path / "trees.jsonl")):
        with pytest.warns(UserWarning, match="unknown") as whole:
            load(source, encoding=trained.encoding)
        with pytest.warns(UserWarning, match="unknown") as streamed:
            list(trained.predict_stream(source, batch_size=5))
        assert [str(warning.message) for warning in streamed] == [str(warning.message) for warning in whole]


def test_too_many_unknown_labels_are_refused_in_the_end(trained: TrainedModel, tmp_path: Path) -> None:
    """Most nodes of the first chunk may be unknown; most nodes of all may not."""
    labels = np.array(TABLES.node_labels)
    labels[:40] += 10
    few = write_tu(dataclasses.replace(TABLES, node_labels=labels), tmp_path / "few")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = joined(trained.embed_stream(few, batch_size=3))
        assert torch.equal(distances(found), trained.embed(trained.load(few)))
    many = write_tu(dataclasses.replace(TABLES, node_labels=labels + 10), tmp_path / "many")
    with pytest.raises(ValueError, match=r"trees: .* the graphs are of a different kind"):
        list(trained.embed_stream(many, batch_size=3))


def test_wrong_options_are_refused(trained: TrainedModel, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="batch_size: must be at least 1, got 0"):
        trained.stream([], batch_size=0)
    with pytest.raises(ValueError, match="workers: must not be negative, got -1"):
        trained.stream([], workers=-1)
    with pytest.raises(FileNotFoundError, match=r"x\.jsonl: no such file"):
        trained.stream(tmp_path / "x.jsonl")
    with pytest.raises(ValueError, match="train it again"):
        dataclasses.replace(trained, encoding=None).stream(tmp_path / "x.jsonl")


def test_the_number_of_graphs_is_known_where_the_source_says_it(trained: TrainedModel, tmp_path: Path) -> None:
    path = write_tu(TABLES, tmp_path / "folder")
    assert trained.stream(trained.load(path)[:7]).count() == 7
    assert trained.stream(path).count() == GRAPHS
    assert trained.stream(iter(trained.load(path))).count() is None


def test_warnings_of_a_worker_are_brought_along_once() -> None:
    def prepare(chunk: Any) -> Any:
        for text in ("first", chunk, "first"):
            warnings.warn(text, stacklevel=2)
        warnings.warn("not for users", DeprecationWarning, stacklevel=2)
        return graph_stream.PreparedGraphs(**dict.fromkeys(graph_stream.PreparedGraphs._fields))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graph_stream._with_warnings(prepare, "second").warned == ["first", "second"]


def test_values_that_are_not_known_are_nothing() -> None:
    values = [0.5, float("nan"), -2.25]
    graphs = [Data(x=torch.ones(2, 1), edge_index=EDGE, y=torch.tensor([value])) for value in values]
    assert graph_stream._targets(GraphDataset.from_graphs(graphs, name="values")) == [0.5, None, -2.25]
    for graph, number in zip(graphs, (1, -1, 0), strict=True):
        graph.y = torch.tensor([number])
    classes = GraphDataset.from_graphs(graphs, name="classes", classes=("a", "b"))
    assert graph_stream._targets(classes) == ["b", None, "a"]


def test_a_pool_is_ordered_and_bounded() -> None:
    """Whoever is slow to take results stops the reader."""
    read: list[int] = []

    def items() -> Any:
        for number in range(1000):
            read.append(number)
            yield number

    found = ordered_map(lambda number: number * number, items(), workers=3, processes=False)
    assert [next(found) for _ in range(5)] == [0, 1, 4, 9, 16]
    # Two in work for each of three workers and one more, three that wait, and one in the hands of the reader.
    assert len(read) <= 5 + 2 * 3 + 1 + 3 + 1
    found.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == "tfgw-reader"]


def test_a_process_ends_after_its_workers_have_worked() -> None:
    code = "from tfgw.train.ordered_pool import ordered_map as m; print(*m(str, [3, 5], workers=1, processes=True))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "3 5\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_workers_end_with_a_process_that_is_killed(tmp_path: Path) -> None:
    work = f"import pathlib, time; pathlib.Path({str(tmp_path / 'begun')!r}).touch(); time.sleep(600)"
    code = f"""
from tfgw.train.ordered_pool import ordered_map
list(ordered_map(exec, [{work!r}], workers=1, processes=True))
"""
    running = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        wait_until((tmp_path / "begun").exists, seconds=200)
        running.kill()
        running.wait()
        wait_until(lambda: not processes_of(running.pid), seconds=30)
    finally:
        for process in processes_of(running.pid):
            os.kill(process, signal.SIGKILL)


def test_errors_of_reader_and_workers_reach_the_caller() -> None:
    def items() -> Any:
        yield 1
        raise ValueError("reader")

    with pytest.raises(ValueError, match="reader"):
        list(ordered_map(str, items(), workers=2, processes=False))
    with pytest.raises(ZeroDivisionError):
        list(ordered_map(lambda number: 1 // number, [2, 1, 0], workers=2, processes=False))


def test_what_has_not_begun_is_dropped_when_the_caller_stops() -> None:
    begun, go_on = [], threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number:
            go_on.wait(timeout=60)
        return number

    found = ordered_map(work, range(9), workers=1, processes=False)
    assert next(found) == 0
    while len(begun) < 2:
        time.sleep(0.01)
    found.close()  # type: ignore[attr-defined]
    go_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("tfgw_"):
            thread.join(timeout=60)
    assert begun == [0, 1]
