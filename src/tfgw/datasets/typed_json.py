"""Create data classes from untrusted JSON, with a check of all field types."""

import math
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def from_json(kind: type[T], entries: Any, *, may_be_nan: bool = False) -> T:
    """Create a data class or named tuple from a JSON object, in which lists represent tuples.

    Args:
        kind: The class. Its fields have JSON types, unions and literals of them, or data classes.
        entries: The JSON object.
        may_be_nan: Whether numbers may be NaN or infinite.

    Raises:
        ValueError: If a field is unknown or has the wrong type; the class itself raises an error for missing fields.
    """
    if not isinstance(entries, dict):
        raise ValueError(f"expected an object for {kind.__name__}")
    types = get_type_hints(kind)
    values = {}
    for name, entry in entries.items():
        if name not in types:
            raise ValueError(f"unknown field {name!r}")
        try:
            values[name] = _converted(entry, types[name], may_be_nan=may_be_nan)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _converted(value: Any, kind: Any, *, may_be_nan: bool) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, UnionType):
        for choice in arguments:
            try:
                return _converted(value, choice, may_be_nan=may_be_nan)
            except ValueError:
                continue
    elif origin is Literal:
        if any(type(value) is type(choice) and value == choice for choice in arguments):
            return value
    elif origin is tuple and isinstance(value, list | tuple):
        return tuple(_converted(entry, arguments[0], may_be_nan=may_be_nan) for entry in value)
    elif kind is float and type(value) in (int, float):
        if may_be_nan or abs(value) < math.inf:
            return value
    elif kind in (int, bool, str, NoneType):
        if type(value) is kind:
            return value
    elif isinstance(value, dict) and hasattr(kind, "__dataclass_fields__"):
        return from_json(kind, value, may_be_nan=may_be_nan)
    shown = repr(value)
    raise ValueError(f"expected {getattr(kind, '__name__', kind)}, found {shown[:40]}")
