"""Records that are older than a change of the code that changes their results.

The order comes from dates, because a record may be read without the Git history. A record contains the date of its
commit; older records only have the time at which the cell ended, which is an upper bound.
"""

import tomllib
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from tfgw.paper.machine import UNCOMMITTED
from tfgw.paper.records import Record, is_done


class Change(NamedTuple):
    """A change of the code that changes results of cells by more than rounding errors.

    Attributes:
        commit: First commit with the change, abbreviated to ten digits.
        date: Time of the commit.
        models: Names of the classes.
        note: What has changed.
        datasets: Datasets whose results change; empty for all.
        protocols: Protocols whose results change; empty for all.
        without: Commits of later cells that do not contain the change.
    """

    commit: str
    date: datetime
    models: tuple[str, ...]
    note: str
    datasets: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def is_missing_in(self, record: Record) -> bool:
        """Whether the cell would have another result with this change."""
        cell, run = record["cell"], record["run"]
        versions = run.get("versions", {})
        if cell["model"].rpartition(":")[2] not in self.models:
            return False
        if self.datasets and cell["dataset"] not in self.datasets:
            return False
        if self.protocols and cell["protocol"] not in self.protocols:
            return False
        if versions.get("commit", "").removesuffix(UNCOMMITTED) in self.without:
            return True
        time = versions.get("committed") or run.get("finished")
        return time is not None and datetime.fromisoformat(time) < self.date


@cache
def known_changes() -> tuple[Change, ...]:
    """Return the changes in ``changes.toml``, oldest first."""
    text = (resources.files("tfgw.paper") / "changes.toml").read_text()
    return tuple(_change(**entry) for entry in tomllib.loads(text)["changes"])


def changes_since(record: Record) -> list[Change]:
    """Return the changes that a record does not contain and that would change its result."""
    return [change for change in known_changes() if change.is_missing_in(record)]


def supersedes(new: Record, old: Record) -> bool:
    """Whether a record of the same cell should replace another one, because it is finished and lacks fewer changes."""
    return is_done(new) and (not is_done(old) or len(changes_since(new)) < len(changes_since(old)))


def _change(**entry: Any) -> Change:
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return Change(**values)
