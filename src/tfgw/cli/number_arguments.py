"""Types of numeric options with their valid ranges."""

import argparse
from collections.abc import Callable


def count(least: int) -> Callable[[str], int]:
    """Return the type of an integer option that is at least ``least``."""

    def whole_number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {value}")
        return value

    return whole_number


def positive(text: str) -> float:
    """Parse a number greater than 0."""
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def seconds(text: str) -> float:
    """Parse a duration, which must not be negative."""
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text}")
    return value


def share(text: str) -> float:
    """Parse a number in [0, 1)."""
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 0 and less than 1, got {text}")
    return value


def size_class(text: str) -> int:
    """Parse a size class of the GPU kernels."""
    from tfgw.ot.backends.cuda.kernel_limits import SIZE_CLASSES  # loads PyTorch, which help should not wait for

    value = int(text)
    if value not in SIZE_CLASSES:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(map(str, SIZE_CLASSES))}, got {value}")
    return value


def alpha(text: str) -> float | str:
    """Parse a trade-off: ``learned``, or a number in [0, 1]."""
    if text == "learned":
        return text
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be 'learned' or a number in [0, 1], got {text}")
    return value
