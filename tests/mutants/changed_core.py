"""A plugin of pytest: imports the extension that ``TFGW_CHANGED_CORE`` names in place of the installed one."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

NAME = "tfgw.ot._core"

_spec = spec_from_file_location(NAME, os.environ["TFGW_CHANGED_CORE"])
assert _spec is not None
assert _spec.loader is not None
sys.modules[NAME] = module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[NAME])
