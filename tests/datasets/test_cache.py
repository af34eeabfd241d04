import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfgw.datasets import GraphDataset, cache, load

WriteTables = Callable[..., Path]


@pytest.fixture
def never_parse(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def fail(files: object) -> None:
        raise AssertionError("parsed although the cache has it")

    return lambda: monkeypatch.setattr(cache, "read_tables", fail)


def assert_same(one: GraphDataset, other: GraphDataset) -> None:
    assert one.classes == other.classes
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert set(a.keys()) == set(b.keys())
        assert all(a[key].equal(b[key]) for key in a.keys())  # noqa: SIM118 (Data iterates over pairs)


@pytest.mark.parametrize("writer", ["write_folder", "write_zip"])
def test_second_load_does_not_parse(
    tiny: dict[str, str], writer: str, request: pytest.FixtureRequest, never_parse: Callable[[], None]
) -> None:
    path = request.getfixturevalue(writer)(tiny)
    first = load(path)
    never_parse()
    assert_same(first, load(path))


@pytest.mark.parametrize("writer", ["write_folder", "write_zip"])
def test_changed_source_is_parsed_again(tiny: dict[str, str], writer: str, request: pytest.FixtureRequest) -> None:
    write = request.getfixturevalue(writer)
    assert load(write(tiny)).classes == (-2, 5)
    assert load(write(tiny | {"graph_labels": "10\n20\n30\n"})).classes == (10, 20, 30)


@pytest.mark.parametrize("damage", ["truncate", "flip", "method", "foreign", "pickle"])
def test_damaged_cache_is_parsed_again(
    tiny: dict[str, str],
    write_zip: WriteTables,
    own_cache: Path,
    never_parse: Callable[[], None],
    damage: str,
) -> None:
    path = write_zip(tiny)
    first = load(path)
    (cached,) = own_cache.rglob("*.npz")
    content = cached.read_bytes()
    if damage == "truncate":
        cached.write_bytes(content[:-100])
    elif damage == "flip":
        middle = content.index(b"edges.npy") + 200  # inside the array, behind its header
        cached.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "method":  # of compression, in the directory at the end of the file
        entry = content.rindex(b"PK\x01\x02") + 10
        cached.write_bytes(content[:entry] + b"\x63" + content[entry + 1 :])
    elif damage == "foreign":
        np.savez(cached, something=np.zeros(3))
    else:
        np.savez(cached, node_counts=np.array([{}], dtype=object), allow_pickle=True)
    assert_same(first, load(path))
    never_parse()
    assert_same(first, load(path))  # the cache is whole again


def test_cache_that_cannot_be_written_is_only_a_warning(
    tiny: dict[str, str], write_zip: WriteTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be cached"):
        dataset = load(write_zip(tiny))
    assert len(dataset) == 3


def test_no_temporary_file_is_left(tiny: dict[str, str], write_zip: WriteTables, own_cache: Path) -> None:
    load(write_zip(tiny))
    assert len(list(own_cache.rglob("*.*"))) == 1


def test_source_folder_is_not_written_to(tiny: dict[str, str], write_folder: WriteTables) -> None:
    folder = write_folder(tiny)
    before = sorted(os.listdir(folder))
    load(folder)
    assert sorted(os.listdir(folder)) == before
