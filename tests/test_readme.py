"""What README shows runs as it stands, and without a warning: an import, a training, solves."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readme import blocks
from tests.test_warnings import STRICT
from tfgw.cli.arguments import build_parser

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text()
COMMANDS = [
    line.partition("#")[0].strip()
    for block in blocks(TEXT, "")
    for line in block.splitlines()
    if line.startswith("tfgw ")
]


def test_python_runs_without_a_warning(tmp_path: Path) -> None:
    assert len(blocks(TEXT, "python")) >= 4
    script = Path(__file__).with_name("readme.py")
    command = [sys.executable, *STRICT, script, README]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "model.safetensors").is_file()


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 5


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line_takes_its_options(command: str) -> None:
    build_parser().parse_args(shlex.split(command)[1:])
