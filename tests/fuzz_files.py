"""Corrupted files of every format: ``python -m tests.fuzz_files FORMAT COUNT [SEED]``, or ``make fuzz-files``.

A file that was damaged or crafted is read, or refused with the error that its reader documents. Whatever else happens,
a crash, a hang, another exception or memory without bounds, ends the run with the seed that repeats it.
"""

import contextlib
import faulthandler
import json
import os
import resource
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from safetensors.torch import save

from tests.cli.test_cli import write_tu_folder
from tests.corruption import as_json, crafted, damaged
from tests.paper.small import CYCLES, cell, write_experiment
from tests.paper.test_protocols import write_splits
from tests.train.small import cycles_and_stars, small_model
from tests.train.test_model_file import trained_model
from tfgw.cli.run_folder import OPTIONS_FILE, read_options
from tfgw.datasets import load
from tfgw.datasets.cache import cached_tables
from tfgw.datasets.tu_files import open_files
from tfgw.paper.experiment import load_experiment
from tfgw.paper.folds import FOLDS
from tfgw.paper.plan import plan
from tfgw.paper.protocols import Fair
from tfgw.paper.published_splits import read_splits
from tfgw.paper.records import Records, is_done
from tfgw.paper.series import Options
from tfgw.train import FileError, TrainConfig, fit, load_model, save_model
from tfgw.train.checkpoint import FILE_NAME, KIND, load_checkpoint
from tfgw.train.model_file import KIND as MODEL
from tfgw.train.optimizer import new_optimizer
from tfgw.train.tensor_file import FORMAT, content_digest, read_tensors

PATIENCE = 60  # seconds for one file
MEMORY = 6 * 2**30
Corrupt = Callable[[np.random.Generator], None]
Format = Callable[[Path], tuple[Corrupt, Callable[[], str]]]
"""Writes an intact file into a folder; returns how to corrupt it, and how to read it: what came of it."""


