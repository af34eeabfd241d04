"""A folder of GraphML files, one graph in each.

===================  ==================================================================================================
``label``            of a node or edge: its label, an integer or text
``weight``           of an edge
``target``           of the graph: target to predict; a file ``labels.csv`` with columns ``file`` and ``target`` takes
                     precedence
other attributes     of nodes and edges: attributes, in the order of their names, if they are numbers, else ignored
===================  ==================================================================================================

Files are read in the order of their names; the name without ``.graphml`` is the identifier of a graph.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.node_link import node_link_tables
from tfgw.datasets.table_file import read_rows

SUFFIX = ".graphml"
LABELS_FILE = "labels.csv"

_RESERVED = {"label", "weight", "target", "id"}


def is_graphml_folder(path: Path) -> bool:
    """Whether a folder contains GraphML files."""
    return path.is_dir() and any(path.glob(f"*{SUFFIX}"))


def read_graphml(folder: Path) -> GraphTables:
    """Read all graphs of a folder.

    Raises:
        ValueError: If a file cannot be read, or has other attributes than the previous files.
    """
    targets = _targets(folder)
    files = sorted(folder.glob(f"*{SUFFIX}"))
    if targets is not None:
        missing = next((path.name for path in files if path.name not in targets), None)
        if missing is not None:
            raise ValueError(f"{folder / LABELS_FILE}: has no row for {missing}")
    return node_link_tables((str(path), partial(_entry, path, targets)) for path in files)


def _targets(folder: Path) -> dict[str, Any] | None:
    path = folder / LABELS_FILE
    if not path.is_file():
        return None
    found: dict[str, Any] = {}
    for number, (file, target) in enumerate(read_rows(path, ["file", "target"])):
        if file is None or target is None:
            raise ValueError(f"{path}, row {number}: a field is empty")
        found[file if file.endswith(SUFFIX) else f"{file}{SUFFIX}"] = _as_number(target)
    return found


def _entry(path: Path, targets: dict[str, Any] | None) -> dict[str, Any]:
    """Convert a file to a node-link object."""
    graph = _read(path)
    if graph.is_multigraph():
        raise ValueError("parallel edges are not supported")
    nodes, edges = dict(graph.nodes(data=True)), list(graph.edges(data=True))
    node_names, edge_names = _numeric(nodes.values()), _numeric(attributes for *_, attributes in edges)
    return {
        "directed": graph.is_directed(),
        "nodes": [{"id": node, **_described(attributes, node_names)} for node, attributes in nodes.items()],
        "edges": [
            {"source": source, "target": target, **_described(attributes, edge_names), **_weight(attributes)}
            for source, target, attributes in edges
        ],
        "target": graph.graph.get("target") if targets is None else targets[path.name],
        "id": path.stem,
    }


def _read(path: Path) -> Any:
    try:
        import networkx
    except ImportError as error:
        raise ImportError("GraphML files need networkx: pip install networkx") from error
    try:
        return networkx.read_graphml(path, node_type=str)
    except Exception as error:  # the parser raises errors of many types
        raise ValueError(f"not a readable GraphML file ({' '.join(str(error).split())[:120]})") from None


def _numeric(described: Iterable[dict[str, Any]]) -> list[str]:
    """Return the names of the attributes that are numbers in all nodes or edges."""
    kinds: dict[str, set[type]] = {}
    for attributes in described:
        for name, value in attributes.items():
            kinds.setdefault(name, set()).add(type(value))
    return sorted(name for name, found in kinds.items() if found <= {int, float} and name not in _RESERVED)


def _described(attributes: dict[str, Any], names: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"label": attributes["label"]} if "label" in attributes else {}
    missing = next((name for name in names if name not in attributes), None)
    if missing is not None:
        raise ValueError(f"some nodes or edges have an attribute {missing!r}, others do not")
    return found | ({"attributes": [attributes[name] for name in names]} if names else {})


def _weight(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"weight": attributes["weight"]} if "weight" in attributes else {}


def _as_number(text: Any) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
