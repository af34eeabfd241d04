"""``tfgw check``."""

import argparse
from typing import Any

from torch import Tensor

from tfgw.cli.model_inputs import find_graphs, find_model, unseen_labels
from tfgw.cli.output import CommandResult, table
from tfgw.nn import KernelModel
from tfgw.train import ModelCheck, TrainedModel
from tfgw.train.diagnostics import SAME, check_model, relative, starts_of


def run(args: argparse.Namespace) -> CommandResult:
    """Check how reliable the distances of a model are."""
    trained = find_model(args)
    graphs = find_graphs(args, trained)
    if args.graphs is not None:
        graphs = graphs[: args.graphs]
    trained.check_encoding(graphs)
    found = check_model(trained, graphs, n_starts=args.starts, renumberings=args.renumberings, seed=args.seed)
    own, thorough = found.diagnosis, found.thorough
    starts = starts_of(trained)
    data = {
        "dataset": graphs.name,
        "graphs": len(graphs),
        **_compared(trained, found),
        "canonical_order": trained.preprocessing.canonical_order,
        "starts": starts,
        "more_starts": args.starts,
        "renumbered_changed": _share(found.renumbered > SAME),
        "renumbered_worst": float(found.renumbered.max()),
        "converged": _share(own.status == 0),
        "gap_worst": float(relative(own.gaps, own.distances).max()),
        "local_minima": _share(own.local_minima),
        "lowered": _share(found.above_best > SAME),
        **_summary("lowered", found.above_best),
        **_summary("spread", relative(thorough.spreads, thorough.distances)),
        **_summary("above_optimum_at_most", thorough.worst_excess),
        "unseen_labels": unseen_labels(graphs),
    }
    return CommandResult(data, _text(data))


def _compared(trained: TrainedModel, found: ModelCheck) -> dict[str, int]:
    """Return the number of templates; for a kernel machine, of training graphs and kinds of distances."""
    if not isinstance(trained.model, KernelModel):
        return {"templates": found.distances.shape[1]}
    kinds = len(trained.model.config.distances)
    return {
        "training_graphs": found.distances.shape[1] // kinds,
        "of_training_graphs": trained.model.num_graphs,
        "distances": kinds,
    }


def _share(flags: Tensor) -> float:
    return float(flags.double().mean())


def _summary(name: str, values: Tensor) -> dict[str, float]:
    return {f"{name}_median": float(values.median()), f"{name}_worst": float(values.max())}


def _text(data: dict[str, Any]) -> str:
    def percent(key: str) -> str:
        return f"{100 * data[key]:.3g} %"

    def both(key: str) -> str:
        return f"median {percent(f'{key}_median')}, worst {percent(f'{key}_worst')}"

    graphs = f"{data['graphs']} graphs of {data['dataset']}, "
    if "templates" in data:
        graphs += f"{data['templates']} templates"
    else:
        graphs += (
            f"{data['training_graphs']} of {data['of_training_graphs']} training graphs, {data['distances']} distances"
        )
    order = "canonical node order" if data["canonical_order"] else "original node order"
    rows = [
        ["renumbering nodes changes", f"{percent('renumbered_changed')} of distances"],
        ["  by at most", percent("renumbered_worst")],
        ["converged", f"{percent('converged')} of distances, largest relative gap {percent('gap_worst')}"],
        ["verified local minima", f"{percent('local_minima')} of distances"],
        [f"{data['more_starts']} starts improve", f"{percent('lowered')} of distances"],
        ["  by", both("lowered")],
        ["spread over these starts", both("spread")],
        ["distance to the global minimum", f"at most: {both('above_optimum_at_most')}"],
    ]
    return f"{graphs}; {order}; {data['starts']} solver start{'s' if data['starts'] > 1 else ''}\n\n{table(rows)}"
