"""The same run on a Ray cluster of two nodes, on this machine."""

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.paper.small import TFGW, wait_until, without_times, write_experiment
from tests.paper.test_runner import ONE, ROOT, SMOKE, TWO, count
from tests.ray_workers import ray_workers
from tfgw.paper.experiment import load_experiment
from tfgw.paper.plan import plan
from tfgw.paper.records import Records
from tfgw.paper.run_context import RunContext
from tfgw.paper.runner import run

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes in /proc")
def test_a_killed_worker_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 cells on two nodes, one worker process killed while it works: the records of a quiet run."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = write_experiment(tmp_path, TFGW)
    series = plan(load_experiment(str(path)), SMOKE)
    assert run(series, RunContext(results=tmp_path / "quiet", accelerator="cpu"), ONE).done == 40
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        outcome = []
        context = RunContext(results=tmp_path / "ray", accelerator="cpu")
        running = threading.Thread(
            target=lambda: outcome.append(run(series, context, TWO, engine="ray", address=cluster.address)), daemon=True
        )
        running.start()
        busy = wait_until(lambda: count(tmp_path / "ray") >= 5 and ray_workers("run_cell"), seconds=200)
        os.kill(busy[0], signal.SIGKILL)
        running.join(timeout=200)
        assert outcome == [(40, [], 0, 40)]
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert without_times(iter(Records(tmp_path / "ray"))) == without_times(iter(Records(tmp_path / "quiet")))
