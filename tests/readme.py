"""Runs the Python blocks of a Markdown file, word for word, one after the other: ``python tests/readme.py README.md``.

It imports nothing of the tests, so that it can also run where only a wheel is installed.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language; "" for blocks that name none."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


def run_blocks(path: Path, given: Mapping[str, object] = MappingProxyType({})) -> None:
    """Run the Python blocks of a file, each with the names of those before it; ``given`` are there from the start."""
    text = path.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": path.stem, "__file__": str(path), **given}
    for block in blocks(text, "python"):
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, path, "exec"), names)  # errors name the line of the file


if __name__ == "__main__":
    (file,) = map(Path, sys.argv[1:])
    run_blocks(file)
