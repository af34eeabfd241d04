"""Performance of a model on held-out graphs, compared with simple baselines."""

from math import sqrt

import numpy as np

from tfgw.baselines import RandomForest
from tfgw.plot import calibration, confusion, precision_recall, predicted_values, roc
from tfgw.report.page import Plot, Section, Table, Text, Tile
from tfgw.report.report_data import TEST, TRAINING, ReportData
from tfgw.train.metrics import classification_metrics, regression_metrics

ACCURACY = ["", "accuracy", "95 % interval (Wilson)", "correct"]
"""Header of a table of accuracies."""
Z = 1.959964
"""Quantile of the normal distribution for 95 % intervals."""


def wilson_interval(right: int, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a proportion, given ``right`` of ``count`` successes."""
    share, weight = right / count, Z * Z / count
    middle = (share + weight / 2) / (1 + weight)
    half = Z * sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def performance(data: ReportData) -> tuple[Section, list[Tile]]:
    """Return the section and its most important numbers."""
    part = _part_name(data)
    if data.y is None:
        return Section("performance", "Performance", [Text("The graphs have no targets.")]), []
    blocks, tiles = (_values if data.trained.task == "regression" else _shares)(data, part)
    more, more_tiles = _left_out(data)
    return Section("performance", "Performance", [*blocks[:1], *more, *blocks[1:]]), [*tiles, *more_tiles]


def _part_name(data: ReportData) -> str:
    if (data.part == TEST).any():
        return "test graphs"
    only_training = data.kernel is not None and list(data.parts) == [data.kernel.training_part]
    return "training graphs, leave-one-out" if only_training else "given graphs"


def _left_out(data: ReportData) -> tuple[list[Table], list[Tile]]:
    """Return the leave-one-out performance of a kernel machine, if other graphs are evaluated besides."""
    if data.kernel is None or data.kernel.training_part is None or len(data.parts) == 1:
        return [], []
    assert data.y is not None
    chosen, right = data.part == data.kernel.training_part, data.right
    caption = f"Leave-one-out on {int(chosen.sum())} training graphs: each is predicted by a machine without it"
    if right is None:
        found = regression_metrics(data.y[chosen], data.predicted_values[chosen])
        header = ["", "mean absolute error", "root mean squared error", "R²"]
        return [Table(header, [["this model", *found.values()]], caption)], [
            Tile(f"{found['mae']:.3g}", "leave-one-out mean absolute error")
        ]
    table = Table(ACCURACY, [_accuracy_row("this model", right[chosen])], caption)
    low, high = wilson_interval(int(right[chosen].sum()), int(chosen.sum()))
    note = f"95 % interval {100 * low:.0f} % to {100 * high:.0f} %"
    return [table], [Tile(f"{100 * right[chosen].mean():.1f} %", "leave-one-out accuracy", note)]


def _values(data: ReportData, part: str) -> tuple[list[Table | Plot | Text], list[Tile]]:
    chosen = data.measured
    assert data.y is not None
    y, predicted = data.y[chosen], data.predicted_values[chosen]
    found = regression_metrics(y, predicted)
    train = data.y[data.part == TRAINING]
    mean = train.mean(0) if len(train) else y.mean(0)
    naive = regression_metrics(y, np.broadcast_to(mean, y.shape))
    header = ["", "mean absolute error", "root mean squared error", "R²"]
    rows = [["this model", *found.values()], ["mean of the targets", *naive.values()]]
    names = data.class_names
    numbers = Table(["graph", *(f"true {n}" for n in names), *(f"predicted {n}" for n in names)],
                    [[name, *map(float, a), *map(float, b)] for name, a, b
                     in zip(np.array(data.names)[chosen], y, predicted, strict=True)])  # fmt: skip
    plot = Plot("values", predicted_values(y, predicted, names), f"Predicted against true values of the {part}.",
                "Points on the line are correct predictions.", numbers)  # fmt: skip
    tiles = [Tile(f"{found['mae']:.3g}", "mean absolute error", f"{naive['mae']:.3g} when predicting the mean")]
    return [Table(header, rows, f"On {int(chosen.sum())} {part}"), plot], tiles


def _shares(data: ReportData, part: str) -> tuple[list[Table | Plot | Text], list[Tile]]:
    chosen, right = data.measured, data.right
    assert data.y is not None
    assert right is not None
    y, count = data.y[chosen], int(chosen.sum())
    rows, tiles = [_accuracy_row("this model", right[chosen])], [_accuracy_tile(right[chosen])]
    for name, known in _easy(data).items():
        rows.append(_accuracy_row(name, known))
        tiles.append(Tile(f"{100 * known.mean():.1f} %", name))
    blocks: list[Table | Plot | Text] = [Table(ACCURACY, rows, f"On {count} {part}")]
    probabilities, names = data.probabilities[chosen], data.class_names
    is_class = data.trained.task == "classification"
    if is_class:
        blocks += _of_classes(y, probabilities, names, part)
        truth = np.eye(len(names))[y]
        confidence, hit = probabilities.max(1), right[chosen]
    else:
        truth = (y > 0.5).astype(float)
        confidence = np.maximum(probabilities, 1 - probabilities).ravel()
        hit = ((probabilities > 0.5) == (truth > 0.5)).ravel()
    if any(0 < column.sum() < count for column in truth.T):
        shares = _curve_table(truth, probabilities, names)
        alt = f"of each class against the rest, on the {part}."
        blocks += [
            Plot("roc", roc(truth, probabilities, names), f"ROC curves {alt}", "ROC curves; higher is better.", shares),
            Plot("precision-recall", precision_recall(truth, probabilities, names), f"Precision by recall {alt}",
                 "Precision–recall curves.", shares),
        ]  # fmt: skip
    blocks.append(
        Plot(
            "calibration",
            calibration(hit.astype(int), confidence),
            "Share of correct predictions by confidence.",
            "Calibration: on the line, the confidence equals the share of correct predictions.",
            _calibration_table(hit, confidence),
        )
    )
    return blocks, tiles


def _of_classes(y: np.ndarray, probabilities: np.ndarray, names: list[str], part: str) -> list[Table | Plot | Text]:
    found = classification_metrics(y, probabilities)
    matrix = found.pop("confusion_matrix")
    rows = [[key.replace("_", " "), value] for key, value in found.items()]
    numbers = Table(["true \\ predicted", *names], [[n, *row] for n, row in zip(names, matrix, strict=True)])
    true, predicted = ([names[number] for number in numbers] for numbers in (y, probabilities.argmax(1)))
    drawn = confusion(true, predicted, labels=names)
    alt = f"Confusion matrix: {part} by true and predicted class."
    return [
        Table(["metric", "value"], rows),
        Plot("confusion", drawn, alt, "Confusion matrix: graphs by true and predicted class.", numbers),
    ]


def _accuracy_row(name: str, right: np.ndarray) -> list[object]:
    low, high = wilson_interval(int(right.sum()), len(right))
    share, interval = f"{100 * right.mean():.1f} %", f"{100 * low:.1f} % to {100 * high:.1f} %"
    return [name, share, interval, f"{int(right.sum())} of {len(right)}"]


def _accuracy_tile(right: np.ndarray) -> Tile:
    low, high = wilson_interval(int(right.sum()), len(right))
    return Tile(f"{100 * right.mean():.1f} %", "accuracy", f"95 % interval {100 * low:.0f} % to {100 * high:.0f} %")


def _easy(data: ReportData) -> dict[str, np.ndarray]:
    """Return whether simple baselines, fitted on the training graphs, are correct on each evaluated graph."""
    if data.trained.task != "classification" or TRAINING not in data.parts or not (data.part == TEST).any():
        return {}
    assert data.y is not None
    train, test = data.y[data.part == TRAINING], data.y[data.part == TEST]
    largest = np.bincount(train).argmax()
    forest = RandomForest(random_state=0).fit(list(data.prepared[TRAINING]), train)
    return {
        "largest class": np.asarray(test == largest),
        "random forest on counts": np.asarray(forest.predict(list(data.prepared[TEST])) == test),
    }


def _curve_table(truth: np.ndarray, scores: np.ndarray, names: list[str]) -> Table:
    from sklearn.metrics import average_precision_score, roc_auc_score

    rows = [
        [name, int(y.sum()), float(roc_auc_score(y, s)), float(average_precision_score(y, s))]
        for name, y, s in zip(names, truth.T, scores.T, strict=True)
        if 0 < y.sum() < len(y)
    ]
    return Table(["class", "graphs", "area under ROC", "average precision"], rows)


def _calibration_table(hit: np.ndarray, confidence: np.ndarray) -> Table:
    bins = np.minimum((confidence * 10).astype(int), 9)
    rows = []
    for number in np.unique(bins).tolist():
        here = bins == number
        limits = f"{10 * number} % to {10 * number + 10} %"
        rows.append([limits, int(here.sum()), float(confidence[here].mean()), float(hit[here].mean())])
    return Table(["confidence", "predictions", "mean confidence", "share correct"], rows)
