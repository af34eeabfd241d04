"""Estimated and measured seconds per cell of `tfgw paper`, for records that the estimates have not seen.

python benchmarks/time_estimates.py --results results
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from tfgw.cli.output import table
from tfgw.paper.cell_times import times_of
from tfgw.paper.cells import Cell
from tfgw.paper.records import Record, Records, is_done
from tfgw.paper.time_estimates import TimeEstimates

Group = list[Record]


def groups_of(records: Iterable[Record]) -> list[Group]:
    """Equal cells on one machine."""
    found: dict[object, Group] = defaultdict(list)
    for record in records:
        if is_done(record) and record["cell"]["protocol"] != "timing":
            found[times_of(Cell(**record["cell"]), record["run"]["machine"]).key].append(record)
    return list(found.values())


def same_settings_elsewhere(group: Group, other: Group) -> bool:
    """Whether only the machine may differ."""
    first, second = (one[0]["cell"] for one in (group, other))
    return all(first[name] == second[name] for name in ("model", "dataset", "configuration"))


def same_model_and_dataset(group: Group, other: Group) -> bool:
    """Whether settings and the machine may differ."""
    first, second = (one[0]["cell"] for one in (group, other))
    return all(first[name] == second[name] for name in ("model", "dataset"))


def by_model(groups: Sequence[Group], group: Group) -> float | None:
    """Estimate by the mean of similar cells on any machine, scaled by the number of epochs."""
    cell = group[0]["cell"]
    similar = [one for one in groups if same_model_and_dataset(one, group) and _kinds(one) == _kinds(group)]
    rates = [record["run"]["seconds"] / _epochs(record["cell"]) for one in similar for record in one]
    return float(np.mean(rates)) * _epochs(cell) if rates else None


def _kinds(group: Group) -> str:
    settings = group[0]["cell"]["configuration"]
    return json.dumps({name: value for name, value in settings.items() if isinstance(value, bool | str | dict)})


def _epochs(cell: dict) -> int:
    return cell["configuration"].get("epochs", 1)


def row_of(title: str, left_out: Callable[[Group, Group], bool], groups: Sequence[Group]) -> list[str]:
    """Ratios of estimated to measured seconds, where each group is estimated without similar ones."""
    ratios, inside, alternative = [], [], []
    for group in groups:
        others = [one for one in groups if one is not group and not left_out(group, one)]
        estimates = TimeEstimates((record for one in others for record in one), group[0]["run"]["machine"])
        found = estimates.estimate(Cell(**group[0]["cell"]))
        measured = float(np.mean([record["run"]["seconds"] for record in group]))
        if found is not None:
            ratios.append(found.seconds / measured)
            inside.append(abs(np.log(ratios[-1])) < found.deviation)
        if (simple := by_model(others, group)) is not None:
            alternative.append(simple / measured)
    return [
        title,
        f"{len(ratios)} of {len(groups)}",
        f"{within(ratios, 2):.0%}",
        f"{within(ratios, 3):.0%}",
        " ".join(f"{value:.2f}" for value in np.quantile(ratios, [0.1, 0.5, 0.9])),
        f"{np.mean(inside):.0%}",
        f"{len(alternative)} of {len(groups)}",
        f"{within(alternative, 2):.0%}" if alternative else "-",
    ]


def within(ratios: Sequence[float], factor: float) -> float:
    """Share of ratios within a factor."""
    return float(np.mean(np.abs(np.log(ratios)) <= np.log(factor)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"))
    groups = groups_of(Records(parser.parse_args().results))
    header = ["left out", "estimates", "within 2×", "within 3×", "ratio: 10 %, median, 90 %", "in 68 % interval"]
    header += ["mean of similar cells", "within 2×"]
    rows = [
        row_of("the same cells on this machine", lambda group, other: False, groups),
        row_of("the same cells on all machines", same_settings_elsewhere, groups),
        row_of("the dataset of the model", same_model_and_dataset, groups),
    ]
    print(f"{sum(map(len, groups))} cells of {len(groups)} kinds (model, dataset, settings, machine)\n")
    print(table([header, *rows]))


if __name__ == "__main__":
    main()
