"""Statistical comparison of models: paired differences on each dataset, and ranks over datasets.

records ─▶ accuracy of each model on each test fold ─┬▶ paired differences per dataset, corrected t-test, Holm
                                                     └▶ ranks per dataset ─▶ Friedman test, critical difference
"""

from collections.abc import Hashable, Iterable, Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from scipy import stats

from tfgw.paper.records import Record, Records
from tfgw.paper.series import Series

LEVEL = 0.05
"""Significance level; the confidence level of intervals is 1 minus this."""


class Difference(NamedTuple):
    """Difference between two models on a dataset, paired over test folds.

    Attributes:
        dataset: Name of the dataset.
        model: First model.
        other: Second model.
        units: Number of test folds, hold-outs or seeds with results of both models.
        difference: Mean accuracy of ``model`` minus that of ``other``.
        low: Lower end of the 95 % confidence interval.
        high: Upper end of the 95 % confidence interval.
        p: Two-sided p-value of the null hypothesis that the models are equally accurate.
        p_holm: p-value with Holm's correction for multiple comparisons.
    """

    dataset: str
    model: str
    other: str
    units: int
    difference: float
    low: float
    high: float
    p: float
    p_holm: float


class Ranking(NamedTuple):
    """Average ranks of models over datasets; rank 1 is the best, and equal accuracies share their ranks.

    Attributes:
        models: The models, best first.
        ranks: Average rank of each.
        datasets: Datasets with results of all models.
        p: p-value of the Friedman test that all models are equally good; ``None`` for fewer than three models or two
            datasets.
        critical_difference: Smallest significant difference between average ranks (Nemenyi test).
    """

    models: list[str]
    ranks: list[float]
    datasets: list[str]
    p: float | None
    critical_difference: float


def differences(series: Sequence[Series], records: Records, *, model: str, others: Sequence[str]) -> list[Difference]:
    """Compare ``model`` with each of ``others`` on every dataset with at least two common results."""
    known = {(one.dataset, one.row.model): one for one in series if one.has_cells}
    groups = {key: unit_groups(one, records) for key, one in known.items()}
    found = []
    for dataset in dict.fromkeys(one.dataset for one in series):
        for other in others:
            ours, theirs = groups.get((dataset, model), {}), groups.get((dataset, other), {})
            common = [unit for unit in ours if unit in theirs]
            if len(common) < 2:
                continue
            values = [_accuracy(ours[unit]) - _accuracy(theirs[unit]) for unit in common]
            share = test_share(known[dataset, model], [ours[unit] for unit in common])
            mean, half, p = corrected_t_test(values, test_share=share)
            found.append(Difference(dataset, model, other, len(common), mean, mean - half, mean + half, p, p))
    adjusted = holm([difference.p for difference in found])
    return [difference._replace(p_holm=p) for difference, p in zip(found, adjusted, strict=True)]


def ranking(series: Sequence[Series], records: Records, models: Sequence[str]) -> Ranking | None:
    """Rank models over the datasets with results of all models on the same test folds; ``None`` if there are none."""
    if len(models) < 2:
        return None
    groups: dict[str, dict[str, dict[Hashable, list[Record]]]] = {}
    for one in series:
        if one.has_cells and one.row.model in models:
            groups.setdefault(one.dataset, {})[one.row.model] = unit_groups(one, records)
    found = {dataset: _common_accuracies([by_model[model] for model in models]) for dataset, by_model in groups.items()}
    datasets = [dataset for dataset, row in found.items() if row is not None]
    if not datasets:
        return None
    accuracies = np.array([found[dataset] for dataset in datasets])
    ranks = average_ranks(accuracies)
    order = np.argsort(ranks, kind="stable")
    enough = len(models) > 2 and len(datasets) > 1
    return Ranking(
        models=[models[number] for number in order],
        ranks=ranks[order].tolist(),
        datasets=datasets,
        p=float(stats.friedmanchisquare(*accuracies.T).pvalue) if enough else None,
        critical_difference=critical_difference(len(models), len(datasets)),
    )


