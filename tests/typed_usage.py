"""A user's code under ``mypy --strict``, which `make lint` checks: the public names have types, and the right ones."""

from typing import assert_type

import numpy as np
import torch
from torch import Tensor

import tfgw
from tfgw import ot
from tfgw.datasets import CanonicalOrder, GraphDataset, IndexSplit, load, random_split, skip_circles
from tfgw.estimators import FGWDistances, TFGWClassifier, TFGWRegressor, TFGWTransformer
from tfgw.nn import TFGWConfig, TFGWModel, TFGWPooling, sample_templates
from tfgw.train import Evaluation, TrainedModel, evaluate, load_model


def solver(x: Tensor, edge_index: Tensor) -> Tensor:
    graphs = ot.GraphBatch(x, edge_index=edge_index)
    result = ot.fgw(graphs, ot.Templates(x[None], structure=torch.eye(len(x))[None]), alpha=0.5)
    assert_type(result, ot.Transport)
    assert_type(result.plans, Tensor | None)
    assert_type(ot.diagnose(graphs, ot.Templates(x[None]), 0.0), ot.Diagnosis)
    assert_type(ot.canonical_order(graphs), ot.NodeOrder)
    return result.distances


def layers(dataset: GraphDataset) -> TFGWModel:
    pool = TFGWPooling(in_channels=7, num_templates=8, template_nodes=17)
    assert_type(sample_templates(list(dataset), 8, 17), ot.Templates)
    assert_type(pool.num_templates, int)
    return TFGWModel(TFGWConfig(in_channels=7, out_channels=2, num_templates=8, template_nodes=17)).init_templates(
        list(dataset), seed=0
    )


def datasets() -> GraphDataset:
    train, _ = skip_circles()
    assert_type(random_split(train), IndexSplit)
    return load("MUTAG").map(CanonicalOrder())


def estimators(graphs: GraphDataset, labels: list[str]) -> np.ndarray:
    assert_type(TFGWRegressor().fit(graphs, [0.5] * len(graphs)), TFGWRegressor)
    assert_type(TFGWTransformer().fit(graphs), TFGWTransformer)
    assert_type(FGWDistances().fit(graphs), FGWDistances)
    assert_type(ot.pairwise(graphs, alpha=0.5), Tensor)
    assert_type(ot.nearest(graphs, top=3, alpha=0.5).indices, Tensor)
    model = TFGWClassifier(num_templates=4)
    model.save("model.safetensors")
    assert_type(TFGWClassifier.load("model.safetensors"), TFGWClassifier)
    return model.predict(graphs)


def training(graphs: GraphDataset) -> Evaluation:
    trained = tfgw.load_model("model.safetensors")
    assert_type(trained, TrainedModel)
    assert_type(load_model("model.safetensors"), TrainedModel)
    return evaluate(trained.model, graphs, task=trained.task)
