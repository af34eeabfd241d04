"""
Nearest neighbours of a molecule
================================

FGW distances between one molecule and a small library, with atom types as features and bonds as structure.
"""

import matplotlib.pyplot as plt
import networkx as nx
import torch
from torch_geometric.data import Batch, Data

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
# The query is the only template. One call computes all distances.
query = "phenol"
molecule = as_data(*library[query])
adjacency = torch.zeros(7, 7, dtype=torch.float64)
adjacency[molecule.edge_index[0], molecule.edge_index[1]] = 1
graphs = Batch.from_data_list([as_data(*one) for one in library.values()])
found = ot.fgw(
    ot.GraphBatch(graphs.x, batch=graphs.batch, edge_index=graphs.edge_index),
    ot.Templates(molecule.x[None], structure=adjacency[None]),
    alpha=0.5,
    n_starts=8,
)
order = found.distances[:, 0].argsort().tolist()
names = list(library)
for number in order[:5]:
    structure, features = float(found.structure_costs[number]), float(found.feature_costs[number])
    print(f"{names[number]:13} {float(found.distances[number]):.3f} (structure {structure:.3f}, atoms {features:.3f})")

# %%
figure, axes = plt.subplots(1, 5, figsize=(10, 2.2))
for axis, number in zip(axes, order, strict=False):
    atoms, bonds = library[names[number]]
    drawing = nx.Graph(bonds)
    colours = [{"C": "lightgrey", "N": "skyblue", "O": "salmon"}[atoms[v]] for v in drawing]
    labels = {v: atoms[v] for v in drawing}
    nx.draw(drawing, nx.kamada_kawai_layout(drawing), axis, node_color=colours, labels=labels, node_size=160)
    axis.set_title(f"{names[number]}\n{float(found.distances[number]):.3f}", fontsize=9)
