"""
Training on a GPU
=================

Only ``accelerator`` changes: the solver runs on the GPU, and training replays whole steps as CUDA graphs. Without a
GPU, this example uses the CPU.
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
# For your own tensors, move layer and data: ``TFGWPooling(...).to("cuda")``, ``data.to("cuda")``.
figure = tfgw.plot.curves(model)
