"""The paper's pooling layer."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Unpack

import torch
from torch import Tensor

from tfgw import ot
from tfgw.nn.batched_structure import batched_shortest_paths, entry_index, entry_places
from tfgw.nn.concurrent_solves import concurrent_solves
from tfgw.nn.constraints import NON_NEGATIVE, UNIT_INTERVAL, Constraint
from tfgw.nn.padding import PaddedShape, current_padding
from tfgw.nn.template_layer import TemplateLayer, checked, checked_weights
from tfgw.nn.threads import solver_threads
from tfgw.ot.checks import check_accuracy, check_tolerance, thread_count
from tfgw.ot.problem import MAX_ITER, TOL, Problem, ProblemSize, StructurePattern
from tfgw.ot.solve import distances
from tfgw.ot.starts import start_bits

Structure = Literal["adjacency", "shortest_path", "precomputed"]
STRUCTURES: tuple[Structure, ...] = ("adjacency", "shortest_path", "precomputed")


class GraphInputs(TypedDict, total=False):
    """Optional graph inputs besides features, edges and ``batch``; see :meth:`TFGWPooling.forward`."""

    edge_weight: Tensor | None
    structure: Tensor | None
    node_weights: Tensor | None
    batch_size: int | None


class TFGWPooling(TemplateLayer):
    """The paper's layer: Fused Gromov–Wasserstein distances to K learnable template graphs (equation 2).

    Templates are parameters with constraints. Every PyTorch optimiser projects them onto the constraint set after each
    step (see :func:`tfgw.nn.project_after_step`). If you change them by other means, call :meth:`project_`. Template
    nodes whose weight reaches 0 are ignored by the solver; their gradient can make the weight positive again.

    Args:
        in_channels: Features per node.
        num_templates: Number of templates K; the layer's output has this many channels.
        template_nodes: Nodes per template m.
        structure: Kind of structure matrix C. ``"adjacency"`` uses the edges; template entries stay in [0, 1].
            ``"shortest_path"`` uses hop distances, which ``forward`` computes unless they are passed to it (see
            :class:`tfgw.datasets.ShortestPaths`); template entries stay non-negative. ``"precomputed"`` uses any matrix
            passed to ``forward``; template entries, including the diagonal, are unconstrained.
        directed: Whether C̄ may be asymmetric. Otherwise only its upper triangle is a parameter.
        free_diagonal: Whether the diagonal of C̄ is a parameter, constrained like the other entries. Otherwise it is
            fixed at 0, unless ``structure`` is ``"precomputed"``.
        alpha: Trade-off between features (0) and structure (1). ``None`` learns it, starting at ``alpha_init``. A
            number, or a tensor with one number per template, is fixed.
        alpha_init: Initial value of a learned α.
        alpha_per_template: Whether to learn a separate α for each template.
        learn_templates: Whether C̄ and F̄ are parameters. Otherwise they are buffers, as in the paper's TFGW-fix.
        learn_weights: Whether h̄ is a parameter. Otherwise it is a buffer, initially uniform.
        n_starts: Number of solver starts per pair; the best result is kept (see :func:`tfgw.ot.fgw`).
        start_kinds: Kinds of starts (see :func:`tfgw.ot.fgw`).
        max_iter: Maximum number of solver iterations.
        tol: Relative gap at which the solver stops.
        training_tol: The same for :meth:`forward` in training mode (default: ``tol``).
        num_threads: Number of solver threads (default: :func:`torch.get_num_threads`).
    """

    supports_padding = True
    alpha: Tensor
    structure_entries: Tensor
    _entry_index: Tensor
    _is_free: Tensor
    _entry_places: Tensor

    def __init__(
        self,
        in_channels: int,
        num_templates: int,
        template_nodes: int,
        *,
        structure: Structure = "adjacency",
        directed: bool = False,
        free_diagonal: bool = False,
        alpha: float | Tensor | None = None,
        alpha_init: float = 0.5,
        alpha_per_template: bool = False,
        learn_templates: bool = True,
        learn_weights: bool = True,
        n_starts: int = 1,
        start_kinds: Sequence[str] = ot.START_KINDS,
        max_iter: int = MAX_ITER,
        tol: float = TOL,
        training_tol: float | None = None,
        num_threads: int | None = None,
    ) -> None:
        learned = {"learn_templates": learn_templates, "learn_weights": learn_weights}
        super().__init__(in_channels, num_templates, template_nodes, **learned)
        if structure not in STRUCTURES:
            raise ValueError(f"structure: must be one of {', '.join(STRUCTURES)}, got {structure!r}")
        self.structure = structure
        self.directed = directed
        self.free_diagonal = free_diagonal
        self.learn_alpha = alpha is None
        self.alpha_init = alpha_init
        self.alpha_per_template = alpha_per_template
        start_bits(start_kinds)
        check_accuracy(max_iter, tol, n_starts)
        check_tolerance("training_tol", tol if training_tol is None else training_tol)
        thread_count(num_threads)
        self.n_starts = n_starts
        self.start_kinds = tuple(start_kinds)
        self.max_iter = max_iter
        self.tol = tol
        self.training_tol = training_tol
        self.num_threads = num_threads
        index, free = self._entries()
        self.register_buffer("_entry_index", index.clamp_max(free - 1).repeat(num_templates, 1), persistent=False)
        self.register_buffer("_is_free", (index < free).to(torch.get_default_dtype()), persistent=False)
        self.register_buffer("_entry_places", entry_places(index, free), persistent=False)
        self._hold("structure_entries", torch.empty(num_templates, free), learn_templates)
        self._hold("alpha", _initial_alpha(alpha, alpha_init, alpha_per_template, num_templates), self.learn_alpha)
        self.reset_parameters()

    @property
    def template_structure(self) -> Tensor:
        """C̄ of every template, ``(num_templates, template_nodes, template_nodes)``."""
        return self._pattern().dense(self.structure_entries)

    def _pattern(self) -> StructurePattern:
        buffers: dict[str, Any] = self._buffers  # faster than attribute access through Module.__getattr__
        is_free = None if self._has_diagonal else buffers["_is_free"]
        return StructurePattern(buffers["_entry_index"], is_free, buffers["_entry_places"])

    def _entries(self) -> tuple[Tensor, int]:
        """Return the index of the free entry at each position of C̄, row by row, and the number of free entries."""
        index = entry_index(self.template_nodes, directed=self.directed, diagonal=self._has_diagonal)
        return index.flatten(), int(index.max()) + self._has_diagonal

    @property
    def _has_diagonal(self) -> bool:
        return self.free_diagonal or self.structure == "precomputed"

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Reset to random templates, uniform weights and the initial α. A free diagonal starts at 0."""
        super().reset_parameters()
        self.structure_entries.uniform_(0, 1)
        if self.structure == "shortest_path":
            self.structure_entries.mul_(2).add_(1)  # hop distances of a small random graph: 1 to 3
        if self.free_diagonal and self.structure != "precomputed":
            self.structure_entries[:, self._entry_index[0, :: self.template_nodes + 1]] = 0
        if self.learn_alpha:
            self.alpha.fill_(self.alpha_init)

    @torch.no_grad()
    def set_templates(self, structure: Tensor, features: Tensor, weights: Tensor | None = None) -> None:
        """Set the templates to C̄ ``(K, m, m)``, F̄ ``(K, m, d)`` and h̄ ``(K, m)`` (default: uniform)."""
        structure = torch.as_tensor(structure)
        shape = (self.num_templates, self.template_nodes, self.template_nodes)
        if tuple(structure.shape) != shape:
            raise ValueError(f"structure: expected shape {shape}, got {tuple(structure.shape)}")
        if not self.directed and not torch.equal(structure, structure.mT):
            raise ValueError("structure: templates must be symmetric unless the layer is directed")
        if not self._has_diagonal and bool(structure.diagonal(dim1=1, dim2=2).any()):
            raise ValueError(f"structure: the diagonal must be 0 for structure={self.structure!r}")
        first = self._entry_places[:, 0].to(structure.device)
        entries = checked("structure", structure.flatten(1)[:, first], self.structure_entries)
        features, weights = checked("features", features, self.template_features), checked_weights(self, weights)
        self.structure_entries.copy_(entries)
        self.template_features.copy_(features)
        self.template_weights.copy_(weights)

    def _constraints(self) -> list[Constraint]:
        """Extend those of :class:`TemplateLayer` by [0, 1] or [0, ∞) for C̄ (symmetric by construction) and [0, 1] for
        α."""
        found = super()._constraints()
        if self.learn_templates and self.structure != "precomputed":
            bounds = UNIT_INTERVAL if self.structure == "adjacency" else NON_NEGATIVE
            found.append(Constraint(self.structure_entries, bounds))
        if self.learn_alpha:
            found.append(Constraint(self.alpha, UNIT_INTERVAL))
        return found

    def unsupported_reason(self, shape: PaddedShape) -> str | None:
        """Extend :meth:`TemplateLayer.unsupported_reason` by the structure."""
        if self.structure != "adjacency":
            return f"structure={self.structure!r} uses matrices, which cannot be padded"
        return super().unsupported_reason(shape)

    def _problem_size(self, shape: PaddedShape) -> ProblemSize:
        """Extend :meth:`TemplateLayer._problem_size` by the starts."""
        size = super()._problem_size(shape)
        return size._replace(n_starts=self.n_starts, start_kinds=start_bits(self.start_kinds))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        structure: Tensor | None = None,
        node_weights: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Compute the distances to the templates.

        Args:
            x: Node features ``(num_nodes, in_channels)``.
            edge_index: Edges ``(2, num_edges)``. List both directions of an undirected edge; a single direction is a
                directed edge and makes C asymmetric. Edges are a set: duplicates count once, and self-loops are
                ignored. The same holds for estimators and files (docs/files.md). An encoder before the layer gets the
                edges as listed.
            batch: Graph of each node, sorted, ``(num_nodes,)``. ``None`` means a single graph.
            edge_weight: Weights of the edges. With weights, duplicates are summed, and self-loops are diagonal entries.
                For shortest paths, weights are lengths, and the shortest of several duplicates counts.
            structure: C of every graph, flattened and concatenated ``(sum of n²,)``. Replaces the edges.
            node_weights: h ``(num_nodes,)``, which sums to 1 within each graph (default: uniform).
            batch_size: Number of graphs. Graphs after the last one in ``batch`` are empty: their rows are 0 and have no
                gradient. Pass it under :func:`torch.compile`, because counting the graphs breaks the trace.

        Returns:
            ``(batch_size, num_templates)``.
        """
        edge_index, edge_weight, structure = self._structure(x, edge_index, batch, edge_weight, structure)
        tol = self.training_tol if self.training else None
        return distances(
            Problem(
                x=x,
                batch=batch,
                batch_size=batch_size,
                node_weights=node_weights,
                edge_index=edge_index,
                edge_weight=edge_weight,
                structure=structure,
                template_structure=self.structure_entries,
                template_features=self.template_features,
                template_weights=self.template_weights,
                alpha=self.alpha,
                max_iter=self.max_iter,
                tol=self.tol if tol is None else tol,
                n_starts=self.n_starts,
                start_kinds=start_bits(self.start_kinds),
                num_threads=solver_threads(self.num_threads),
                pattern=self._pattern(),
                padded_nodes=current_padding() is not None,
                concurrent_solves=concurrent_solves(),
            )
        )

    def solve(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        initial_plans: Tensor | None = None,
        plans: str | None = "dense",
        **graphs: Unpack[GraphInputs],
    ) -> ot.Transport:
        """Like :meth:`forward`, but return the full solution: plans, both costs, potentials, gaps, status."""
        return ot.fgw(
            self._graphs(x, edge_index, batch, **graphs),
            self._templates(),
            self.alpha,
            initial_plans=initial_plans,
            plans=plans,
            n_starts=self.n_starts,
            **self._options(),
        )

    @torch.no_grad()
    def diagnose(
        self,
        x: Tensor,
        edge_index: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        n_starts: int | None = None,
        **graphs: Unpack[GraphInputs],
    ) -> ot.Diagnosis:
        """Diagnose the distances of :meth:`forward`: lower bounds, spread over starts, local minima.

        ``n_starts`` replaces that of the layer; see :func:`tfgw.ot.diagnose`.
        """
        return ot.diagnose(
            self._graphs(x, edge_index, batch, **graphs),
            self._templates(),
            self.alpha,
            n_starts=self.n_starts if n_starts is None else n_starts,
            **self._options(),
        )

    def _options(self) -> dict[str, Any]:
        """Return the solver options, except the number of starts."""
        options = {name: getattr(self, name) for name in ("max_iter", "tol", "start_kinds")}
        return options | {"num_threads": solver_threads(self.num_threads) or None}

    def _templates(self) -> ot.Templates:
        return ot.Templates(self.template_features, self.template_structure, self.template_weights)

    def _graphs(
        self, x: Tensor, edge_index: Tensor | None, batch: Tensor | None, **given: Unpack[GraphInputs]
    ) -> ot.GraphBatch:
        edge_index, edge_weight, structure = self._structure(
            x, edge_index, batch, given.get("edge_weight"), given.get("structure")
        )
        return ot.GraphBatch(
            x, batch, given.get("batch_size"), edge_index, edge_weight, structure, given.get("node_weights")
        )

    def _structure(
        self,
        x: Tensor,
        edge_index: Tensor | None,
        batch: Tensor | None,
        edge_weight: Tensor | None,
        structure: Tensor | None,
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return the structure: edges with their weights, or matrices."""
        if structure is None:
            if edge_index is None:
                raise ValueError("edge_index: required, unless structure is given")
            if self.structure == "precomputed":
                raise ValueError("structure: required in every call of a layer with structure='precomputed'")
            if self.structure == "shortest_path":
                structure = batched_shortest_paths(edge_index, len(x), batch, edge_weight).to(x)
        return (edge_index, edge_weight, None) if structure is None else (None, None, structure)

    def __repr__(self) -> str:
        fixed = f"torch.tensor({self.alpha.tolist()})" if self.alpha.dim() else self.alpha.item()
        alpha = None if self.learn_alpha else fixed
        return (
            f"TFGWPooling({self.in_channels}, {self.num_templates}, {self.template_nodes}, "
            f"structure={self.structure!r}, directed={self.directed}, free_diagonal={self.free_diagonal}, "
            f"alpha={alpha}, alpha_init={self.alpha_init}, alpha_per_template={self.alpha_per_template}, "
            f"learn_templates={self.learn_templates}, learn_weights={self.learn_weights}, "
            f"n_starts={self.n_starts}, start_kinds={self.start_kinds}, "
            f"max_iter={self.max_iter}, tol={self.tol}, training_tol={self.training_tol}, "
            f"num_threads={self.num_threads})"
        )


def _initial_alpha(alpha: float | Tensor | None, init: float, per_template: bool, num_templates: int) -> Tensor:
    value = torch.as_tensor(init if alpha is None else alpha, dtype=torch.get_default_dtype())
    if not bool(((value >= 0) & (value <= 1)).all()):
        raise ValueError(f"{'alpha_init' if alpha is None else 'alpha'}: must be in [0, 1], got {value.tolist()}")
    if value.dim() > 0 and tuple(value.shape) != (num_templates,):
        raise ValueError(f"alpha: expected one or {num_templates} numbers, got shape {tuple(value.shape)}")
    return value.expand(num_templates).clone() if per_template and value.dim() == 0 else value.clone()
