"""Molecules as graphs: atoms are nodes, labelled by their element, and bonds are edges, labelled by their kind.

RDKit (extra ``chem``) reads SMILES. Hydrogens that are not written as atoms, charges, isotopes and stereochemistry are
not part of the graph.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfgw.datasets.features import DEFAULT_MAX_DEGREE, Features
from tfgw.datasets.graph_dataset import GraphDataset, build_dataset
from tfgw.datasets.graph_tables import GraphTables
from tfgw.datasets.node_encoding import NodeEncoding

MAX_ATOMS = 1_000
"""Larger molecules are refused: a single one would take longer than all others of a table."""


class Molecule(NamedTuple):
    """A molecule as plain lists."""

    elements: list[str]
    ends: list[tuple[int, int]]  # of each bond
    bonds: list[str]  # "single", "double", "triple", "aromatic", …


def parse_smiles(smiles: Any) -> Molecule:
    """Read one molecule.

    Raises:
        ValueError: With the reason in a few words.
    """
    if not isinstance(smiles, str):
        raise ValueError("no SMILES" if smiles is None else f"expected text, found {type(smiles).__name__}")
    if len(smiles) > 20 * MAX_ATOMS:
        raise ValueError(f"{len(smiles):,} characters, too many for {MAX_ATOMS:,} atoms")
    if len(smiles.split()) != 1 or "\0" in smiles:
        raise ValueError("no SMILES" if not smiles.strip() else "more than a molecule")
    molecule = _rdkit_molecule(smiles)
    atoms = molecule.GetNumAtoms()
    if not atoms:
        raise ValueError("no atoms")
    if atoms > MAX_ATOMS:
        raise ValueError(f"{atoms:,} atoms, at most {MAX_ATOMS:,} are taken")
    bonds = list(molecule.GetBonds())
    return Molecule(
        [atom.GetSymbol() for atom in molecule.GetAtoms()],
        [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
        [str(bond.GetBondType()).lower() for bond in bonds],
    )


def molecule_tables(
    molecules: Sequence[Molecule], *, targets: np.ndarray | None = None, identifiers: np.ndarray | None = None
) -> GraphTables:
    """Molecules in the form in which datasets are made of them; each bond is an edge in both directions."""
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
    """Make a dataset of molecules, given as SMILES; needs RDKit (``pip install 'tfgw[chem]'``).

    Args:
        smiles: the molecules.
        y: one label or real target for each.
        identifiers: what each is called.
        name: name of the dataset.
        features: what becomes ``x``, see :class:`NodeEncoding`; ``"auto"``: one-hot elements.
        max_degree: cap of the one-hot degree.
        encoding: makes ``x`` as it was made of other graphs; ``features`` and ``max_degree`` are then ignored.

    Raises:
        ValueError: If one cannot be read; the message begins with its number. :func:`tfgw.datasets.load` of a file
            skips such rows.
    """
    if isinstance(smiles, str):
        raise ValueError("smiles: expected a list of SMILES, got one; put it in a list")
    for what, values in (("y", y), ("identifiers", identifiers)):
        if values is not None and len(values) != len(smiles):
            raise ValueError(f"{what}: {len(values)} values for {len(smiles)} molecules")
    if not len(smiles):
        raise ValueError("an empty list of molecules")
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
            raise ValueError(f"not SMILES: {smiles[:40]!r}")
        try:
            Chem.SanitizeMol(unchecked)
        except Exception as error:
            raise ValueError(f"no molecule, {' '.join(str(error).split())[:120]}") from None
    raise ValueError(f"not SMILES: {smiles[:40]!r}")
