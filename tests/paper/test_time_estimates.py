"""Estimated times of cells: equal cells, other machines, settings and datasets, and the committed records."""

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.paper.small import cell
from tfgw.paper.cell_times import SIZES, times_of
from tfgw.paper.cells import Cell
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.time_estimates import Basis, TimeEstimates, format_duration
from tfgw.paper.time_model import NOISE
from tfgw.train.recipes import RECIPES

HERE = {"processor": "Near", "cores": 2, "gpu": None}
THERE = {"processor": "Far", "cores": 16, "gpu": None}
RESULTS = Path(__file__).parents[2] / "results"


def record(seconds: float | None, machine: dict[str, Any] = HERE, status: str = "done", **fields: Any) -> Record:
    run = {"machine": machine} | ({} if seconds is None else {"seconds": seconds})
    return {"cell": cell(**fields).as_dict(), "status": status, "run": run}


def network(dataset: str = "MUTAG", epochs: int = 100, model: str = "a.b:Net", **settings: Any) -> dict[str, Any]:
    return {"dataset": dataset, "model": model, "configuration": {"epochs": epochs, **settings}}


def test_equal_cells_take_as_long_as_before() -> None:
    """Other folds and seeds are equal; failures, unknown times and other cells do not count."""
    known = [record(3.0, fold=1), record(5.0, fold=2), record(10.0, fold=3, seed=2)]
    known += [record(99.0, status="failed"), record(None), record(50.0, configuration={"width": 7})]
    found = TimeEstimates(known, HERE).estimate(cell(fold=4, split_seed=3))
    assert found is not None
    assert (found.seconds, found.basis) == (6.0, Basis.HERE)
    assert found.deviation == pytest.approx(NOISE / 3**0.5)


def test_a_machine_is_compared_by_what_ran_on_both() -> None:
    """It is four times as fast for three other models."""
    models = [f"a.b:Model{number}" for number in range(3)]
    known = [record(seconds, model=model) for model, seconds in zip(models, (8.0, 20.0, 32.0), strict=True)]
    known += [record(seconds, THERE, model=model) for model, seconds in zip(models, (2.0, 5.0, 8.0), strict=True)]
    wanted = cell(model="a.b:Other")
    known += [record(40.0, model="a.b:Other", fold=fold) for fold in range(9)]
    found = TimeEstimates(known, THERE).estimate(wanted)
    assert found is not None
    assert found.basis == Basis.ELSEWHERE
    assert 8 < found.seconds < 20
    same = TimeEstimates(known, HERE).estimate(wanted)
    assert same is not None
    assert same.seconds == pytest.approx(40.0)


def test_training_takes_as_long_as_its_epochs() -> None:
    estimates = TimeEstimates([record(10.0, **network(), fold=fold) for fold in range(5)], HERE)
    found = estimates.estimate(cell(**network(epochs=500)))
    assert found is not None
    assert found.basis == Basis.DATASET
    assert found.seconds == pytest.approx(50.0, rel=0.1)


@pytest.mark.parametrize(("model", "exponent"), [("a.b:Net", 1.0), ("tfgw.baselines:FGWKernel", 1.5)])
def test_another_dataset_scales_with_its_nodes(model: str, exponent: float) -> None:
    """Pairs of graphs take longer."""
    estimates = TimeEstimates([record(10.0, **network("PTC_MR", model=model), fold=fold) for fold in range(5)], HERE)
    found = estimates.estimate(cell(**network("NCI1", model=model)))
    (graphs, nodes, _), (others, other_nodes, _) = SIZES["PTC_MR"], SIZES["NCI1"]
    assert found is not None
    assert found.basis == Basis.MODEL
    assert found.seconds == pytest.approx(10 * (others * other_nodes / graphs / nodes) ** exponent, rel=0.2)


def test_growth_with_edges_is_learned() -> None:
    """The time of message passing on dense graphs: COLLAB has 74 nodes per graph, but 2,457 edges."""
    names = ("MUTAG", "PTC_MR", "ENZYMES", "IMDB-BINARY", "IMDB-MULTI", "NCI1")
    known = []
    for name in names:
        graphs, _, edges = SIZES[name]
        known += [record(graphs * edges / 1000, **network(name), fold=fold) for fold in range(9)]
    graphs, _, edges = SIZES["COLLAB"]
    found = TimeEstimates(known, HERE).estimate(cell(**network("COLLAB")))
    assert found is not None
    assert graphs * edges / 1000 / 5 < found.seconds < graphs * edges / 1000


def test_growth_with_graphs_is_learned() -> None:
    """A model whose time does not depend on the number of graphs is noticed after three datasets."""
    names = ("MUTAG", "PTC_MR", "IMDB-BINARY", "NCI1")
    known = [record(10.0, **network(name), fold=fold) for name in names for fold in range(5)]
    found = TimeEstimates(known, HERE).estimate(cell(**network("COLLAB")))
    first = TimeEstimates(known[:5], HERE).estimate(cell(**network("COLLAB")))
    assert found is not None
    assert first is not None
    assert found.seconds < first.seconds / 3
    assert found.deviation < first.deviation


