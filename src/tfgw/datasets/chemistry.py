"""Elements and bond orders of node and edge labels in molecule datasets.

For MUTAG and PTC_MR, they are documented in the README.txt of their archives in the TU collection
(https://chrsmrrs.github.io/datasets). Text labels are already element symbols.
"""

from collections.abc import Sequence

from tfgw.datasets.tu_catalog import full_name

ELEMENTS: dict[str, tuple[str, ...]] = {
    "MUTAG": ("C", "N", "O", "F", "I", "Cl", "Br"),
    "PTC_MR": ("In", "P", "O", "N", "Na", "C", "Cl", "S", "Br", "F", "K", "Cu", "Zn", "I", "Ba", "Sn", "Pb", "Ca"),
}
"""The element of each node label, from 0."""

AROMATIC = 1.5
BOND_ORDERS: dict[str, tuple[float, ...]] = {"MUTAG": (AROMATIC, 1, 2, 3), "PTC_MR": (3, 2, 1, AROMATIC)}
"""The bond order of each edge label, from 0."""

BOND_NAMES: dict[int | str, float] = {"single": 1, "double": 2, "triple": 3, "aromatic": AROMATIC}
"""Bond orders of molecules read from SMILES."""

_PERIODIC_TABLE = """
H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo Tc
Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi
Po At Rn Fr Ra Ac Th Pa U Np Pu
"""
SYMBOLS = frozenset(_PERIODIC_TABLE.split())


def label_names(dataset: str, labels: Sequence[int | str]) -> tuple[str, ...]:
    """Return the names of node labels: elements if the dataset has them, else the labels themselves."""
    elements = ELEMENTS.get(full_name(dataset))
    if elements is None or not all(isinstance(label, int) and 0 <= label < len(elements) for label in labels):
        return tuple(str(label) for label in labels)
    return tuple(elements[int(label)] for label in labels)


def are_elements(names: Sequence[str]) -> bool:
    """Whether all names are symbols of elements."""
    return bool(names) and all(name in SYMBOLS for name in names)


def bond_orders(dataset: str, labels: Sequence[int | str]) -> tuple[float, ...] | None:
    """Return the bond order of each edge label, or ``None`` if the labels are not known to be bonds."""
    if labels and all(isinstance(label, str) for label in labels) and BOND_NAMES.keys() & set(labels):
        return tuple(BOND_NAMES.get(label, 1) for label in labels)
    orders = BOND_ORDERS.get(full_name(dataset))
    if orders is None or not all(isinstance(label, int) and 0 <= label < len(orders) for label in labels):
        return None
    return tuple(orders[int(label)] for label in labels)