def tu(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Text files of the TU collection, in a folder."""
    data = write_tu_folder(folder / "shapes", graphs=5)
    files = sorted(data.iterdir())
    intact = [file.read_bytes() for file in files]
    nodes = intact[[file.name for file in files].index("shapes_node_labels.txt")]
    files.append(data / "shapes_node_attributes.txt")
    intact.append(b"".join(b"%s.5, 1e3\n" % line for line in nodes.split(b"\n")[:-1]))

    def corrupt(rng: np.random.Generator) -> None:
        for file, content in zip(files, intact, strict=True):
            file.write_bytes(content)
        place = int(rng.integers(len(files)))
        files[place].write_bytes(damaged(intact[place], rng))

    return corrupt, lambda: _load_graphs(data)


def tu_zip(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """The same in a zip."""
    data, path = write_tu_folder(folder / "shapes", graphs=5), folder / "shapes.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in data.iterdir():
            archive.write(file, f"shapes/{file.name}")
    return _bytes_of(path), lambda: _load_graphs(path)


def json_lines(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Graphs as JSON lines."""
    path = folder / "graphs.jsonl"
    graphs = [
        {
            "id": f"g{number}",
            "target": number % 2,
            "nodes": [{"id": i, "label": "CO"[i % 2], "attributes": [0.5 * i, 1.0]} for i in range(2 + number)],
            "edges": [{"source": i, "target": i + 1, "label": "single", "weight": 2.5} for i in range(1 + number)],
        }
        for number in range(4)
    ]

    def corrupt(rng: np.random.Generator) -> None:
        if rng.random() < 0.5:
            path.write_bytes(b"\n".join(map(as_json, crafted(graphs, rng))))
        else:
            path.write_bytes(damaged(b"\n".join(map(as_json, graphs)), rng))

    return corrupt, lambda: _load_graphs(path)


def model(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Model files."""
    path = folder / "model.safetensors"
    save_model(trained_model(), path)
    graphs = cycles_and_stars(6)

    def read() -> str:
        with _refused_with(FileError, path.name) as outcome:
            trained = load_model(path)
            outcome[0] = "read"
        if outcome[0] == "read" and trained.model.config.n_starts < 100:
            with contextlib.suppress(ValueError):  # features of another width
                found = trained.outputs(graphs)
                _require(found.isfinite().all(), "outputs are finite")
                _require(len(trained.predict(graphs)) == len(graphs), "a prediction for each graph")
        return outcome[0]

    return _tensors_of(path, MODEL), read


def checkpoint(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Checkpoints of training runs."""
    data, config = cycles_and_stars(), TrainConfig(epochs=2, accelerator="cpu")
    fit(small_model(data), data, cycles_and_stars(seed=1), config=config, folder=folder)
    target = small_model(data)
    longer = TrainConfig(epochs=3, accelerator="cpu")

    def read() -> str:
        with _refused_with(FileError, FILE_NAME) as outcome:
            progress = load_checkpoint(folder, target, new_optimizer(target, longer), longer)
            _require(len(progress.records) == progress.epoch, "a record for each epoch")
            if progress.kept is not None:
                target.load_state_dict(progress.kept_weights)
            outcome[0] = "read"
        return outcome[0]

    return _tensors_of(folder / FILE_NAME, KIND), read


def records(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Records of experiments, packed and not: what is intact is read, whatever the rest is like."""
    results = folder / "results"
    cells = [cell(fold=number) for number in range(7)]
    for one in cells:
        Records(results).put({"cell": one.as_dict(), "status": "done", "result": {"test_accuracy": 0.5}, "run": {}})
    Records(results).pack()
    Records(results).put({"cell": cells[3].as_dict(), "status": "failed", "error": "none", "run": {}})
    files = [path for path in results.rglob("[!.]*.json*") if path.is_file()]
    intact = [file.read_bytes() for file in files]
    lines = {line for content in intact for line in content.split(b"\n")}

    def corrupt(rng: np.random.Generator) -> None:
        for file, content in zip(files, intact, strict=True):
            file.write_bytes(content)
        place = int(rng.integers(len(files)))
        if rng.random() < 0.5:
            entries = intact[place].split(b"\n")[:-1]
            line = int(rng.integers(len(entries)))
            content = json.loads(entries[line])
            if rng.random() < 0.8:  # as older versions wrote it: what is crafted is looked at
                del content["checksum"]
            entries[line] = as_json(crafted(content, rng))
            files[place].write_bytes(b"\n".join(entries) + b"\n")
        else:
            files[place].write_bytes(damaged(intact[place], rng))

    def read() -> str:
        found = Records(results)
        everything = list(found)
        whole = {file.name: file.read_bytes().split(b"\n") for file in files}
        for one in cells:
            record = found.get(one)
            expected = [line for content in whole.values() for line in content if line in lines and _is_of(line, one)]
            _require(record is not None or not expected, f"an intact record is read: {one.fold}")
            _require(record is None or record["status"] in ("done", "failed"), "a record has a status")
        return f"{sum(map(is_done, everything))} done"

    return corrupt, read


def splits(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Published splits."""
    path = write_splits(folder / "splits.json", Fair().folds(np.arange(40) % 2, seed=5))
    intact = json.loads(path.read_text())

    def corrupt(rng: np.random.Generator) -> None:
        text = as_json(crafted(intact, rng)) if rng.random() < 0.6 else damaged(as_json(intact), rng)
        path.write_bytes(text)

    def read() -> str:
        with _refused_with(ValueError, path.name) as outcome:
            folds = read_splits(path, num_graphs=40)
            _require(len(folds) == FOLDS, "ten folds")
            for fold in folds:
                everything = np.concatenate(fold)
                _require(everything.dtype.kind == "i" and everything.ndim == 1, "positions")
                _require(set(everything.tolist()) <= set(range(40)), "of graphs")
            outcome[0] = "read"
        return outcome[0]

    return corrupt, read


def experiment(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """Experiments of a user's own, as bytes: TOML."""
    path = write_experiment(folder, CYCLES)

    def read() -> str:
        with _refused_with(ValueError) as outcome:
            series = plan(load_experiment(str(path)), Options(preset="smoke"))
            for one in series:
                one.first_cells()
            outcome[0] = "read"
        return outcome[0]

    return _bytes_of(path), read


def run_options(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """``run.json``, which ``tfgw train --resume`` reads."""
    path = folder / OPTIONS_FILE
    intact = {"dataset": "MUTAG", "data_dir": None, "features": "auto", "validation": 0.1, "test": 0.1, "seed": 0}
    intact |= {"task": None, "recipe": "default"}

    def corrupt(rng: np.random.Generator) -> None:
        path.write_bytes(as_json(crafted(intact, rng)) if rng.random() < 0.5 else damaged(as_json(intact), rng))

    def read() -> str:
        with _refused_with(ValueError, OPTIONS_FILE) as outcome:
            _require(isinstance(read_options(folder), dict), "options by name")
            outcome[0] = "read"
        return outcome[0]

    return corrupt, read


def cache(folder: Path) -> tuple[Corrupt, Callable[[], str]]:
    """The cache of parsed datasets: damage is noticed, and the dataset read again."""
    data = write_tu_folder(folder / "shapes", graphs=5)
    expected = cached_tables(open_files(data))
    (path,) = (Path(os.environ["XDG_CACHE_HOME"]) / "tfgw" / "parsed").glob("*.npz")

    def read() -> str:
        found = cached_tables(open_files(data))
        _require(all(np.array_equal(getattr(found, k), v) for k, v in vars(expected).items() if v is not None), "same")
        return "read"

    return _bytes_of(path), read


FORMATS: dict[str, Format] = {
    "tu": tu,
    "tu-zip": tu_zip,
    "json-lines": json_lines,
    "model": model,
    "checkpoint": checkpoint,
    "records": records,
    "splits": splits,
    "experiment": experiment,
    "run-options": run_options,
    "cache": cache,
}


def _load_graphs(path: Path) -> str:
    with _refused_with(ValueError, path.name.partition(".")[0]) as outcome:
        dataset = load(path)
        _require(dataset.x.isfinite().all(), "features are finite")
        for graph in dataset:
            _require(graph.num_nodes > 0, "graphs have nodes")
            within = (graph.edge_index >= 0) & (graph.edge_index < graph.num_nodes)
            _require(within.all(), "edges are within their graph")
        outcome[0] = "read"
    return outcome[0]


def _bytes_of(path: Path) -> Corrupt:
    intact = path.read_bytes()
    return lambda rng: path.write_bytes(damaged(intact, rng)) and None


def _tensors_of(path: Path, kind: str) -> Corrupt:
    """Damage the bytes, or craft tensors and description with a checksum that fits."""
    intact = path.read_bytes()
    tensors, description = read_tensors(path, kind=kind)

    def corrupt(rng: np.random.Generator) -> None:
        if rng.random() < 0.4:
            path.write_bytes(damaged(intact, rng))
            return
        changed = dict(tensors)
        if rng.random() < 0.3:
            name = str(rng.choice(list(changed)))
            _craft_tensor(changed, name, rng)
        about = crafted(description, rng) if rng.random() < 0.9 else description
        header: Any = {"kind": kind, "format": FORMAT, "description": about, "sha256": content_digest(changed, about)}
        header = crafted(header, rng) if rng.random() < 0.05 else header
        path.write_bytes(save(changed, metadata={"tfgw": json.dumps(header)}))

    return corrupt


def _craft_tensor(tensors: dict[str, torch.Tensor], name: str, rng: np.random.Generator) -> None:
    tensor = tensors[name]
    match int(rng.integers(6)):
        case 0:
            del tensors[name]
        case 1:
            tensors[f"{name}/x"] = tensors.pop(name)
        case 2:
            tensors[name] = torch.cat([tensor.reshape(-1), tensor.reshape(-1)])
        case 3:
            tensors[name] = tensor.to(torch.int32)
        case 4:
            tensors[name] = torch.full_like(tensor.double(), float(rng.choice([np.nan, np.inf, 1e300])))
        case _:
            tensors[name] = tensor.new_zeros(0)


@contextlib.contextmanager
def _refused_with(kind: type[Exception], name: str = "") -> Iterator[list[str]]:
    outcome = ["refused"]
    try:
        yield outcome
    except ValueError as error:
        own = isinstance(error, kind) or str(error).startswith("encoder: required")  # which its user has to give
        _require(own, f"the error of files: {error!r}")
        _require(name in str(error) and str(error), f"the error names the file: {error}")
        outcome[0] = "refused"


def _is_of(line: bytes, one: Any) -> bool:
    return bool(line) and json.loads(line)["cell"]["fold"] == one.fold


def _require(condition: Any, message: str) -> None:
    if not bool(condition):
        raise AssertionError(message)


def fuzz(name: str, count: int, seed: int = 0) -> Counter[str]:
    """Read ``count`` corrupted files of a format; what came of them."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder, _own_settings(folder):
        corrupt, read = FORMATS[name](Path(folder))
        for number in range(seed, seed + count):
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            corrupt(np.random.default_rng(number))
            try:
                counts[read()] += 1
            except BaseException:
                print(f"python -m tests.fuzz_files {name} 1 {number}", file=sys.stderr)
                raise
        faulthandler.cancel_dump_traceback_later()
    return counts


@contextlib.contextmanager
def _own_settings(folder: str) -> Iterator[None]:
    """A cache of its own, no waiting for the disk, and no warnings."""
    own_cache = mock.patch.dict(os.environ, XDG_CACHE_HOME=f"{folder}/cache")
    with own_cache, mock.patch("os.fsync"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def main(name: str, count: int, seed: int) -> None:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for one in FORMATS if name == "all" else [name]:
        found = fuzz(one, count, seed)
        print(f"{one}: {found.total()} corrupted files, nothing found; {dict(found.most_common(4))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
