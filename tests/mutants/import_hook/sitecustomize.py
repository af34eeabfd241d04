"""Replaces the code of one module when it is imported, in this process and in all that it starts.

Python imports this file at its start, because its folder is on ``PYTHONPATH``. ``TFGW_MUTANT`` names two files: the
module's, and one with the source to run in its place.
"""

import os
from importlib.machinery import SourceFileLoader
from types import CodeType


def install() -> None:
    """Install the replacement that the environment names, if it names one."""
    module, _, source = os.environ.get("TFGW_MUTANT", "").partition(os.pathsep)
    if not source:
        return
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if self.path != module:
            return original(self, fullname)
        with open(source, encoding="utf-8") as file:
            return compile(file.read(), module, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


install()
