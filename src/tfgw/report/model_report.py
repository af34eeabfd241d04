"""The report of a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfgw.datasets import GraphDataset
from tfgw.nn import KernelModel
from tfgw.plot.embedding_plot import Method
from tfgw.plot.template_plot import node_looks
from tfgw.report.explained import chosen_graphs, explained, section_name
from tfgw.report.influence_section import influence_section
from tfgw.report.kernel_explained import kernel_explained
from tfgw.report.map_section import map_section
from tfgw.report.overview import overview, training
from tfgw.report.page import Page, Tile
from tfgw.report.performance import performance
from tfgw.report.subjects import Drawings, Subjects
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
    subjects = Subjects.of(trained, parts)
    chosen = chosen_graphs(subjects, graphs)
    sample = np.linspace(0, len(subjects) - 1, min(len(subjects), COLOUR_GRAPHS)).astype(int)
    looks = node_looks(subjects.model, [subjects.graph(int(number)).x.double().numpy() for number in sample])
    drawings = Drawings(subjects, looks)
    quality, tiles = performance(subjects)
    tiles.append(Tile(f"{len(subjects):,}", "graphs", name))
    links = {number: section_name(number) for number in chosen}
    shown = {} if options is None else options
    if isinstance(trained.model, KernelModel):
        tiles.append(Tile(f"{trained.model.num_graphs:,}", "training graphs"))
        compared = f"all {trained.model.num_graphs} training graphs"
        sections = [
            quality,
            influence_section(subjects, drawings),
            kernel_explained(subjects, chosen, drawings),
            map_section(subjects, links, method=method),
            trust(subjects),
            overview(subjects, shown),
        ]
    else:
        count, networks = subjects.distances.shape[1], len(subjects.model.members)
        tiles.append(Tile(str(count), "templates", f"of {networks} networks" if networks > 1 else ""))
        compared = f"{count} learned templates"
        sections = [
            quality,
            template_section(subjects, drawings),
            explained(subjects, chosen, drawings),
            map_section(subjects, links, method=method),
            training(history),
            trust(subjects),
            overview(subjects, shown),
        ]
    return Page(
        title=f"TFGW report: {name}",
        lead=f"A {trained.task} model that compares graphs with {compared} by optimal transport.",
        tiles=tiles,
        sections=sections,
    )
