"""Evaluation plots: confusion matrix, ROC, precision and recall, calibration, distances by class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfgw.plot.plot_style import INK, class_colour, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 10


@styled
def confusion(y_true: Sequence[Any], y_pred: Sequence[Any], *, labels: Sequence[Any] | None = None) -> "Figure":
    """Plot the confusion matrix (scikit-learn's ``ConfusionMatrixDisplay``).

    Args:
        y_true: Class of each graph.
        y_pred: Predicted class of each graph.
        labels: Classes in the order to plot (default: all that occur).
    """
    from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix
    from sklearn.utils.multiclass import unique_labels

    true, predicted = np.asarray(y_true).tolist(), np.asarray(y_pred).tolist()  # plain values, also of tensors
    known = list(unique_labels(true, predicted)) if labels is None else np.asarray(labels).tolist()
    counts = confusion_matrix([str(y) for y in true], [str(y) for y in predicted], labels=[str(y) for y in known])
    side = min(6.0, 2.4 + 0.35 * len(known))
    figure, axes = new_figure(width=side + 0.6, height=side)
    display = ConfusionMatrixDisplay(counts, display_labels=[shortened(name) for name in known])
    display.plot(ax=axes[0, 0], cmap="Blues", colorbar=False, values_format="d")
    axes[0, 0].set(xlabel="predicted", ylabel="true")
    if len(known) > 4:
        axes[0, 0].tick_params(axis="x", rotation=60)
    return figure


@styled
def roc(y: np.ndarray, scores: np.ndarray, names: Sequence[str]) -> "Figure":
    """Plot the ROC curve of each class against the rest; ``y`` is 0/1 and ``scores`` real, ``(graphs, classes)``."""
    from sklearn.metrics import RocCurveDisplay

    figure, axes = new_figure(width=4.0, height=3.8)
    for number, name, truth, score in _two_sided(y, scores, names):
        line = {"color": class_colour(number), "linestyle": ("-", "--", ":", "-.")[number % 4]}
        RocCurveDisplay.from_predictions(truth, score, ax=axes[0, 0], name=shortened(name), curve_kwargs=line)
    axes[0, 0].plot([0, 1], [0, 1], color=INK, lw=0.7, alpha=0.5)
    axes[0, 0].set(xlabel="false positive rate", ylabel="true positive rate")
    axes[0, 0].legend(fontsize="small", loc="lower right")
    return figure


@styled
def precision_recall(y: np.ndarray, scores: np.ndarray, names: Sequence[str]) -> "Figure":
    """Plot the precision–recall curve of each class; arguments as in :func:`roc`."""
    from sklearn.metrics import PrecisionRecallDisplay

    figure, axes = new_figure(width=4.0, height=3.8)
    for number, name, truth, score in _two_sided(y, scores, names):
        line = {"color": class_colour(number), "linestyle": ("-", "--", ":", "-.")[number % 4]}
        PrecisionRecallDisplay.from_predictions(truth, score, ax=axes[0, 0], name=shortened(name), curve_kwargs=line)
    axes[0, 0].set(xlabel="recall", ylabel="precision", ylim=(0, 1.03), xlim=(0, 1.02))
    axes[0, 0].legend(fontsize="small", loc="lower left")
    return figure


@styled
def calibration(y: np.ndarray, probabilities: np.ndarray) -> "Figure":
    """Plot the share of correct predictions by confidence; ``y`` is 1 for correct predictions, else 0, ``(n,)``."""
    from sklearn.calibration import CalibrationDisplay

    figure, axes = new_figure(width=4.0, height=3.8)
    axis = axes[0, 0]
    CalibrationDisplay.from_predictions(y, probabilities, n_bins=BINS, ax=axis, name="the model", color=class_colour(0))
    axis.set(xlabel="confidence of the prediction", ylabel="share of correct predictions")
    axis.legend(fontsize="small", loc="lower right")
    return figure


@styled
def distances_by_class(distances: np.ndarray, names: Sequence[str], order: Sequence[str]) -> "Figure":
    """Plot the distances to each template with one box per class."""
    array, templates = np.array(names), distances.shape[1]
    known = [name for name in order if name in set(names)]
    figure, axes = new_figure(width=min(11.0, 2.0 + 0.28 * templates * len(known)), height=3.2)
    axis, width = axes[0, 0], 0.8 / max(1, len(known))
    for number, name in enumerate(known):
        places = np.arange(templates) + (number - (len(known) - 1) / 2) * width
        colour = class_colour(order.index(name))
        lines = {name: {"color": INK} for name in ("medianprops", "whiskerprops", "capprops")}
        columns = [distances[array == name, k] for k in range(templates)]
        style: dict[str, Any] = {"patch_artist": True, "showfliers": False, "manage_ticks": False, **lines}
        boxes = axis.boxplot(columns, positions=places, widths=0.85 * width, **style)
        for box in boxes["boxes"]:
            box.set(facecolor=colour, alpha=0.75, edgecolor=INK, hatch=("", "//", "..", "xx")[number % 4])
        axis.fill_between(
            [], [], color=colour, alpha=0.75, hatch=("", "//", "..", "xx")[number % 4], label=shortened(name)
        )
    axis.set_xticks(range(templates), [str(k + 1) for k in range(templates)])
    axis.set(xlabel="template", ylabel="distance")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize="small", ncols=min(6, len(known)), loc="upper center", bbox_to_anchor=(0.5, 1.16))
    return figure


@styled
def predicted_values(y: np.ndarray, predicted: np.ndarray, names: Sequence[str]) -> "Figure":
    """Plot predicted against true values, one panel per target."""
    figure, axes = new_figure(len(names), width=3.8, height=3.6)
    for number, (axis, name) in enumerate(zip(axes[0], names, strict=True)):
        axis.scatter(y[:, number], predicted[:, number], s=16, color=class_colour(number), alpha=0.7)
        both = np.concatenate([y[:, number], predicted[:, number]])
        axis.plot([both.min(), both.max()], [both.min(), both.max()], color=INK, lw=0.7)
        axis.set(xlabel=f"true {name}", ylabel=f"predicted {name}")
    return figure


def shortened(name: Any, length: int = 24) -> str:
    """Shorten a name for a legend."""
    text = str(name)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _two_sided(
    y: np.ndarray, scores: np.ndarray, names: Sequence[str]
) -> list[tuple[int, str, np.ndarray, np.ndarray]]:
    """Return the classes with both positive and negative graphs; for two classes, only the second."""
    first = 1 if len(names) == 2 and np.array_equal(y[:, 0], 1 - y[:, 1]) else 0
    numbers = [number for number in range(first, len(names)) if 0 < y[:, number].sum() < len(y)]
    return [(number, names[number], y[:, number], scores[:, number]) for number in numbers]
