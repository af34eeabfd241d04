import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfgw.datasets import limits, load
from tfgw.datasets.tu_files import FolderFiles, ZipFiles, open_files
from tfgw.datasets.tu_format import read_tables


def add_member(path: Path, member: str, content: str = "1\n") -> Path:
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(member, content)
    return path


def test_folder_and_zip_hold_the_same_tables(
    tiny: dict[str, str], write_folder: Callable[..., Path], write_zip: Callable[..., Path]
) -> None:
    sources = [open_files(write_folder(tiny)), open_files(write_zip(tiny))]
    assert [source.name for source in sources] == ["TINY", "TINY"]
    for table, text in tiny.items():
        for source in sources:
            with source.open(table) as stream:
                assert stream.read().decode() == text
    assert all("node_attributes" not in source for source in sources)


@pytest.mark.parametrize(
    "member", ["../evil.txt", "/etc/evil.txt", "TINY/../../evil.txt", "..\\evil.txt", "C:\\evil.txt"]
)
def test_member_outside_the_archive_is_refused(
    tiny: dict[str, str], write_zip: Callable[..., Path], member: str
) -> None:
    path = add_member(write_zip(tiny), member)
    message = f"{path}: member {member!r} points outside the archive"
    with pytest.raises(ValueError, match=re.escape(message)):
        load(path)


@pytest.mark.parametrize("character", ["\n", "\x1b", "\x7f"])
def test_member_with_a_control_character_is_refused_in_one_line(
    tiny: dict[str, str], write_zip: Callable[..., Path], character: str
) -> None:
    member = f"TI{character}NY/README.txt"
    path = add_member(write_zip(tiny), member)
    message = f"{path}: member {member!r} has a control character in its name"
    with pytest.raises(ValueError, match=re.escape(message)):
        load(path)


def test_zip_bomb_is_refused(
    tiny: dict[str, str], write_zip: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = add_member(write_zip(tiny), "TINY/README.txt", "x" * 3000)
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", 2000)
    message = f"{path}: member 'TINY/README.txt' exceeds the limit of 2000 unpacked bytes"
    with pytest.raises(ValueError, match=re.escape(message)):
        load(path)


def test_compression_that_text_does_not_have_is_refused(
    tiny: dict[str, str], write_zip: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_zip(tiny | {"graph_indicator": "1\n" * 10**6})
    monkeypatch.setattr(limits, "ALWAYS_UNPACKED_BYTES", 1000)
    most = limits.MAX_COMPRESSION * path.stat().st_size
    with pytest.raises(ValueError, match=f"'TINY/TINY_graph_indicator.txt' exceeds the limit of {most} unpacked bytes"):
        load(path)


def test_nothing_is_unpacked(tiny: dict[str, str], write_zip: Callable[..., Path], tmp_path: Path) -> None:
    load(write_zip(tiny))
    assert not list(tmp_path.rglob("*.txt"))


def test_file_that_is_no_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "TINY.zip"
    path.write_text("not a zip")
    with pytest.raises(ValueError, match=re.escape(f"{path}: not a readable zip")):
        load(path)


def test_two_members_of_one_name_are_refused(tiny: dict[str, str], write_zip: Callable[..., Path]) -> None:
    path = add_member(write_zip(tiny), "other/TINY_A.txt")
    with pytest.raises(ValueError, match=r"two members are named 'TINY_A\.txt', one of them 'other/TINY_A\.txt'"):
        load(path)


def test_resource_forks_are_ignored(tiny: dict[str, str], write_zip: Callable[..., Path]) -> None:
    assert ZipFiles(add_member(write_zip(tiny), "__MACOSX/TINY/._TINY_A.txt")).name == "TINY"


def test_damaged_zip_is_read_or_refused(tiny: dict[str, str], write_zip: Callable[..., Path]) -> None:
    path = write_zip(tiny)
    intact = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = []
    for position in rng.integers(len(intact), size=300):
        damaged = bytearray(intact)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            read_tables(ZipFiles(path))
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert all(str(path) in message for message in refused)


def test_folder_with_two_datasets_is_refused(tiny: dict[str, str], write_folder: Callable[..., Path]) -> None:
    folder = write_folder(tiny)
    write_folder(tiny, name="OTHER")
    with pytest.raises(ValueError, match=re.escape("found 2 datasets (OTHER, TINY), expected one")):
        load(folder)
    assert FolderFiles(folder, name="OTHER").name == "OTHER"


def test_folder_without_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}: no file NAME_A.txt")):
        load(tmp_path)


def test_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=re.escape(f"{tmp_path / 'none'}: no such folder or zip")):
        load(tmp_path / "none")


def test_content_digest_ignores_the_compression(
    tiny: dict[str, str], write_zip: Callable[..., Path], tmp_path: Path
) -> None:
    packed = write_zip(tiny)
    again = tmp_path / "again.zip"
    with zipfile.ZipFile(again, "w", zipfile.ZIP_LZMA) as archive:
        for table, text in reversed(tiny.items()):
            archive.writestr(f"TINY_{table}.txt", text)
    changed = write_zip(tiny | {"A": tiny["A"][:-5]}, path=tmp_path / "changed.zip")
    assert ZipFiles(packed).fingerprint() != ZipFiles(again).fingerprint()
    assert ZipFiles(packed).content_digest() == ZipFiles(again).content_digest()
    assert ZipFiles(packed).content_digest() != ZipFiles(changed).content_digest()
