"""Damage to files: of their bytes, and of the values in their JSON."""

import copy
import json
from typing import Any

import numpy as np

ODDITIES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 1.5, 1e308, -1e-320, 10**9, 2**31, 2**63, 10**30, "", "x", "x" * 3000, "../../x",
    "\0", "nan", [], {}, [[]], [None], {"a": 1}, [0, 1], [1.5, "a"], float("nan"), float("inf"),
)  # fmt: skip
TOKENS = (
    b"",
    b"-",
    b"1.5",
    b"nan",
    b"1e999",
    b"99999999999999999999",
    b",",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    b'"',
    b"[" * 300,
)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with one to three things done to them."""
    for _ in range(int(rng.integers(1, 4))):
        content = _damaged_once(content, rng)
    return content


def _damaged_once(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = sorted(rng.integers(len(content) + 1, size=2).tolist())
    short = min(stop, start + int(rng.integers(1, 20)))
    match int(rng.integers(8)):
        case 0:  # a byte
            place = min(start, len(content) - 1)
            return content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]
        case 1:  # the end is missing
            return content[:start]
        case 2:  # a piece is missing
            return content[:start] + content[short:]
        case 3:  # a piece is there twice
            return content[:short] + content[start:]
        case 4:  # noise
            return content[:start] + rng.bytes(int(rng.integers(1, 20))) + content[start:]
        case 5:  # two pieces have changed places
            return content[:start] + content[short:stop] + content[start:short] + content[stop:]
        case 6:  # a line is missing
            lines = content.split(b"\n")
            del lines[int(rng.integers(len(lines)))]
            return b"\n".join(lines)
        case _:
            token = TOKENS[int(rng.integers(len(TOKENS)))]
            return content[:start] + token + content[short:]


def crafted(value: Any, rng: np.random.Generator) -> Any:
    """The JSON value with one to three entries removed, replaced, copied or nested."""
    value = copy.deepcopy(value)
    for _ in range(int(rng.integers(1, 4))):
        value = _crafted_once(value, rng)
    return value


def _crafted_once(value: Any, rng: np.random.Generator) -> Any:
    places = list(_places(value))
    if not places:
        return _odd(rng)
    owner, key = places[int(rng.integers(len(places)))]
    match int(rng.integers(5)):
        case 0:
            del owner[key]
        case 1:
            other, place = places[int(rng.integers(len(places)))]
            owner[key] = copy.deepcopy(other[place])
        case 2:
            owner[key] = [owner[key]]
        case 3 if isinstance(owner, dict):
            owner[f"{key}x"] = owner.pop(key)
        case _:
            owner[key] = _odd(rng)
    return value


def _odd(rng: np.random.Generator) -> Any:
    return copy.deepcopy(ODDITIES[int(rng.integers(len(ODDITIES)))])


def _places(value: Any) -> Any:
    """All (container, key) pairs below a value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield value, key
        yield from _places(entry)


def as_json(value: Any) -> bytes:
    """The value as JSON, NaN and infinity included."""
    return json.dumps(value).encode()
