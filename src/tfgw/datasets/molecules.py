"""Molecules as graphs: atoms are nodes labelled by element, and bonds are edges labelled by type.

RDKit (extra ``chem``) reads SMILES. Implicit hydrogens, charges, isotopes and stereochemistry are not part of the
graph.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfgw.datasets.features import DEFAULT_MAX_DEGREE, Features
from tfgw.datasets.graph_dataset import GraphDataset, build_dataset
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.node_encoding import NodeEncoding

MAX_ATOMS = 1_000
"""Maximum number of atoms. A single larger molecule would take longer than all others of a table."""


class Molecule(NamedTuple):
    """A molecule as plain lists."""

    elements: list[str]
    ends: list[tuple[int, int]]  # both ends of each bond
    bonds: list[str]  # "single", "double", "triple", "aromatic", …


def parse_smiles(smiles: Any) -> Molecule:
    """Read one molecule.

    Raises:
        ValueError: If it cannot be read; the message gives the reason.
    """
    if not isinstance(smiles, str):
        raise ValueError("no SMILES" if smiles is None else f"expected text, found {type(smiles).__name__}")
    if len(smiles) > 20 * MAX_ATOMS:
        raise ValueError(f"{len(smiles):,} characters, too many for {MAX_ATOMS:,} atoms")
    if len(smiles.split()) != 1 or "\0" in smiles:
        raise ValueError("no SMILES" if not smiles.strip() else "more than one molecule")
    molecule = _rdkit_molecule(smiles)
    atoms = molecule.GetNumAtoms()
    if not atoms:
        raise ValueError("no atoms")
    if atoms > MAX_ATOMS:
        raise ValueError(f"{atoms:,} atoms, more than the maximum of {MAX_ATOMS:,}")
    bonds = list(molecule.GetBonds())
    return Molecule(
        [atom.GetSymbol() for atom in molecule.GetAtoms()],
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
        [str(bond.GetBondType()).lower() for bond in bonds],
    )


def molecule_tables(
    molecules: Sequence[Molecule], *, targets: np.ndarray | None = None, identifiers: np.ndarray | None = None
) -> GraphTables:
    """Convert molecules to tables; each bond is an edge in both directions."""
    sizes = np.array([len(molecule.bonds) for molecule in molecules])
    ends = np.array([pair for molecule in molecules for pair in molecule.ends], dtype=np.int64).reshape(-1, 2)
    bonds = np.array([bond for molecule in molecules for bond in molecule.bonds], dtype=np.str_)
    graph = np.repeat(np.arange(len(molecules)), sizes)
    source, target = np.concatenate([ends, ends[:, ::-1]]).T
    order = np.lexsort((target, source, np.tile(graph, 2)))
    return GraphTables(
        node_counts=np.array([len(molecule.elements) for molecule in molecules]),
        edge_counts=2 * sizes,
        edges=np.stack([source, target])[:, order],
        node_labels=np.array([element for molecule in molecules for element in molecule.elements])[:, None],
        edge_labels=np.tile(bonds, 2)[order][:, None] if len(bonds) else None,
        targets=targets,
        identifiers=identifiers,
    )


def from_smiles(
    smiles: Sequence[str],
    *,
    y: Sequence[Any] | None = None,
    identifiers: Sequence[Any] | None = None,
    name: str = "molecules",
    features: Features = "auto",
    max_degree: int = DEFAULT_MAX_DEGREE,
    encoding: NodeEncoding | None = None,
) -> GraphDataset:
    """Create a dataset from SMILES strings; requires RDKit (``pip install 'tfgw[chem]'``).

    Args:
        smiles: SMILES strings of the molecules.
        y: One label or real-valued target per molecule.
        identifiers: Identifiers of the molecules.
        name: Name of the dataset.
        features: Node features, see :class:`NodeEncoding`. ``"auto"`` uses one-hot elements.
        max_degree: Largest one-hot degree.
        encoding: Existing encoding to apply, such as that of a model; ``features`` and ``max_degree`` are then ignored.

    Raises:
        ValueError: If a molecule cannot be read; the message starts with its number. :func:`tfgw.datasets.load` skips
            such rows of a file.
    """
    if isinstance(smiles, str):
        raise ValueError("smiles: expected a list of SMILES strings, got a single string")
    for what, values in (("y", y), ("identifiers", identifiers)):
        if values is not None and len(values) != len(smiles):
            raise ValueError(f"{what}: {len(values)} values for {len(smiles)} molecules")
    if not len(smiles):
        raise ValueError("the list of molecules is empty")
    molecules = []
    for number, text in enumerate(smiles):
        try:
            molecules.append(parse_smiles(text))
        except ValueError as error:
            raise ValueError(f"molecule {number}: {error}") from None
    tables = molecule_tables(
        molecules,
        targets=None if y is None else np.asarray(y),
        identifiers=None if identifiers is None else np.asarray(identifiers),
    )
    encoding = encoding or NodeEncoding.fit(tables, features=features, max_degree=max_degree)
    return build_dataset(tables, name=name, encoding=encoding)


def _rdkit_molecule(smiles: str) -> Any:
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise ImportError("SMILES need RDKit: pip install 'tfgw[chem]'") from error
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is not None:
            return molecule
        unchecked = Chem.MolFromSmiles(smiles, sanitize=False)
        if unchecked is None:
            raise ValueError(f"not valid SMILES: {smiles[:40]!r}")
        try:
            Chem.SanitizeMol(unchecked)
        except Exception as error:
            raise ValueError(f"not a valid molecule, {' '.join(str(error).split())[:120]}") from None
    raise ValueError(f"not valid SMILES: {smiles[:40]!r}")
