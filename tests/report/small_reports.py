"""Reports of tiny models, made in a second or two."""

from collections.abc import Sequence
from typing import Any

import torch

from tests.train.small import cycles_and_stars, regression_data, small_model
from tfgw.datasets import GraphDataset
from tfgw.nn.kernel_model import Combination
from tfgw.report import Page, model_report
from tfgw.report.report_data import ReportData
from tfgw.train import EpochRecord, Preprocessing, TrainedModel, num_outputs
from tfgw.train.kernel_pipeline import kernel_config, train_kernel

HISTORY = [EpochRecord(n, 1 / n, 0.5 + 0.1 * n, alpha=0.5, live_nodes=5.0) for n in range(1, 5)]


def trained_on(dataset: GraphDataset, task: Any, outputs: int = 2) -> TrainedModel:
    return TrainedModel(
        model=small_model(dataset, outputs=outputs).double().eval(),
        task=task,
        classes=dataset.classes,
        preprocessing=Preprocessing.fit(dataset),
        source={"dataset": dataset.name},
    )


def dataset_for(task: str, classes: Sequence[Any] = ("star", "cycle")) -> GraphDataset:
    if task == "regression":
        return regression_data(2)
    dataset = cycles_and_stars(20)
    if task == "multilabel":
        graphs = [graph.clone() for graph in dataset]
        for graph in graphs:
            graph.y = torch.tensor([[float(graph.y), float(graph.num_nodes > 5)]])
        return GraphDataset.from_graphs(graphs, name="labels")
    dataset.classes = tuple(classes)
    return dataset


def small_page(task: str = "classification", *, name: str = "small", classes: Sequence[Any] = ("star", "cycle"),
               graphs: Sequence[str] = (), options: dict[str, Any] | None = None) -> Page:  # fmt: skip
    dataset = dataset_for(task, classes)
    parts = {"training": dataset[:14], "test": dataset[14:]}
    shown = {"epochs": 4} if options is None else options
    return model_report(trained_on(dataset, task), parts, name=name, options=shown, history=HISTORY, graphs=graphs)


def small_report_data() -> ReportData:
    dataset = dataset_for("classification")
    return ReportData.of(trained_on(dataset, "classification"), {"training": dataset[:14], "test": dataset[14:]})


def kernel_trained(dataset: GraphDataset, task: Any, combine: Combination = "scores") -> TrainedModel:
    """A kernel machine with two levels and two α."""
    preprocessing = Preprocessing.fit(dataset)
    prepared = preprocessing(dataset)
    config = kernel_config(prepared, num_outputs(prepared, task), levels=(0, 1), combine=combine)
    training = train_kernel(prepared, config, task=task)
    return TrainedModel(
        model=training.model,
        task=task,
        classes=dataset.classes,
        preprocessing=preprocessing,
        source={"dataset": dataset.name},
        target_scaler=training.target_scaler,
    )


def kernel_parts(
    task: str = "classification", combine: Combination = "scores"
) -> tuple[TrainedModel, dict[str, GraphDataset]]:
    """A kernel machine, its 14 training graphs, and 6 test graphs."""
    dataset = dataset_for(task)
    return kernel_trained(dataset[:14], task, combine), {"training": dataset[:14], "test": dataset[14:20]}
