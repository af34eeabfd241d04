"""The protocols, one file each, and their registry by name.

A protocol is an object without state. Its interface is :class:`~tfgw.paper.protocols.protocol.Protocol`:

    Protocol ─┬─ AccuracyProtocol ─┬─ DividedProtocol ─┬─ FairFolds ─┬─ Fair
              │                    │                   │             ├─ Sweep
              │                    │                   │             └─ TrainAll
              │                    │                   └─ Paper
              │                    └─ Synthetic
              └─ Timing
"""

from tfgw.paper.protocols.accuracy import OLDER
from tfgw.paper.protocols.fair import Fair
from tfgw.paper.protocols.paper import Paper
from tfgw.paper.protocols.protocol import Measurement, Protocol
from tfgw.paper.protocols.sweep import Sweep
from tfgw.paper.protocols.synthetic import Synthetic
from tfgw.paper.protocols.timing import Timing
from tfgw.paper.protocols.train_all import TrainAll

PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol for protocol in (Fair(), Paper(), Synthetic(), Sweep(), Timing(), TrainAll())
}


def get_protocol(name: str) -> Protocol:
    """Return the protocol of this name."""
    if name not in PROTOCOLS:
        raise ValueError(f"protocol {name!r}: unknown; choose one of {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]


__all__ = [
    "OLDER",
    "PROTOCOLS",
    "Fair",
    "Measurement",
    "Paper",
    "Protocol",
    "Sweep",
    "Synthetic",
    "Timing",
    "TrainAll",
    "get_protocol",
]
