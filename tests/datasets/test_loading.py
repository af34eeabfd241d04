import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tfgw.datasets import download, load
from tfgw.datasets.tu_catalog import CONTENT_SHA256
from tfgw.datasets.tu_files import ZipFiles

WriteTables = Callable[..., Path]


@pytest.mark.parametrize("place", [".", "MINE", "MINE/raw"])
def test_name_is_found_as_text_files(
    tiny: dict[str, str], write_folder: WriteTables, tmp_path: Path, place: str
) -> None:
    write_folder(tiny, name="MINE", folder=tmp_path / "data" / place)
    dataset = load("MINE", data_dir=tmp_path / "data")
    assert (dataset.name, len(dataset)) == ("MINE", 3)


def test_name_is_found_as_zip_in_the_folder_of_the_environment(
    tiny: dict[str, str], write_zip: WriteTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_zip(tiny, path=tmp_path / "data" / "TINY.zip")
    monkeypatch.setenv("TFGW_DATA", str(tmp_path / "data"))
    assert load("TINY").name == "TINY"


@pytest.mark.parametrize(
    ("alias", "name"),
    [("PTC", "PTC_MR"), ("PROTEIN", "PROTEINS_full"), ("IMDB-B", "IMDB-BINARY"), ("IMDB-M", "IMDB-MULTI")],
)
def test_alias(tiny: dict[str, str], write_zip: WriteTables, tmp_path: Path, alias: str, name: str) -> None:
    write_zip(tiny, name=name)
    assert load(alias, data_dir=tmp_path).name == name


def test_path_as_text(tiny: dict[str, str], write_zip: WriteTables, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_zip(tiny)
    monkeypatch.chdir(path.parent)
    assert len(load("TINY.zip")) == len(load("./TINY.zip")) == len(load(str(path))) == 3


def test_unknown_name_says_what_to_do(tmp_path: Path) -> None:
    message = f"no dataset 'MINE': {tmp_path} has neither MINE.zip nor MINE_A.txt, and only MUTAG, "
    with pytest.raises(FileNotFoundError, match=re.escape(message)) as caught:
        load("MINE", data_dir=tmp_path)
    assert "use a path: ./MINE" in str(caught.value)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that plays the collection's site."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(download, "BASE_URL", folder.as_uri())
    return folder


def test_missing_dataset_is_downloaded_into_the_folder(
    tiny: dict[str, str], write_zip: WriteTables, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = write_zip(tiny, name="MUTAG", path=site / "MUTAG.zip")
    monkeypatch.setitem(CONTENT_SHA256, "MUTAG", ZipFiles(original).content_digest())
    assert load("MUTAG", data_dir=tmp_path / "data").classes == (-2, 5)
    assert (tmp_path / "data" / "MUTAG.zip").read_bytes() == original.read_bytes()
    original.unlink()
    assert len(load("MUTAG", data_dir=tmp_path / "data")) == 3


def test_without_a_folder_downloads_go_to_the_cache(
    tiny: dict[str, str], write_zip: WriteTables, site: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = write_zip(tiny, name="MUTAG", path=site / "MUTAG.zip")
    monkeypatch.setitem(CONTENT_SHA256, "MUTAG", ZipFiles(original).content_digest())
    load("MUTAG")
    assert (own_cache / "tu" / "MUTAG.zip").is_file()


@pytest.mark.parametrize("content", ["other tables", "no zip"])
def test_download_with_another_content_is_discarded(
    tiny: dict[str, str], write_zip: WriteTables, site: Path, tmp_path: Path, content: str
) -> None:
    path = write_zip(tiny, name="MUTAG", path=site / "MUTAG.zip")
    if content == "no zip":
        path.write_text("<html>moved</html>")
    message = f"{site.as_uri()}/MUTAG.zip: the SHA-256 of the content is "
    with pytest.raises(ValueError, match=re.escape(message)):
        load("MUTAG", data_dir=tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_without_network_one_sentence_says_what_to_do(site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with pytest.raises(FileNotFoundError) as caught:
        load("IMDB-B", data_dir=folder)
    message = str(caught.value)
    assert message.startswith(f"IMDB-BINARY is not in {folder} and cannot be downloaded from {site.as_uri()}")
    assert "put IMDB-BINARY.zip into a folder, and set data_dir= or " in message
    assert message.endswith("the environment variable TFGW_DATA to that folder")
    assert caught.value.__suppress_context__
