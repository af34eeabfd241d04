"""Drawings of graphs as data: positions, names and colours of nodes, strengths and bond orders of links."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch_geometric.data import Data

from tfgw.datasets.chemistry import are_elements, bond_orders, label_names
from tfgw.estimators.any_model import AnyModel
from tfgw.plot.layouts import molecule_layout, spread_layout
from tfgw.plot.plot_style import class_colour

ELEMENT_COLOURS = {
    "C": "#4d4d4d", "N": "#2f5fd0", "O": "#c8102e", "F": "#2e7d32", "Cl": "#1b7a3d", "Br": "#8a3324", "I": "#5e2d91",
    "S": "#8a6d00", "P": "#b35900", "Na": "#6a3fb5", "K": "#6a3fb5",
}  # fmt: skip
OTHER_ELEMENT = "#5f6b73"
FAINTEST = 0.02
"""Threshold below which entries of a template's structure are not drawn."""
MOST_LINKS = 5
"""Maximum number of links per template node; the strongest are drawn."""


@dataclass(frozen=True, kw_only=True)
class DrawnGraph:
    """Input of :func:`tfgw.plot.graph_drawing.draw_graph`; links are listed once.

    Args:
        places: Coordinates of the nodes, ``(n, 2)``.
        links: Pairs of nodes, ``(2, links)``.
        strengths: Strengths of the links, from 0 (faint) to 1.
        orders: Bond orders; 1.5 is aromatic.
        weights: Weights of the nodes; a node of mean weight has the default size.
        names: Names of the nodes, drawn inside them; empty strings for no name.
        colours: Colours of the nodes.
    """

    places: np.ndarray
    links: np.ndarray
    strengths: np.ndarray
    orders: np.ndarray
    weights: np.ndarray
    names: tuple[str, ...]
    colours: tuple[Any, ...]

    def moved(self, by: tuple[float, float], scale: float = 1.0) -> "DrawnGraph":
        """Return a translated and scaled drawing."""
        return replace(self, places=scale * self.places + np.array(by))


