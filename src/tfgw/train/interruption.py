"""Handle Ctrl-C in a training run with a folder: finish the epoch, save a checkpoint, then stop."""

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the user has interrupted the run."""

    requested = False


@contextmanager
def finishing_epochs(enabled: bool) -> Iterator[Interruption]:
    """Inside the block, record the first Ctrl-C; a second one raises ``KeyboardInterrupt`` immediately.

    This works only in the main thread. In other threads, the default handler stays in place.
    """
    found = Interruption()
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield found
        return

    def note(number: int, frame: FrameType | None) -> None:
        if found.requested:
            raise KeyboardInterrupt
        found.requested = True
        text = "tfgw: finishing this epoch and saving a checkpoint; press Ctrl-C again to stop immediately"
        logging.getLogger("tfgw").warning(text)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
