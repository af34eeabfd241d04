"""Experiment files name Python classes, so running one runs their code."""

from tfgw.paper.experiment import Experiment

OWN_CLASSES = ("tfgw.estimators:", "tfgw.baselines:")
OWN_FIGURES = "tfgw.paper.figures."


def check_trusted(experiment: Experiment) -> None:
    """Raise ``ValueError`` if an experiment names code from outside tfgw."""
    named = [row.path for row in experiment.rows if row.path is not None and not row.path.startswith(OWN_CLASSES)]
    if experiment.figure is not None and not experiment.figure.startswith(OWN_FIGURES):
        named.append(experiment.figure)
    if named:
        raise ValueError(
            f"experiment {experiment.name}: names {named[0]!r}, which is not part of tfgw, and would run its code;"
            " use --trust to allow this"
        )
