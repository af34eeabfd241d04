"""Processes of a Ray cluster on this machine."""

from pathlib import Path


def ray_workers(task: str) -> list[int]:
    """Processes in which Ray runs this task right now, by the name that it gives them."""
    found = []
    for name in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = name.read_bytes()
        except OSError:
            continue
        if text.startswith(f"ray::{task}".encode()):
            found.append(int(name.parent.name))
    return found
