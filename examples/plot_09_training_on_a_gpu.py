"""
Training on a GPU
=================

Nothing changes but ``accelerator``: tensors on a GPU are solved there, and training replays whole steps as CUDA graphs.
Where there is no GPU, this example says so and uses the CPU.
"""

import time

import networkx as nx
import torch

import tfgw.plot
from tfgw.estimators import TFGWClassifier

accelerator = "cuda" if torch.cuda.is_available() else "cpu"
if accelerator == "cpu":
    print("There is no CUDA GPU here; training on the CPU.")

# %%
graphs = [nx.gnp_random_graph(12, p, seed=seed) for p in (0.2, 0.4) for seed in range(30)]
labels = ["sparse"] * 30 + ["dense"] * 30
start = time.perf_counter()
model = TFGWClassifier(num_templates=4, epochs=20, accelerator=accelerator, random_state=0).fit(graphs, labels)
print(f"{model.n_iter_} epochs on {accelerator}: {time.perf_counter() - start:.1f} s")

# %%
# With tensors of your own, moving them is all: ``TFGWPooling(...).to("cuda")``, ``data.to("cuda")``.
figure = tfgw.plot.curves(model)
