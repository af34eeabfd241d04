"""Save and load a trained model in one file, with everything needed to apply it to new graphs."""

import copy
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from tfgw.datasets import GraphDataset, Graphs, NodeEncoding, TableColumns, as_graph_dataset, load
from tfgw.datasets.graph_source import GraphSource
from tfgw.datasets.loading import open_source
from tfgw.datasets.typed_json import from_json
from tfgw.nn import Encoder, Ensemble, KernelConfig, KernelModel, TFGWConfig, TFGWModel
from tfgw.nn.ensemble import members_of
from tfgw.train.evaluate import BATCH_SIZE, Evaluation, embeddings, outputs
from tfgw.train.graph_stream import GraphStream, PreparedGraphs, StreamOptions
from tfgw.train.kernel_file import kernel_model_from
from tfgw.train.metrics import classification_metrics, regression_metrics
from tfgw.train.output_columns import Columns, distance_columns, identifying_columns, prediction_columns, target_columns
from tfgw.train.preprocessing import Preprocessing
from tfgw.train.target_scaler import TargetScaler
from tfgw.train.tasks import SCORE_NAMES, Task, decide, probabilities, sums
from tfgw.train.tensor_file import FileError, read_tensors, write_tensors

KIND = "model"
Streamed = str | os.PathLike[str] | GraphSource | GraphDataset | Iterable[Data]
FLOATING_TYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class SourceOptions(StreamOptions, total=False):
    """Options of :meth:`TrainedModel.stream`."""

    data_dir: str | os.PathLike[str] | None
    columns: TableColumns | None


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A trained model with its task and preprocessing. Its methods take datasets as loaded, or lists of graphs.

    Args:
        model: The network, an ensemble of networks with the same architecture, or a kernel machine.
        task: Kind of prediction.
        classes: Original label of each class; empty for regression.
        preprocessing: Preprocessing of graphs before they enter the network.
        source: Description of the source of the training graphs (JSON data).
        encoding: Node encoding, including the labels that the model knows. If ``None``, the model can be applied to
            graphs, but not to files.
        columns: Column names of the table of molecules that the model was trained on, if any.
        target_scaler: Converts outputs of the network to predicted values. ``None`` if the outputs are the values.
    """

    model: TFGWModel | Ensemble | KernelModel
    task: Task
    classes: tuple[int | str, ...]
    preprocessing: Preprocessing
    source: dict[str, Any]
    encoding: NodeEncoding | None = None
    target_scaler: TargetScaler | None = None
    columns: TableColumns | None = None

    @property
    def members(self) -> list[TFGWModel]:
        """The networks of the ensemble, or the single network. A kernel machine has none and raises an error."""
        if isinstance(self.model, KernelModel):
            raise ValueError(
                "the model is a kernel machine, which compares graphs with its training graphs and has no networks"
            )
        return members_of(self.model)

    def load(
        self,
        source: str | os.PathLike[str],
        *,
        data_dir: str | os.PathLike[str] | None = None,
        columns: TableColumns | None = None,
    ) -> GraphDataset:
        """Load graphs, with or without targets, with the encoding of the model; see :func:`tfgw.datasets.load`.

        Node labels that the model has not seen are encoded as zeros, with a warning. For a table of molecules,
        ``columns`` is required only if its column names differ from those of the training table.
        """
        self._require_encoding()
        return load(source, data_dir=data_dir, encoding=self.encoding, columns=columns or self.columns)

    def _require_encoding(self) -> None:
        if self.encoding is None:
            raise ValueError(
                "the model file has no node encoding (it was written by an earlier version, or the model was trained on"
                " graphs without an encoding), so the model cannot load graphs from files; train it again"
            )

    def predict(self, dataset: Graphs) -> list[Any]:
        """Predict the label of each graph (or 0/1 labels, or values)."""
        decided = decide(self.task, self.outputs(dataset)).tolist()
        return [self.classes[number] for number in decided] if self.task == "classification" else decided

    def probabilities(self, dataset: Graphs) -> Tensor:
        """Probability of each class (or label), ``(num_graphs, num_classes)``."""
        return probabilities(self.task, self.outputs(dataset))

    def outputs(self, dataset: Graphs) -> Tensor:
        """Scores of classes or labels, or the predicted values, ``(num_graphs, out_channels)``."""
        return self._outputs(self._prepared(dataset))

    def embed(self, dataset: Graphs) -> Tensor:
        """Distances to the templates, ``(num_graphs, num_templates)``; an ensemble has those of all members."""
        return embeddings(self.model, self._prepared(dataset))

    def stream(
        self,
        source: Streamed,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        columns: TableColumns | None = None,
        **options: Unpack[StreamOptions],
    ) -> GraphStream:
        """Stream any number of graphs in chunks, with bounded memory.

        Args:
            source: A name or path as in :meth:`load`, or an iterable of graphs.
            data_dir: As in :meth:`load`.
            columns: As in :meth:`load`.
            **options: As in :class:`GraphStream`.
        """
        if isinstance(source, str | os.PathLike):
            self._require_encoding()
            source = open_source(source, data_dir=data_dir, columns=columns or self.columns)
        if isinstance(source, GraphDataset):
            self.check_encoding(source)
        return GraphStream(source=source, encoding=self.encoding, preprocessing=self.preprocessing, **options)

    def predict_stream(self, source: Streamed, **options: Unpack[SourceOptions]) -> Iterator[Columns]:
        """Predictions for the graphs of a source, a chunk at a time, as the columns that ``tfgw predict`` writes.

        >>> for columns in trained.predict_stream("molecules.jsonl.gz"):
        ...     columns["graph"], columns["prediction"], columns["probability"]

        The arguments are those of :meth:`stream`. The results are bit for bit those of :meth:`predict`.
        """
        return map(self.prediction_columns, self.stream(source, **options))

    def embed_stream(self, source: Streamed, **options: Unpack[SourceOptions]) -> Iterator[Columns]:
        """Distances to the templates for the graphs of a source; see :meth:`predict_stream`."""
        return map(self.distance_columns, self.stream(source, **options))

    def prediction_columns(self, graphs: PreparedGraphs) -> Columns:
        """Predictions for a chunk of :meth:`stream`."""
        places = identifying_columns(graphs.positions, graphs.identifiers)
        known = target_columns(self.task, graphs.targets, len(graphs.positions))
        found = self._outputs(graphs.dataset, batch_size=graphs.num_graphs).cpu()
        return places | known | prediction_columns(self.task, self.classes, found)

    def distance_columns(self, graphs: PreparedGraphs) -> Columns:
        """Distances for a chunk of :meth:`stream`."""
        distances = embeddings(self.model, graphs.dataset, batch_size=graphs.num_graphs).cpu()
        return identifying_columns(graphs.positions, graphs.identifiers) | distance_columns(distances)

    def evaluate(self, dataset: Graphs) -> Evaluation:
        """Compute loss and score on labelled graphs; their classes must be known to the model."""
        loss, score, *_ = self._compared(dataset)
        return Evaluation(loss, score)

    def measure(self, dataset: Graphs) -> dict[str, Any]:
        """Compute number, score, loss and metrics of labelled graphs, by name; see :mod:`tfgw.train.metrics`."""
        loss, score, found, y = self._compared(dataset)
        basic = {"graphs": len(y), SCORE_NAMES[self.task]: score, "loss": loss}
        if self.task == "classification":
            chances = probabilities(self.task, found)
            return basic | classification_metrics(y.numpy(), chances.numpy())
        if self.task == "regression":
            return basic | regression_metrics(y.reshape(len(y), -1).numpy(), found.numpy())
        return basic

    def _compared(self, dataset: Graphs) -> tuple[float, float, Tensor, Tensor]:
        """Return mean loss and score on labelled graphs, the outputs, and the targets as class indices of the model."""
        prepared = self.with_own_classes(self._prepared(dataset))
        y = prepared.y
        if y is None:
            raise ValueError("dataset: the graphs have no targets y")
        is_known = y >= 0 if self.task == "classification" else y.reshape(len(y), -1).isfinite().all(1)
        if not is_known.all():
            prepared, y = prepared[is_known], y[is_known]
        if not len(y):
            raise ValueError("dataset: no graph has a target")
        found = self._outputs(prepared).cpu()
        loss, score = (float(total) / len(y) for total in sums(self.task, found, y))
        return loss, score, found, y

    def _outputs(self, prepared: GraphDataset, *, batch_size: int = BATCH_SIZE) -> Tensor:
        found = outputs(self.model, prepared, batch_size=batch_size)
        return found if self.target_scaler is None else self.target_scaler.restored(found)

    def check_encoding(self, dataset: GraphDataset) -> None:
        """Raise ``ValueError`` if the encoding of the graphs is known to differ from that of the model."""
        if self.encoding is not None:
            self.encoding.check_columns(dataset.encoding)

    def _prepared(self, graphs: Graphs) -> GraphDataset:
        dataset = as_graph_dataset(graphs, encoding=self.encoding)
        self.check_encoding(dataset)
        return self.preprocessing(dataset.with_values() if self.task == "regression" else dataset)

    def with_own_classes(self, dataset: GraphDataset) -> GraphDataset:
        """Convert the class indices of a dataset to those of the model."""
        if self.task != "classification" or dataset.classes == self.classes:
            return dataset
        y = dataset.stacked.get("y")
        if y is None or not dataset.classes:
            raise ValueError("dataset: the graphs have no classes")
        unknown = sorted(set(dataset.classes) - set(self.classes), key=str)
        if unknown:
            raise ValueError(f"dataset: contains classes that the model does not know: {', '.join(map(str, unknown))}")
        number = torch.tensor([self.classes.index(label) for label in dataset.classes])
        renumbered = dataset.with_tensors({"y": torch.where(y >= 0, number[y], -1)})
        renumbered.classes = self.classes
        return renumbered


def save_model(trained: TrainedModel, path: str | os.PathLike[str]) -> None:
    """Write ``trained`` to one safetensors file; nothing in it is pickled."""
    description = {
        **_architecture(trained),
        "task": trained.task,
        "classes": list(trained.classes),
        "preprocessing": asdict(trained.preprocessing),
        "source": trained.source,
        "encoding": None if trained.encoding is None else trained.encoding.as_dict(),
        "columns": None if trained.columns is None else asdict(trained.columns),
        "target_scaler": None if trained.target_scaler is None else asdict(trained.target_scaler),
    }
    write_tensors(Path(path), trained.model.state_dict(), description, kind=KIND)


def _architecture(trained: TrainedModel) -> dict[str, Any]:
    """Return the description of a model without its tensors."""
    if isinstance(trained.model, KernelModel):
        return {"kernel_machine": asdict(trained.model.config)}
    model = trained.members[0]
    return {
        "architecture": asdict(model.config),
        "members": len(trained.members),
        "own_encoder": type(model.encoder).__qualname__ if model.has_own_encoder else None,
        "dtype": str(model.pool.template_weights.dtype).removeprefix("torch."),
    }


def load_model(path: str | os.PathLike[str], *, encoder: Encoder | None = None) -> TrainedModel:
    """Read a file that :func:`save_model` wrote.

    Args:
        path: Path of the model file.
        encoder: Required for a model with a custom encoder: an encoder of the same architecture. Its weights are
            replaced by those of the file.

    Raises:
        FileError: If the file is missing, truncated, damaged, not a model, or from a later version.
    """
    path = Path(path)
    tensors, description = read_tensors(path, kind=KIND)
    own_encoder = description.get("own_encoder")
    if isinstance(own_encoder, str) and own_encoder and encoder is None:
        raise ValueError(f"encoder: required, because {path} was saved with a {own_encoder}")
    try:
        return _described(tensors, description, encoder)
    except RuntimeError as error:
        raise FileError(f"{path}: the weights do not match the architecture") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise FileError(f"{path}: not a valid model ({error!r})") from error


def _described(tensors: dict[str, Tensor], description: dict[str, Any], encoder: Encoder | None) -> TrainedModel:
    """Build the model of a file. The file is not trusted: sizes are checked before memory is allocated."""
    if description["task"] not in get_args(Task):
        raise ValueError(f"unknown task {description['task']!r}")
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise ValueError("weights are not finite")
    config: TFGWConfig | KernelConfig
    model: TFGWModel | Ensemble | KernelModel
    if "kernel_machine" in description:
        model = kernel_model_from(tensors, description["kernel_machine"])
        config = model.config
    else:
        config, model = _network(tensors, description, encoder)
    encoding, columns = description.get("encoding"), description.get("columns")
    return TrainedModel(
        model=model.eval(),
        task=description["task"],
        classes=_classes(description["classes"], config.out_channels if description["task"] == "classification" else 0),
        preprocessing=_preprocessing(description["preprocessing"], config),
        source=_source(description["source"]),
        encoding=None if encoding is None else _encoding(encoding, config),
        columns=None if columns is None else from_json(TableColumns, columns),
        target_scaler=_target_scaler(description.get("target_scaler"), config.out_channels),
    )


def _network(
    tensors: dict[str, Tensor], description: dict[str, Any], encoder: Encoder | None
) -> tuple[TFGWConfig, TFGWModel | Ensemble]:
    config = from_json(TFGWConfig, description["architecture"])
    count = description.get("members", 1)  # files of earlier versions contain one network
    if not isinstance(description.get("own_encoder"), str | None):
        raise ValueError("the encoder has no name")
    if type(count) is not int or count < 1:
        raise ValueError(f"{count!r} members")
    for number in range(count):
        _check_sizes(config, _of_member(tensors, number, count), has_own_encoder=encoder is not None)
    members = [TFGWModel(config, encoder=copy.deepcopy(encoder)) for _ in range(count)]
    model = (members[0] if count == 1 else Ensemble(members)).to(FLOATING_TYPES[description["dtype"]])
    model.load_state_dict(tensors)
    return config, model


def _target_scaler(entries: dict[str, Any] | None, values: int) -> TargetScaler | None:
    if entries is None:
        return None
    scaler = from_json(TargetScaler, entries)
    if {len(scaler.mean), len(scaler.scale)} != {values}:
        raise ValueError("the target scale does not match the outputs")
    return scaler


def _classes(entries: Any, number: int) -> tuple[int | str, ...]:
    classes = tuple(entries)
    if len(classes) != number and number:
        raise ValueError(f"{len(classes)} classes for {number} outputs")
    if len(set(classes)) != len(classes) or not all(type(label) in (int, str) for label in classes):
        raise ValueError("classes are not distinct integers or strings")
    return classes


def _preprocessing(entries: Any, config: TFGWConfig | KernelConfig) -> Preprocessing:
    preprocessing = from_json(Preprocessing, entries)
    widths = {len(column) for column in (preprocessing.mean, preprocessing.scale) if column is not None}
    if not widths <= {preprocessing.in_channels} or preprocessing.in_channels != config.in_channels:
        raise ValueError("preprocessing has a different number of features")
    if (preprocessing.mean is None) != (preprocessing.scale is None) or 0 in (preprocessing.scale or ()):
        raise ValueError("preprocessing has no scale")
    return preprocessing


def _encoding(entries: Any, config: TFGWConfig | KernelConfig) -> NodeEncoding:
    encoding = NodeEncoding.from_dict(entries)
    if encoding.num_columns != config.in_channels:
        raise ValueError("the encoding has a different number of features")
    return encoding


def _source(entries: Any) -> dict[str, Any]:
    if not isinstance(entries, dict):
        raise ValueError("the source is not an object")
    return entries


def _of_member(tensors: dict[str, Tensor], number: int, count: int) -> dict[str, Tensor]:
    """Return the weights of one network of a file."""
    if count == 1:
        return tensors
    prefix = f"members.{number}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _check_sizes(config: TFGWConfig, tensors: dict[str, Tensor], *, has_own_encoder: bool) -> None:
    """Raise ``RuntimeError`` if the tensors in the file do not have the described sizes."""
    found: list[Any] = [tuple(tensors["pool.template_weights"].shape)]
    expected: list[Any] = [(config.num_templates, config.template_nodes)]
    names = [name for name, tensor in tensors.items() if name.startswith("head.") and tensor.dim() == 2]
    last = max(names, key=lambda name: [int(part) for part in name.split(".") if part.isdigit()])
    found += [len(names), len(tensors[last])]
    expected += [config.hidden_layers + 1, config.out_channels]
    if not has_own_encoder:
        layers = [name for name in tensors if name.startswith("encoder.convs.") and name.endswith(".nn.0.weight")]
        found += [len(layers), tensors["pool.template_features"].shape[-1]]
        expected += [config.num_layers, config.in_channels + config.num_layers * config.width]
    if found != expected:
        raise RuntimeError(f"sizes are {found}, expected {expected}")
