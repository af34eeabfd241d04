"""
Your own experiment file
========================

A TOML file defines a table of models and datasets. ``tfgw paper run`` runs its cells and can be interrupted and
resumed, and ``tfgw paper show`` prints the table.
"""

import contextlib
import io
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from tfgw.cli import main

# %%
# Two rows, one generated dataset, few epochs. Files with your own classes need ``--trust``.
folder = Path(tempfile.mkdtemp())
experiment = folder / "mine.toml"
experiment.write_text("""
title = "GIN and TFGW, test accuracy"
protocols = ["synthetic"]
unit = "fraction"
datasets = ["4-CYCLES"]

[[rows]]
model = "gin"
title = "GIN"
class = "tfgw.baselines:GIN"
fixed = { epochs = 5, num_layers = 2, recipe = "paper" }
by_epochs = false

[[rows]]
model = "tfgw"
title = "TFGW"
class = "tfgw.estimators:TFGWClassifier"
fixed = { epochs = 5, num_templates = 4, num_layers = 0, alpha = 1.0, n_starts = 4, recipe = "paper" }
by_epochs = false
""")

# %%
# In a terminal: ``tfgw paper run mine.toml --preset smoke``, then ``tfgw paper show mine.toml --preset smoke``.
options = [str(experiment), "--preset", "smoke", "--results", str(folder / "results")]
main(["paper", "run", *options, "--jobs", "1"])
main(["paper", "show", *options])

# %%
# ``--json`` prints the same as JSON.
answer = io.StringIO()
with contextlib.redirect_stdout(answer):
    main(["paper", "show", *options, "--json"])
rows = json.loads(answer.getvalue())

figure, axis = plt.subplots(figsize=(4, 3))
axis.bar([row["model"] for row in rows], [row["test"] for row in rows], yerr=[row["deviation"] for row in rows])
axis.axhline(0.5, color="grey", linestyle=":")
axis.set(ylabel="accuracy", ylim=(0, 1.05))
