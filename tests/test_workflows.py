"""What can be known of the GitHub workflows without running them: versions, platforms, targets and permissions."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PATHS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, dict[Any, Any]] = {path.stem: yaml.safe_load(path.read_text()) for path in PATHS}
JOBS = [(name, job) for name, workflow in WORKFLOWS.items() for job in workflow["jobs"]]


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    return WORKFLOWS[workflow]["jobs"][job]["steps"]


def commands(workflow: str, job: str) -> str:
    return "\n".join(step["run"] for step in steps(workflow, job) if "run" in step)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    """A tag can be moved to other code, and the release workflow may publish."""
    used = re.findall(r"uses: (.*)", path.read_text())
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_one_commit_of_each_action() -> None:
    used = set(re.findall(r"uses: (\S+)@(\w+)", "\n".join(path.read_text() for path in PATHS)))
    assert len({action for action, _ in used}) == len(used)


@pytest.mark.parametrize(("workflow", "job"), JOBS)
def test_a_job_ends_and_keeps_no_credentials(workflow: str, job: str) -> None:
    assert WORKFLOWS[workflow]["jobs"][job]["timeout-minutes"] <= 60
    for step in steps(workflow, job):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_only_jobs_that_publish_may_write(workflow: str) -> None:
    assert WORKFLOWS[workflow]["permissions"] == {"contents": "read"}
    writing = {name for name, job in WORKFLOWS[workflow]["jobs"].items() if "permissions" in job}
    assert writing == {"docs": {"deploy"}, "release": {"publish"}, "tests": set()}[workflow]


@pytest.mark.parametrize(("workflow", "job"), JOBS)
def test_make_targets_exist(workflow: str, job: str) -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"^make (\S+)$", commands(workflow, job), re.MULTILINE)) <= set(targets)


def test_pull_requests_are_tested_linted_and_documented() -> None:
    triggers = {name: workflow[True] for name, workflow in WORKFLOWS.items()}  # YAML reads the key "on" as true
    assert "pull_request" in triggers["tests"]
    assert "pull_request" in triggers["docs"]
    assert commands("tests", "pinned").splitlines() == ["make test", "make lint"]
    assert commands("docs", "build").splitlines() == ["make docs"]


def test_the_matrix_has_the_oldest_and_newest_python_and_every_platform() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["versions"]["strategy"]["matrix"]["include"]
    supported = [text.rsplit(" :: ")[-1] for text in PROJECT["project"]["classifiers"] if "Python :: 3." in text]
    assert {entry["python"] for entry in matrix} == set(supported)
    released_for = WORKFLOWS["release"]["jobs"]["wheels"]["strategy"]["matrix"]["os"]
    assert {entry["os"] for entry in matrix} == set(released_for)


def test_the_oldest_python_has_the_oldest_supported_packages() -> None:
    oldest = dict(re.findall(r"^([\w-]+)>=([\d.]+)$", "\n".join(PROJECT["project"]["dependencies"]), re.MULTILINE))
    (entry, *_) = WORKFLOWS["tests"]["jobs"]["versions"]["strategy"]["matrix"]["include"]
    assert f">={entry['python']}" == PROJECT["project"]["requires-python"]
    pinned = dict(text.split("==") for text in entry["packages"].split())
    assert set(pinned) == {"torch", "torch-geometric", "scikit-learn", "scipy", "numpy"}
    for package, version in pinned.items():
        assert version.startswith(f"{oldest[package]}.")


def test_wheels_cover_every_supported_python() -> None:
    """One for the oldest Python, and one with the stable ABI for all others."""
    assert PROJECT["tool"]["cibuildwheel"]["build"] == "cp311-* cp312-*"
    assert PROJECT["tool"]["scikit-build"]["wheel"]["py-api"] == "cp312"
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_a_release_holds_the_compiled_kernels() -> None:
    assert find_spec("tfgw.ot.backends.cuda.precompile")
    assert "python -m tfgw.ot.backends.cuda.precompile --output kernels" in commands("release", "kernels")
    (included,) = PROJECT["tool"]["scikit-build"]["sdist"]["include"]
    for job in ("sdist", "wheels"):
        (download,) = [step["with"] for step in steps("release", job) if "download-artifact" in step.get("uses", "")]
        assert download == {"name": "kernels", "path": str(Path(included).parent)}


def test_only_a_tag_publishes() -> None:
    publish = WORKFLOWS["release"]["jobs"]["publish"]
    assert WORKFLOWS["release"][True]["push"] == {"tags": ["v*"]}
    assert publish["if"] == "github.event_name == 'push'"
    assert set(publish["needs"]) == {"sdist", "wheels"}