def confidence_interval(series: Series, groups: Sequence[Sequence[Record]]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean test accuracy.

    ``None`` for fewer than two units, or if their records do not contain the numbers of graphs.
    """
    if len(groups) < 2 or not all("train_graphs" in group[0]["result"] for group in groups):
        return None
    accuracies = [_accuracy(group) for group in groups]
    mean, half, _ = corrected_t_test(accuracies, test_share=test_share(series, groups))
    return mean - half, mean + half


def unit_groups(series: Series, records: Records) -> dict[Hashable, list[Record]]:
    """Return the records to average, by test fold, hold-out or seed."""
    groups = series.protocol.complete_groups(series, records)
    return {series.protocol.unit(group[0]["cell"]): group for group in groups}


def corrected_t_test(values: Sequence[float], *, test_share: float) -> tuple[float, float, float]:
    """Return the mean of paired differences, half the width of its 95 % confidence interval, and the p-value.

    Test folds share most of their training graphs, so their results are dependent, and a plain t-test would find too
    many significant differences. The variance of the mean, s² / n, is replaced by s² (1/n + test/train).

    Nadeau, Bengio: Inference for the Generalization Error. Machine Learning 52, 2003.
    https://doi.org/10.1023/A:1024068626366

    Args:
        values: At least two differences.
        test_share: Number of test graphs divided by the number of training graphs.
    """
    n, mean = len(values), float(np.mean(values))
    error = float(np.std(values, ddof=1)) * sqrt(1 / n + test_share)
    if error == 0:
        return mean, 0.0, 1.0 if mean == 0 else 0.0
    half = float(stats.t.ppf(1 - LEVEL / 2, n - 1)) * error
    return mean, half, 2 * float(stats.t.sf(abs(mean) / error, n - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction of p-values for multiple comparisons: the smallest is multiplied by n, the next by n − 1, …

    Holm: A Simple Sequentially Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6, 1979.
    """
    order = np.argsort(p_values, kind="stable")
    scaled = [min(1.0, (len(order) - rank) * p_values[number]) for rank, number in enumerate(order)]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(scaled) if scaled else []
    return adjusted.tolist()


def average_ranks(accuracies: np.ndarray) -> np.ndarray:
    """Return the mean rank of each column over the rows; the largest entry of a row has rank 1, ties share ranks."""
    return stats.rankdata(-accuracies, axis=1).mean(0)


def critical_difference(models: int, datasets: int) -> float:
    """Nemenyi test: return the smallest significant difference between average ranks.

    Demšar: Statistical Comparisons of Classifiers over Multiple Data Sets. JMLR 7, 2006.
    https://jmlr.org/papers/v7/demsar06a.html
    """
    q = float(stats.studentized_range.ppf(1 - LEVEL, models, inf)) / sqrt(2)
    return q * sqrt(models * (models + 1) / (6 * datasets))


def indistinguishable(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """Return first and last index of each maximal run of sorted ranks within the critical difference."""
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(number for number, other in enumerate(ranks) if other - rank <= critical)
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs


def _common_accuracies(models: Sequence[dict[Hashable, list[Record]]]) -> list[float] | None:
    """Return the mean accuracy of each model over common test folds; ``None`` if there are fewer than two."""
    common = [unit for unit in models[0] if all(unit in groups for groups in models)]
    if len(common) < 2:
        return None
    return [float(np.mean([_accuracy(groups[unit]) for unit in common])) for groups in models]


def _accuracy(group: Iterable[Record]) -> float:
    return float(np.mean([record["result"]["test_accuracy"] for record in group]))


def test_share(series: Series, groups: Iterable[Sequence[Record]]) -> float:
    """Return the number of test graphs divided by that of training graphs; 0 if units share no training graphs."""
    if not series.protocol.shares_graphs:
        return 0.0
    results = [group[0]["result"] for group in groups]
    return float(np.mean([result["test_graphs"] / result["train_graphs"] for result in results]))
