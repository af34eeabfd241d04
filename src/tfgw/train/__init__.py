"""Train models, save them to files, and apply them to datasets.

>>> parts, config = Parts.of(dataset, random_split(dataset)), TrainConfig(epochs=100)
>>> build = partial(build_tfgw, architecture=TFGWConfig(...))
>>> training = train_model(parts, build, config, preprocessing=Preprocessing.fit(parts.train))
>>> evaluate(training.model, training.parts.test, task=config.task).score

Regression targets are standardised, so the outputs of the model and ``training.parts`` are scaled;
``training.target_scaler`` converts them back. Save it with the model (:class:`TrainedModel`).

:func:`fit` is the training loop on its own, for any network and preprocessed graphs.
"""

from tfgw.train.config import TrainConfig
from tfgw.train.diagnostics import ModelCheck, check_model
from tfgw.train.evaluate import Evaluation, embeddings, evaluate, outputs
from tfgw.train.graph_stream import GraphStream, PreparedGraphs, StreamTally
from tfgw.train.history import EpochRecord, Kept
from tfgw.train.loop import FitResult, fit
from tfgw.train.model_file import TrainedModel, load_model, save_model
from tfgw.train.pipeline import Parts, Training, build_tfgw, num_outputs, train_model
from tfgw.train.preprocessing import Preprocessing
from tfgw.train.tasks import SCORE_NAMES, Task, decide, probabilities
from tfgw.train.tensor_file import FileError

__all__ = [
    "SCORE_NAMES",
    "EpochRecord",
    "Evaluation",
    "FileError",
    "FitResult",
    "GraphStream",
    "Kept",
    "ModelCheck",
    "Parts",
    "PreparedGraphs",
    "Preprocessing",
    "StreamTally",
    "Task",
    "TrainConfig",
    "TrainedModel",
    "Training",
    "build_tfgw",
    "check_model",
    "decide",
    "embeddings",
    "evaluate",
    "fit",
    "load_model",
    "num_outputs",
    "outputs",
    "probabilities",
    "save_model",
    "train_model",
]