def test_what_is_not_guessed() -> None:
    """A model that has not run, or a dataset of unknown size; on such a dataset, other settings are estimated."""
    estimates = TimeEstimates([record(10.0, **network("./mine"))], HERE)
    assert estimates.estimate(cell(**network(model="a.b:Other"))) is None
    assert estimates.estimate(cell(**network("./other"))) is None
    assert TimeEstimates().estimate(cell()) is None
    found = estimates.estimate(cell(**network("./mine", epochs=200)))
    assert found is not None
    assert found.seconds == pytest.approx(20.0, rel=0.1)
    assert estimates.estimate(cell(**network("MUTAG"))) is not None


def test_the_total_says_what_it_is_based_on() -> None:
    estimates = TimeEstimates([record(10.0, **network(), fold=fold) for fold in range(4)], HERE)
    cells = [cell(**network(), fold=fold) for fold in range(4, 7)]
    cells += [cell(**network("NCI1"), fold=fold) for fold in range(2)] + [cell(model="a.b:Other")]
    total = estimates.total(cells)
    assert (total.unknown, total.basis) == (1, {Basis.HERE: 3, Basis.MODEL: 2})
    parts = [one for one in map(estimates.estimate, cells) if one is not None]
    assert total.seconds == pytest.approx(sum(one.seconds for one in parts))
    weighted = sum(one.seconds * one.deviation for one in parts) / total.seconds
    assert total.deviation == pytest.approx(weighted)
    assert estimates.total([]) == (0.0, 0.0, 0, {})


def test_records_that_arrive_change_estimates() -> None:
    estimates = TimeEstimates([record(10.0, **network())], HERE)
    before = estimates.estimate(cell(**network("NCI1")))
    estimates.learn(record(10.0, **network("IMDB-BINARY")))
    after = estimates.estimate(cell(**network("NCI1")))
    assert before is not None
    assert after is not None
    assert after.seconds < before.seconds


def test_passes_of_a_recipe_depend_on_the_graphs() -> None:
    """The default recipe has at most 700,000 epochs × graphs × networks; on small datasets, at least 300 steps."""

    def passes(dataset: str, configuration: dict[str, Any]) -> float:
        times = times_of(cell(dataset=dataset, configuration=configuration), HERE)
        return round(100 * float(np.exp(times.sizes["passes"])))

    default = {"recipe": dict(RECIPES["default"])}
    assert passes("PTC_MR", default) == 3 * 100
    assert passes("COLLAB", default) == 3 * (700_000 // 5000 // 3)
    assert passes("MUTAG", {"recipe": "paper", "num_templates": 4}) == 500
    assert passes("MUTAG", {"recipe": {"a setting": "of an older version"}, "epochs": 30}) == 30
    assert passes("MUTAG", {"width": 3}) == 1
    part = times_of(cell(dataset="COLLAB", graphs=60), HERE)
    assert part.sizes["graphs"] == pytest.approx(np.log(60 / 500))


@pytest.mark.slow
def test_estimates_of_committed_records() -> None:
    """Three quarters of the kinds of cells estimate the others: most within a factor of two."""
    if not RESULTS.is_dir():
        pytest.skip("needs the folder results")
    groups: dict[Hashable, list[Record]] = {}
    for one in Records(RESULTS):
        if is_done(one) and one["cell"]["protocol"] != "timing":
            groups.setdefault(times_of(Cell(**one["cell"]), one["run"]["machine"]).key, []).append(one)
    kinds = list(groups.values())
    quarters = np.random.default_rng(0).integers(4, size=len(kinds))
    ratios = []
    for quarter in range(4):
        known = [one for number, kind in enumerate(kinds) if quarters[number] != quarter for one in kind]
        wanted = [kind for number, kind in enumerate(kinds) if quarters[number] == quarter]
        for here in {json.dumps(kind[0]["run"]["machine"]) for kind in wanted}:
            estimates = TimeEstimates(known, json.loads(here))
            for kind in wanted:
                found = estimates.estimate(Cell(**kind[0]["cell"]))
                if json.dumps(kind[0]["run"]["machine"]) == here and found is not None:
                    ratios.append(found.seconds / np.mean([one["run"]["seconds"] for one in kind]))
    assert len(ratios) > 0.9 * len(kinds)
    assert np.mean(np.abs(np.log(ratios)) < np.log(2)) > 0.7


def test_durations_are_rounded() -> None:
    assert [format_duration(seconds) for seconds in (89.4, 90, 5399, 5400)] == ["89 s", "2 min", "90 min", "1.5 h"]
    assert json.dumps({Basis.HERE: 3}) == '{"equal cells on this machine": 3}'
