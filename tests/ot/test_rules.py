"""The rules of both cores are written once, in two headers, and Python's status codes are those of the header."""

import re
from pathlib import Path

import pytest

from tfgw import ot
from tfgw.ot import Status
from tfgw.ot.backends.cuda.compile import SOURCES

HEADERS = [SOURCES / "rules.cuh", SOURCES / "start_rules.cuh"]
RULES = "".join(header.read_text() for header in HEADERS)
CONSTANTS = re.findall(r"^constexpr [\w ]+ (k\w+) =", RULES, re.MULTILINE)
FUNCTIONS = re.findall(r"^TFGW_HD [\w ]+ (\w+)\(", RULES, re.MULTILINE)
HELPERS = {"larger", "smaller", "magnitude", "scramble", "draw", "draw_below"}


def sources() -> list[Path]:
    """The C++ core, the kernels and their host code, without the headers."""
    core = Path(ot.__file__).parent / "cpp"
    suffixes = {".cpp", ".hpp", ".cu", ".cuh"}
    return [f for folder in (core, SOURCES) for f in folder.rglob("*") if f.suffix in suffixes and f not in HEADERS]


def test_status_codes_are_those_of_the_header() -> None:
    [body] = re.findall(r"enum class Status : int \{(.*?)\}", RULES)
    codes = {name: int(code) for name, code in re.findall(r"(\w+) = (\d+)", body)}
    assert codes == {status.name.lower(): status.value for status in Status}


@pytest.mark.parametrize("name", [*CONSTANTS, "Status", "Outcome"])
def test_a_constant_is_defined_once_and_used_by_a_core(name: str) -> None:
    texts = {file: file.read_text() for file in sources()}
    defined = re.compile(rf"(constexpr [\w:]+|enum class) {name}\b")
    assert [file.name for file, text in texts.items() if defined.search(text)] == []
    used = re.compile(rf"\b{name}\b")
    assert any(used.search(text) for text in texts.values()) or len(used.findall(RULES)) > 1


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - HELPERS))
def test_a_decision_is_used_by_both_cores(name: str) -> None:
    used = {file.parent.name for file in sources() if re.search(rf"\b{name}\(", file.read_text())}
    assert {"cpp", "cuda"} <= used
