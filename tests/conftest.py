"""Random tests run with one seed; ``--seeds 10`` runs them with ten."""

import pytest
from hypothesis import settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=1, help="number of seeds of every random test")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--seeds")))


# The same examples each time, however slow the machine is: what they do not reach, tests/fuzz_api.py looks for.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
