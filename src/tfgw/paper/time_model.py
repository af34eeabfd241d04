"""A model of the time of cells, learned from the times of others.

    log seconds = log work + effects of what cells have in common + slopes + noise

Each value that cells may share, such as the model, the dataset and the machine, has an effect with mean 0. Each model
has slopes: how its time grows with graphs, nodes, edges and epochs, beyond the work. All effects have Gaussian priors,
so this is Gaussian process regression, and the posterior mean weights records by what they have in common with the
cell.
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

Traits = dict[str, Hashable]
"""What distinguishes the times of cells, by name; see ``EFFECTS``."""

EFFECTS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (3.0, ()),
    (1.5, ("model",)),
    (0.7, ("machine",)),
    (0.3, ("dataset",)),
    (0.5, ("model", "machine")),
    (0.5, ("model", "dataset")),
    (0.3, ("model", "settings")),
    (0.3, ("model", "dataset", "configuration")),
    (0.2, ("model", "dataset", "configuration", "machine")),
)
"""Prior standard deviations of the effects on log seconds, and the values that cells with the same effect share."""

SLOPES = {"graphs": 0.6, "nodes": 0.6, "edges": 0.4, "passes": 0.2}
"""Prior standard deviations of the slopes of a model: exponents of its time, beyond those of the work."""

NOISE = 0.5
"""Standard deviation of the log seconds of one cell."""

MACHINE_NOISE = 0.2
"""Standard deviation of the log mean seconds of many equal cells, which depends on the load of the machine."""


class Times(NamedTuple):
    """Equal cells on one machine.

    Attributes:
        traits: Their traits.
        sizes: Natural logarithms of graphs, mean nodes, mean edges and passes over the graphs, relative to typical
            values.
        log_work: Natural logarithm of their work.
        log_seconds: Natural logarithm of their mean seconds; not used for predictions.
        cells: Number of cells.
    """

    traits: Traits
    sizes: dict[str, float]
    log_work: float
    log_seconds: float = 0.0
    cells: int = 1

    @property
    def key(self) -> Hashable:
        """What all of these cells have in common."""
        return tuple(self.traits.values())

    def values(self, names: tuple[str, ...]) -> tuple[Hashable, ...]:
        """Return some traits."""
        return tuple(self.traits[name] for name in names)


class TimeModel:
    """The model, fitted to the times of known cells."""

    def __init__(self, known: Sequence[Times]) -> None:
        self._known = known
        rates = np.array([times.log_seconds - times.log_work for times in known])
        noise = np.array([MACHINE_NOISE**2 + NOISE**2 / times.cells for times in known])
        self._mean = float(rates.mean())
        self._inverse = np.linalg.inv(_covariance(known, known) + np.diag(noise))
        self._weights = self._inverse @ (rates - self._mean)

    def predict(self, wanted: Sequence[Times]) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and standard deviations of log seconds."""
        shared = _covariance(wanted, self._known)
        prior = np.array([_covariance([times], [times])[0, 0] for times in wanted])
        explained = np.einsum("ij,jk,ik->i", shared, self._inverse, shared)
        means = self._mean + shared @ self._weights + np.array([times.log_work for times in wanted])
        return means, np.sqrt(np.maximum(prior - explained, 0) + MACHINE_NOISE**2)


def _covariance(rows: Sequence[Times], columns: Sequence[Times]) -> np.ndarray:
    found = np.zeros((len(rows), len(columns)))
    for deviation, names in EFFECTS:
        found += deviation**2 * _equal(rows, columns, names)
    for name, deviation in SLOPES.items():
        sizes = [np.array([times.sizes[name] for times in part]) for part in (rows, columns)]
        found += deviation**2 * np.outer(*sizes) * _equal(rows, columns, ("model",))
    return found


def _equal(rows: Sequence[Times], columns: Sequence[Times], names: tuple[str, ...]) -> np.ndarray:
    """Whether cells share these traits, as a matrix."""
    numbers: dict[tuple[Hashable, ...], int] = {}
    codes = [
        np.array([numbers.setdefault(times.values(names), len(numbers)) for times in part]) for part in (rows, columns)
    ]
    return np.equal.outer(*codes)
