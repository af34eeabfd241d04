"""Train models, keep them in files, and run them over datasets.

>>> model = TFGWModel(config).init_templates(dataset[split.train])
>>> result = fit(model, dataset[split.train], dataset[split.val], config=TrainConfig(epochs=100))
>>> evaluate(model, dataset[split.test], task="classification").score
"""

from tfgw.train.check import ModelCheck, check_model
from tfgw.train.config import TrainConfig
from tfgw.train.evaluate import Evaluation, embeddings, evaluate, outputs
from tfgw.train.loop import FitResult, fit
from tfgw.train.model_file import TrainedModel, load_model, save_model
from tfgw.train.pipeline import Parts, Training, build_tfgw, num_outputs, train_model
from tfgw.train.preprocessing import Preprocessing
from tfgw.train.records import EpochRecord, Kept
from tfgw.train.tasks import SCORE_NAMES, Task, decide, probabilities
from tfgw.train.tensor_file import FileError

__all__ = [
    "SCORE_NAMES",
    "EpochRecord",
    "Evaluation",
    "FileError",
    "FitResult",
    "Kept",
    "ModelCheck",
    "Parts",
    "Preprocessing",
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