class NodeLooks:
    """Names and colours of nodes by their features, the same for graphs and for templates.

    One-hot labels (or degrees) become names. For other features, the colour shows the first principal component.

    Args:
        model: Model whose features are drawn.
        features: Rows of preprocessed features that define the colour scale of real-valued features.
    """

    def __init__(self, model: AnyModel, features: np.ndarray) -> None:
        encoding = model.encoding
        self.names: tuple[str, ...] = ()
        self.first = 0
        if encoding is not None and encoding.vocabulary:
            self.names = label_names(model.dataset, encoding.vocabulary[0])
            self.first = encoding.num_attributes
        self.is_degree = encoding is not None and encoding.max_degree is not None
        self.are_elements = are_elements(self.names)
        is_constant = not len(features) or np.ptp(features, axis=0).max() == 0
        self._shades = None if self.names or is_constant else principal_shades(features)
        self.bonds = None
        if encoding is not None and encoding.edges.vocabulary:
            self.bonds = bond_orders(model.dataset, encoding.edges.vocabulary[0])
            self._first_bond = encoding.edges.num_attributes

    def of(self, features: np.ndarray) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Names and colours of nodes with these features ``(n, d)``."""
        if not self.names:
            plain = ("",) * len(features)
            shades = (class_colour(0),) * len(features) if self._shades is None else tuple(self._shades(features))
            return plain, shades
        block = features[:, self.first : self.first + len(self.names)]
        numbers = block.argmax(axis=1)
        names = tuple(self.names[number] for number in numbers)
        return names, tuple(self._colour(number) for number in numbers)

    def orders(self, edge_attr: np.ndarray | None, count: int) -> np.ndarray:
        """Return bond orders of edges with these attributes; 1 if they are not bonds."""
        if self.bonds is None or edge_attr is None:
            return np.ones(count)
        block = edge_attr[:, self._first_bond : self._first_bond + len(self.bonds)]
        return np.array(self.bonds)[block.argmax(axis=1)]

    def _colour(self, number: int) -> Any:
        if self.are_elements:
            return ELEMENT_COLOURS.get(self.names[number], OTHER_ELEMENT)
        if self.is_degree:
            return _shade(number / max(1, len(self.names) - 1))
        return class_colour(number)

    @property
    def legend(self) -> str:
        """Description of the colours."""
        if self.are_elements:
            return "element"
        if self.names:
            return "degree" if self.is_degree else "label"
        return "first principal component of the features" if self._shades is not None else "the same for all nodes"


def drawn_graph(graph: Data, looks: NodeLooks, *, places: np.ndarray | None = None) -> DrawnGraph:
    """Create the drawing of a preprocessed graph."""
    edges = graph.edge_index.numpy()
    once = edges[0] < edges[1]
    names, colours = looks.of(graph.x.double().numpy())
    attributes = graph.get("edge_attr")
    orders = looks.orders(None if attributes is None else attributes.numpy(), edges.shape[1])[once]
    n, links = len(names), edges[:, once]
    weights = graph.get("node_weights")
    if places is None and looks.are_elements:
        places = molecule_layout(names, links, orders)
    if places is None:
        C = np.zeros((n, n))
        C[links[0], links[1]] = C[links[1], links[0]] = 1
        places = spread_layout(C)
    return DrawnGraph(
        places=normalised(places),
        links=links,
        strengths=np.ones(links.shape[1]),
        orders=orders,
        weights=np.full(n, 1 / n) if weights is None else weights.numpy(),
        names=names,
        colours=colours,
    )


def drawn_template(
    structure: np.ndarray, features: np.ndarray, weights: np.ndarray, look: Callable[[np.ndarray], Any]
) -> DrawnGraph:
    """Create the drawing of the live nodes of a template; ``look`` maps features to names and colours."""
    C = np.maximum(structure, structure.T)
    C = C / max(1.0, C.max())  # for structures other than adjacency
    names, colours = look(features)
    links = np.stack(np.nonzero(np.triu(C > FAINTEST, 1)))
    strongest = np.argsort(-C[links[0], links[1]], kind="stable")[: MOST_LINKS * len(C)]
    links = links[:, np.sort(strongest)]
    return DrawnGraph(
        places=normalised(spread_layout(C)),
        links=links,
        strengths=C[links[0], links[1]],
        orders=np.ones(links.shape[1]),
        weights=weights,
        names=tuple(names),
        colours=tuple(colours),
    )


def plain_drawing(places: np.ndarray, edge_index: np.ndarray, colour: str) -> DrawnGraph:
    """Create the drawing of a graph without names, with nodes at given positions."""
    links, n = edge_index[:, edge_index[0] < edge_index[1]], len(places)
    ones = np.ones(links.shape[1])
    looks: dict[str, Any] = {"weights": np.full(n, 1 / n), "names": ("",) * n, "colours": (colour,) * n}
    return DrawnGraph(places=places, links=links, strengths=ones, orders=ones, **looks)


def normalised(places: np.ndarray) -> np.ndarray:
    """Scale positions to a box of size 2 around 0, with the longer side along the first axis."""
    centred = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T if len(axes) == 2 else centred
    middle = (turned.max(axis=0) + turned.min(axis=0)) / 2
    extent = np.abs(turned - middle).max()
    return (turned - middle) / (extent if extent > 0 else 1)


def principal_shades(features: np.ndarray) -> Callable[[np.ndarray], list[Any]]:
    """Return a function that colours rows of features by the first principal component of these."""
    from sklearn.decomposition import PCA

    pca = PCA(1).fit(features)
    low, high = np.percentile(pca.transform(features), [2, 98])
    span = high - low if high > low else 1.0
    return lambda rows: [_shade(float(value)) for value in (pca.transform(rows)[:, 0] - low) / span]


def _shade(value: float) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps["viridis"](min(1.0, max(0.0, value))))


def named_nodes(names: Sequence[str]) -> list[str]:
    """Return unique names of nodes: N3 is node 3, a nitrogen."""
    return [f"{name}{number}" if name else str(number) for number, name in enumerate(names)]
