"""Overview of dataset, model and options, and the training curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfgw.nn import KernelModel
from tfgw.plot import curves
from tfgw.report.page import Plot, Section, Table, Text
from tfgw.report.report_data import ReportData
from tfgw.train import EpochRecord


def overview(data: ReportData, options: Mapping[str, Any]) -> Section:
    """Return dataset, model and options as tables."""
    rows = []
    for name, dataset in data.parts.items():
        nodes = np.diff(dataset.compact().slices["x"].numpy())
        rows.append([name, len(dataset), f"{nodes.min()} to {nodes.max()}", float(nodes.mean())])
    model = _network(data) if data.kernel is None else _kernel_machine(data)
    model += [
        ["node features", str(data.trained.encoding or "as given")],
        ["canonical node order", "yes" if data.trained.preprocessing.canonical_order else "no"],
        ["parameters", sum(p.numel() for p in data.trained.model.parameters())],
    ]
    chosen = [[name.replace("_", " "), "–" if value is None else str(value)] for name, value in sorted(options.items())]
    tables = [
        Table(["part", "graphs", "nodes", "mean nodes"], rows, "Graphs"),
        Table(["model", ""], model, "Model"),
    ]
    if isinstance(machine := data.trained.model, KernelModel):
        numbers = (machine.distance_weights.tolist(), machine.rates.sum(0).tolist())
        kinds = zip(map(str, machine.config.distances), *numbers, strict=True)
        tables.append(Table(["distance", "weight", "γ"], [list(kind) for kind in kinds], "Distances"))
    if chosen:
        tables.append(Table(["option", "value"], chosen, "Training options"))
    return Section("what", "Overview", tables)


def _network(data: ReportData) -> list[list[object]]:
    config, pool = data.model.members[0].config, data.model.members[0].pool
    alphas = np.concatenate([m.pool.alpha.detach().cpu().reshape(-1).numpy() for m in data.model.members])
    return [
        ["templates", data.distances.shape[1]],
        ["nodes per template", config.template_nodes],
        ["structure", f"{config.structure.replace('_', ' ')}, {pool.n_starts} solver start(s)"],
        ["α (0: features, 1: structure)", f"{alphas.mean():.3f}" + (", learned" if pool.learn_alpha else ", fixed")],
        ["GIN layers", "custom encoder" if data.model.members[0].has_own_encoder else config.num_layers],
        ["head reads", config.readout],
    ]


def _kernel_machine(data: ReportData) -> list[list[object]]:
    model = data.trained.model
    assert isinstance(model, KernelModel)
    levels = (*model.config.levels, *model.config.label_levels)
    refined = "Weisfeiler–Lehman labels" if model.config.features == "labels" else "averages over neighbours"
    return [
        ["kind", "kernel ridge regression on exp(−γ FGW)"],
        ["regressions", "one for each distance" if len(model.rates) > 1 else "one for all distances together"],
        ["training graphs", model.num_graphs],
        ["levels of refinement", f"{', '.join(map(str, levels))} ({refined})"],
        ["α (0: features, 1: structure)", ", ".join(f"{alpha:g}" for alpha in model.config.alphas)],
        ["structure", f"adjacency, {model.config.n_starts} solver start(s)"],
    ]


def training(history: Sequence[EpochRecord]) -> Section:
    """Return the training curves."""
    if not history:
        text = "There is no training history for this model; tfgw train writes one to the folder of a run."
        return Section("training", "Training", [Text(text)])
    step = max(1, len(history) // 100)
    shown = [*history[::step], *([history[-1]] if (len(history) - 1) % step else [])]
    fields = [name for name in EpochRecord._fields if any(getattr(record, name) is not None for record in shown)]
    numbers = Table([name.replace("_", " ") for name in fields], [[getattr(r, name) for name in fields] for r in shown])
    alt = f"Loss, score, α and live template nodes over {len(history)} epochs."
    return Section("training", "Training", [Plot("curves", curves(history), alt, "By epoch.", numbers)])
