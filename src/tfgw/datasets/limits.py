"""How much memory the content of a file may ask for.

A few kilobytes can describe arrays of any size: one-hot features of 60,000 labels on as many nodes, the shortest paths
of a large graph, a zip of nothing but zeros. What is made of a file is therefore compared with these limits before it
is made. ``docs/files.md`` lists them.
"""

import math
import os

MAX_UNPACKED_BYTES = 4 * 2**30
"""A zip whose members add up to more than this is refused before anything is read."""

MAX_COMPRESSION = 200
"""So is one that unpacks to more than so many times its size; COLLAB, the most regular of the paper's, has 35."""

ALWAYS_UNPACKED_BYTES = 2**26
"""Small enough to need no limit on its compression."""

MAX_ARRAY_GIB = 1.0
VARIABLE = "TFGW_MAX_ARRAY_GIB"


def max_array_bytes() -> float:
    """The largest array that is made of a file's content, in bytes: 1 GiB, or what the environment variable says."""
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else MAX_ARRAY_GIB
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise ValueError(f"{VARIABLE}={text!r}: must be a number above 0, in GiB")
    return limit * 2**30


def check_array(*shape: int, itemsize: int, what: str, instead: str) -> None:
    """Raise ``ValueError`` if an array would be larger than the limit.

    Args:
        *shape: Its shape.
        itemsize: Bytes per entry.
        what: Names the array, and the file or option that asks for it, in the error.
        instead: What the user may do, other than raising the limit.
    """
    size, limit = math.prod(shape) * itemsize, max_array_bytes()
    if size > limit:
        raise ValueError(
            f"{what}: {' × '.join(f'{length:,}' for length in shape)} numbers take {size / 2**30:,.1f} GiB, and the"
            f" limit is {limit / 2**30:g}; {instead}, or raise the limit with the environment variable {VARIABLE}"
        )
