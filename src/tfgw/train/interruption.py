"""Ctrl-C in a training run that has a folder: the epoch is finished and kept, then the run ends."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the run was asked to end."""

    requested = False


@contextmanager
def finishing_epochs(enabled: bool) -> Iterator[Interruption]:
    """Inside the block, the first Ctrl-C is noted; another one raises ``KeyboardInterrupt`` at once.

    Only the main thread can do that; elsewhere Ctrl-C does what it always does.
    """
    found = Interruption()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield found
        return

    def note(number: int, frame: FrameType | None) -> None:
        if found.requested:
            raise KeyboardInterrupt
        found.requested = True
        text = "tfgw: finishing this epoch and saving a checkpoint; Ctrl-C again ends at once"
        logging.getLogger("tfgw").warning(text)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
