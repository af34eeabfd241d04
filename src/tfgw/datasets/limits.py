"""Limits of the memory that the content of a file may require.

A file of a few kilobytes can require arrays of any size: one-hot features of 60,000 labels on as many nodes, the
shortest paths of a large graph, a zip that contains only zeros. Sizes are therefore compared with these limits before
memory is allocated. ``docs/files.md`` lists the limits.
"""

import math
import os

MAX_UNPACKED_BYTES = 4 * 2**30
"""Maximum total unpacked size of a zip, checked before anything is read."""

MAX_COMPRESSION = 200
"""Maximum compression ratio of a zip. Of the paper's datasets, COLLAB has the highest, 35."""

ALWAYS_UNPACKED_BYTES = 2**26
"""Unpacked size below which the compression ratio is not limited."""

MAX_ARRAY_GIB = 1.0
VARIABLE = "TFGW_MAX_ARRAY_GIB"


def max_array_bytes() -> float:
    """Return the maximum size of an array in bytes: 1 GiB, or the value of the environment variable."""
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else MAX_ARRAY_GIB
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise ValueError(f"{VARIABLE}={text!r}: must be a positive number, in GiB")
    return limit * 2**30


def check_array(*shape: int, itemsize: int, what: str, instead: str) -> None:
    """Raise ``ValueError`` if an array would be larger than the limit.

    Args:
        *shape: Shape of the array.
        itemsize: Bytes per entry.
        what: Name of the array, and of the file or option that requires it, for the error message.
        instead: Advice for the user, besides raising the limit.
    """
    size, limit = math.prod(shape) * itemsize, max_array_bytes()
    if size > limit:
        raise ValueError(
            f"{what}: {' × '.join(f'{length:,}' for length in shape)} numbers take {size / 2**30:,.1f} GiB, but the"
            f" limit is {limit / 2**30:g} GiB; {instead}, or raise the limit with the environment variable {VARIABLE}"
        )
