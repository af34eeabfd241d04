"""A few corrupted files of each format; ``TFGW_CORRUPTIONS=10000`` reads more."""

import os

import pytest

from tests.fuzz_files import FORMATS, fuzz


@pytest.mark.parametrize("name", FORMATS)
def test_corrupted_files_are_read_or_refused(name: str) -> None:
    count = int(os.environ.get("TFGW_CORRUPTIONS", "50"))
    assert fuzz(name, count).total() == count
