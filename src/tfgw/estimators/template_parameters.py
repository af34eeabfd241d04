"""Constructor parameters of all estimators with templates; :class:`TFGWClassifier` documents them."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfgw.nn import TFGWConfig
from tfgw.nn.tfgw_pooling import Structure
from tfgw.train import Preprocessing


@dataclass(kw_only=True, eq=False, repr=False)
class TemplateParameters:
    """Parameters of the templates and of the solver."""

    num_templates: int = 8
    template_nodes: int | None = None
    structure: Structure = TFGWConfig.structure
    directed: bool = TFGWConfig.directed
    n_starts: int = TFGWConfig.n_starts
    start_kinds: Sequence[str] = TFGWConfig.start_kinds
    canonical_order: bool = Preprocessing.canonical_order
    num_threads: int | None = None
