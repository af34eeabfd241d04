"""
TFGWPooling after a GCN
=======================

The layer takes ``(x, edge_index, batch)`` like every PyTorch Geometric pooling layer, so it fits into your own training
loop.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv

from tfgw.datasets import four_cycles
from tfgw.nn import TFGWPooling, sample_templates

torch.manual_seed(0)
train, test = four_cycles()  # does a 2-regular graph have a cycle of length 4?


# %%
# Message passing gives all nodes of a regular graph the same features. The distances to templates still distinguish
# the graphs, because they compare structure (α = 1; by default, α is learned).
class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(1, 4)
        self.pool = TFGWPooling(4, num_templates=4, template_nodes=16, alpha=1.0, n_starts=4)
        self.head = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2))  # normalises the small distances

    def encode(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.conv(x, edge_index).relu()

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return self.head(self.pool(self.encode(x, edge_index), edge_index, batch))


# %%
# Templates are initialised with training graphs, encoded by the same GCN. The optimiser keeps them valid: C̄ in [0,
# 1], node weights on the simplex, α in [0, 1].
net = Net()
templates = sample_templates(train, 4, 16, encoder=net.encode)
net.pool.set_templates(templates.structure, templates.features)
slow = list(net.pool.parameters())  # a small learning rate, because the initial templates are good
optimizer = torch.optim.Adam([{"params": slow, "lr": 0.001}, {"params": net.head.parameters(), "lr": 0.05}])

losses = []
for _ in range(20):
    for data in DataLoader(train, batch_size=25, shuffle=True):
        loss = nn.functional.cross_entropy(net(data.x, data.edge_index, data.batch), data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

data = next(iter(DataLoader(test, batch_size=len(test))))
net.eval()
accuracy = (net(data.x, data.edge_index, data.batch).argmax(1) == data.y).float().mean()
print(f"accuracy on {len(test)} test graphs: {accuracy:.2f}")

figure, axis = plt.subplots(figsize=(5, 3))
axis.plot(losses)
axis.set(xlabel="step", ylabel="loss")
