"""
Nearest neighbours of a molecule
================================

FGW distances between one molecule and a small library, with atom types as features and bonds as structure.
"""

import matplotlib.pyplot as plt
import networkx as nx
import torch
from torch_geometric.data import Data

from tfgw import ot

# %%
# Molecules without hydrogen: lists of atoms and of bonds.
ring = [(i, (i + 1) % 6) for i in range(6)]
library = {
    "benzene": ("CCCCCC", ring),
    "phenol": ("CCCCCCO", [*ring, (0, 6)]),
    "aniline": ("CCCCCCN", [*ring, (0, 6)]),
    "toluene": ("CCCCCCC", [*ring, (0, 6)]),
    "pyridine": ("NCCCCC", ring),
    "hexane": ("CCCCCC", [(i, i + 1) for i in range(5)]),
    "ethanol": ("CCO", [(0, 1), (1, 2)]),
    "acetic acid": ("CCOO", [(0, 1), (1, 2), (1, 3)]),
    "benzoic acid": ("CCCCCCCOO", [*ring, (0, 6), (6, 7), (6, 8)]),
}
ATOMS = "CNO"


def as_data(atoms: str, bonds: list[tuple[int, int]]) -> Data:
    x = torch.nn.functional.one_hot(torch.tensor([ATOMS.index(a) for a in atoms]), len(ATOMS)).double()
    both = torch.tensor([*bonds, *((j, i) for i, j in bonds)])
    return Data(x=x, edge_index=both.T)


# %%
# ``nearest`` skips molecules that lower bounds already rule out.
query, names = "phenol", list(library)
molecules = [as_data(*library[name]) for name in names]
found = ot.nearest([as_data(*library[query])], molecules, top=5, alpha=0.5, n_starts=8)
nearest = {
    names[number]: float(distance) for number, distance in zip(found.indices[0], found.distances[0], strict=True)
}
for name, distance in nearest.items():
    print(f"{name:13} {distance:.3f}")

# %%
figure, axes = plt.subplots(1, 5, figsize=(10, 2.2))
for axis, (name, distance) in zip(axes, nearest.items(), strict=True):
    atoms, bonds = library[name]
    drawing = nx.Graph(bonds)
    colours = [{"C": "lightgrey", "N": "skyblue", "O": "salmon"}[atoms[v]] for v in drawing]
    labels = {v: atoms[v] for v in drawing}
    nx.draw(drawing, nx.kamada_kawai_layout(drawing), axis, node_color=colours, labels=labels, node_size=160)
    axis.set_title(f"{name}\n{distance:.3f}", fontsize=9)
