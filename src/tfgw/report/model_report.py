"""The report of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfgw.datasets import GraphDataset
from tfgw.nn import KernelModel
from tfgw.plot.embedding_plot import Method
from tfgw.plot.template_plot import node_looks
from tfgw.report.explanation_section import chosen_graphs, explanation_section, section_name
from tfgw.report.influence_section import influence_section
from tfgw.report.kernel_explanation_section import kernel_explanation_section
from tfgw.report.map_section import map_section
from tfgw.report.overview_section import overview, training
from tfgw.report.page import Page, Tile
from tfgw.report.performance_section import performance
from tfgw.report.report_data import Drawings, ReportData
from tfgw.report.template_section import template_section
from tfgw.report.trust_section import trust
from tfgw.train import EpochRecord, TrainedModel

COLOUR_GRAPHS = 300
"""Number of graphs whose features determine the colour scale of real-valued features."""


def model_report(
    trained: TrainedModel,
    parts: Mapping[str, GraphDataset],
    *,
    name: str,
    options: Mapping[str, Any] | None = None,
    history: Sequence[EpochRecord] = (),
    graphs: Sequence[str] = (),
    method: Method = "pca",
) -> Page:
    """Create the report of a model: networks or a kernel machine.

    Args:
        trained: The model.
        parts: Graphs as loaded, by part. The parts ``"training"`` and ``"test"`` are treated as such.
        name: Name of the dataset.
        options: Options of the training.
        history: Records of the epochs.
        graphs: Names of graphs to explain (default: the most certain, the least certain, and wrong predictions).
        method: Projection for the map: ``"pca"`` or ``"tsne"``.
    """
    data = ReportData.of(trained, parts)
    chosen = chosen_graphs(data, graphs)
    sample = np.linspace(0, len(data) - 1, min(len(data), COLOUR_GRAPHS)).astype(int)
    looks = node_looks(data.model, [data.graph(int(number)).x.double().numpy() for number in sample])
    drawings = Drawings(data, looks)
    quality, tiles = performance(data)
    tiles.append(Tile(f"{len(data):,}", "graphs", name))
    links = {number: section_name(number) for number in chosen}
    shown = {} if options is None else options
    if isinstance(trained.model, KernelModel):
        tiles.append(Tile(f"{trained.model.num_graphs:,}", "training graphs"))
        compared = f"all {trained.model.num_graphs} training graphs"
        sections = [
            quality,
            influence_section(data, drawings),
            kernel_explanation_section(data, chosen, drawings),
            map_section(data, links, method=method),
            trust(data),
            overview(data, shown),
        ]
    else:
        count, networks = data.distances.shape[1], len(data.model.members)
        tiles.append(Tile(str(count), "templates", f"of {networks} networks" if networks > 1 else ""))
        compared = f"{count} learned templates"
        sections = [
            quality,
            template_section(data, drawings),
            explanation_section(data, chosen, drawings),
            map_section(data, links, method=method),
            training(history),
            trust(data),
            overview(data, shown),
        ]
    return Page(
        title=f"TFGW report: {name}",
        lead=f"A {trained.task} model that compares graphs with {compared} by optimal transport.",
        tiles=tiles,
        sections=sections,
    )
