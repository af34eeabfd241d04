"""The eight datasets of the paper, where a folder with their zips is named."""

import os
from pathlib import Path

import pytest
import torch

from tfgw.datasets import Standardize, load, random_split, statistics
from tfgw.datasets.tu_catalog import CONTENT_SHA256
from tfgw.datasets.tu_files import ZipFiles

FOLDER = os.environ.get("TFGW_DATA")

pytestmark = pytest.mark.skipif(not FOLDER, reason="TFGW_DATA names no folder with the real datasets")

# graphs, class counts, mean / min / max / median nodes, feature columns, disconnected graphs
FIGURES = {
    "MUTAG": (188, (63, 125), 17.93, 10, 28, 17.5, 7, 0),
    "PTC_MR": (344, (192, 152), 14.29, 2, 64, 13, 18, 0),
    "ENZYMES": (600, (100,) * 6, 32.63, 2, 126, 32, 21, 31),
    "PROTEINS_full": (1113, (663, 450), 39.06, 4, 620, 26, 32, 46),
    "NCI1": (4110, (2053, 2057), 29.87, 3, 111, 27, 37, 580),
    "IMDB-BINARY": (1000, (500, 500), 19.77, 12, 136, 17, 65, 0),
    "IMDB-MULTI": (1500, (500, 500, 500), 13.00, 7, 89, 10, 65, 0),
    "COLLAB": (5000, (2600, 775, 1625), 74.49, 32, 492, 52, 65, 0),
}

NAMES = [pytest.param(name, marks=pytest.mark.slow if name == "COLLAB" else ()) for name in FIGURES]


@pytest.mark.parametrize("name", NAMES)
def test_figures(name: str) -> None:
    found = statistics(load(name, data_dir=FOLDER))
    rounded = (
        found.graphs,
        found.class_counts,
        round(found.mean_nodes, 2),
        found.min_nodes,
        found.max_nodes,
        found.median_nodes,
        found.features,
        found.disconnected,
    )
    assert rounded == FIGURES[name]


@pytest.mark.parametrize("name", NAMES)
def test_content_is_that_of_the_catalogue(name: str) -> None:
    archive = Path(str(FOLDER)) / f"{name}.zip"
    if not archive.is_file():
        pytest.skip(f"TFGW_DATA has no {name}.zip")
    assert ZipFiles(archive).content_digest() == CONTENT_SHA256[name]


def test_original_labels_are_kept() -> None:
    assert load("MUTAG", data_dir=FOLDER).classes == (-1, 1)
    assert load("ENZYMES", data_dir=FOLDER).classes == (1, 2, 3, 4, 5, 6)


def test_social_graphs_list_each_edge_once_per_direction() -> None:
    dataset = load("IMDB-B", data_dir=FOLDER)
    assert round(statistics(dataset).mean_edges, 2) == 96.53
    assert not any(graph.has_self_loops() or not graph.is_coalesced() for graph in dataset)


def test_standardised_proteins_are_finite() -> None:
    dataset = load("PROTEIN", data_dir=FOLDER)
    split = random_split(dataset, seed=0)
    x = Standardize().fit(dataset, split.train).transform(dataset).x
    assert x.isfinite().all()
    assert torch.allclose(x.mean(dim=0), torch.zeros(32), atol=0.2)
