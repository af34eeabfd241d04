"""A plugin of pytest: runs the tests that ``TFGW_CHOSEN_TESTS`` lists, in that order."""

import json
import os
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    place = {test: number for number, test in enumerate(json.loads(Path(os.environ["TFGW_CHOSEN_TESTS"]).read_text()))}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in place])
    items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])
