"""Series of an experiment for the options of a user."""

from tfgw.paper.experiment import Experiment, Row, select
from tfgw.paper.protocols import PROTOCOLS, Protocol, get_protocol
from tfgw.paper.published_splits import splits_digest
from tfgw.paper.series import Options, Series

SIZES = ("folds", "graphs", "holdouts", "runs", "seeds")


def plan(
    experiment: Experiment,
    options: Options,
    *,
    datasets: list[str] | None = None,
    models: list[str] | None = None,
) -> list[Series]:
    """Return all series of an experiment, or those of some datasets and models."""
    protocol = chosen_protocol(experiment, options)
    if options.splits is not None and options.own_folds:
        raise ValueError("splits: cannot be combined with folds of our own")
    if options.splits is not None and (not protocol.takes_splits or options.grouped):
        names = " or ".join(repr(one.name) for one in PROTOCOLS.values() if one.takes_splits)
        raise ValueError(f"splits: only supported for the protocol {names}, without grouping of isomorphic graphs")
    measured = [row for row in experiment.rows if not row.protocols or protocol.name in row.protocols]
    wanted = select([row.model for row in measured], models, "model")
    rows = [row for row in measured if row.model in wanted]
    return [
        _series(experiment, row, dataset, get_protocol(row.protocols.get(protocol.name, protocol.name)), options)
        for dataset in select(experiment.datasets, datasets, "dataset")
        for row in rows
    ]


def chosen_protocol(experiment: Experiment, options: Options) -> Protocol:
    """Return the protocol of the options, or the first of the experiment."""
    if not experiment.needs_runs:
        raise ValueError(f"{experiment.name} needs no runs; use 'tfgw paper show'")
    name = options.protocol or experiment.protocols[0]
    select(experiment.protocols, [name], "protocol")
    return get_protocol(name)


def _series(experiment: Experiment, row: Row, dataset: str, protocol: Protocol, options: Options) -> Series:
    quoted = row.paper.get(dataset)
    sizes = {name: experiment.setting(row, dataset, options.preset, name) for name in SIZES}
    return Series(
        row=row,
        dataset=dataset,
        protocol=protocol,
        configurations=experiment.configurations(row, dataset, options.preset),
        sizes=sizes,
        grouped=options.grouped,
        splits=_splits(experiment, dataset, protocol, options, uses_all=not sizes["graphs"]),
        published=None if quoted is None else quoted[0] / experiment.unit.scale,
        not_run=row.reason_not_to_run(dataset, options.preset),
    )


def _splits(
    experiment: Experiment, dataset: str, protocol: Protocol, options: Options, *, uses_all: bool
) -> str | None:
    """Return the digest of the splits: those of the options, or those that the experiment names for all its graphs."""
    if options.splits is not None:
        return splits_digest(options.splits, dataset)
    takes_published = protocol.takes_splits and uses_all and not options.grouped and not options.own_folds
    return experiment.splits.get(dataset) if takes_published else None
