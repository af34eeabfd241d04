"""The report of a model: its sections, in their order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfgw.datasets import GraphDataset
from tfgw.plot.embedding_plot import Method
from tfgw.plot.template_plot import node_looks
from tfgw.report.explained import chosen_graphs, explained, section_name
from tfgw.report.map_section import map_section
from tfgw.report.overview import overview, training
from tfgw.report.page import Page, Tile
from tfgw.report.performance import performance
from tfgw.report.subjects import Drawings, Subjects
from tfgw.report.template_section import template_section
from tfgw.report.trust_section import trust
from tfgw.train import EpochRecord, TrainedModel

COLOUR_GRAPHS = 300
"""Graphs whose features decide the colours of real-valued ones."""


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
    """Gather everything about a model on one page.

    Args:
        trained: The model.
        parts: Graphs as they were loaded, by part; ``"training"`` and ``"test"`` have a meaning.
        name: What the graphs are called.
        options: With which it was trained.
        history: The epochs of its training.
        graphs: Names of graphs to explain; none: the most certain, the most uncertain, and wrong ones.
        method: How the map is made: ``"pca"`` or ``"tsne"``.
    """
    subjects = Subjects.of(trained, parts)
    chosen = chosen_graphs(subjects, graphs)
    sample = np.linspace(0, len(subjects) - 1, min(len(subjects), COLOUR_GRAPHS)).astype(int)
    looks = node_looks(subjects.model, [subjects.graph(int(number)).x.double().numpy() for number in sample])
    drawings = Drawings(subjects, looks)
    quality, tiles = performance(subjects)
    count = subjects.distances.shape[1]
    networks = len(subjects.model.members)
    tiles += [
        Tile(f"{len(subjects):,}", "graphs", name),
        Tile(str(count), "templates", f"of {networks} networks" if networks > 1 else ""),
    ]
    return Page(
        title=f"TFGW report: {name}",
        lead=f"A {trained.task} model that compares graphs with {count} learned templates by optimal transport.",
        tiles=tiles,
        sections=[
            quality,
            template_section(subjects, drawings),
            explained(subjects, chosen, drawings),
            map_section(subjects, {number: section_name(number) for number in chosen}, method=method),
            training(history),
            trust(subjects),
            overview(subjects, {} if options is None else options),
        ],
    )
