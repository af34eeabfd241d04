"""The same answers from a Ray cluster of two nodes, on this machine, one of whose processes is killed."""

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.paper.small import wait_until
from tests.ray_workers import ray_workers
from tests.streams import random_trees, small_trained, write_json_lines
from tfgw.cli import main

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
pytest.importorskip("ray.data")
pytestmark = pytest.mark.usefixtures("workplace")

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_a_killed_worker_loses_and_doubles_nothing(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    tables = random_trees(160)
    small_trained(tables, workplace / "model.safetensors")
    source = write_json_lines(tables, workplace / "trees.jsonl")
    options = ["--dataset", str(source), "--batch-size", "5", "--accelerator", "cpu"]
    command = ["predict", str(workplace / "model.safetensors"), *options]
    assert main([*command, "--output", "quiet.csv"]) == 0
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        codes: list[int] = []
        arguments = [*command, "--output", "ray.csv", "--engine", "ray", "--address", cluster.address]
        running = threading.Thread(target=lambda: codes.append(main(arguments)), daemon=True)
        running.start()
        busy = wait_until(lambda: ray_workers("MapBatches(_answer)"), seconds=200)
        os.kill(busy[0], signal.SIGKILL)
        running.join(timeout=200)
        assert codes == [0]
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert (workplace / "ray.csv").read_bytes() == (workplace / "quiet.csv").read_bytes()
