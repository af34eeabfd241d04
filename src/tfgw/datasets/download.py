"""Download a dataset of the paper from the TU collection, and verify it."""

import http.client
import shutil
import urllib.request
from pathlib import Path

from tqdm.auto import tqdm

from tfgw.datasets.paths import DATA_VARIABLE, written_whole
from tfgw.datasets.tu_catalog import CONTENT_SHA256
from tfgw.datasets.tu_files import ZipFiles

BASE_URL = "https://www.chrsmrrs.com/graphkerneldatasets"

_TIMEOUT_SECONDS = 30


def download(name: str, *, folder: Path) -> Path:
    """Download ``name`` as ``folder/name.zip``; its content must have the checksum of the catalogue."""
    url = f"{BASE_URL}/{name}.zip"
    archive = folder / f"{name}.zip"
    try:
        with written_whole(archive) as temporary:
            _fetch(url, temporary)
            _check_content(name, temporary, url=url)
    except (OSError, http.client.HTTPException) as error:
        raise FileNotFoundError(
            f"{name} is not in {folder} and cannot be downloaded from {url} ({error}): put {name}.zip into a"
            f" folder, and set data_dir= or the environment variable {DATA_VARIABLE} to that folder"
        ) from None
    return archive


def _fetch(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response, path.open("wb") as file:
        size = int(response.headers.get("Content-Length") or 0) or None
        with tqdm.wrapattr(response, "read", total=size, desc=url.rsplit("/", 1)[-1]) as stream:
            shutil.copyfileobj(stream, file)


def _check_content(name: str, archive: Path, *, url: str) -> None:
    try:
        found = ZipFiles(archive).content_digest()
    except ValueError:
        found = "unreadable"
    expected = CONTENT_SHA256[name]
    if found != expected:
        raise ValueError(
            f"{url}: the SHA-256 of the content is {found}, expected {expected}; the download was discarded"
        )
