from pathlib import Path

import pytest


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory and a cache of each test's own; training ends without a report, which takes seconds."""
    monkeypatch.setattr("tfgw.cli.arguments.WRITES_REPORT", False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TFGW_DATA", raising=False)
    return tmp_path
