"""Digests of the results of the package, to verify that a change of the code does not change results.

    python benchmarks/digest.py --data-dir FOLDER > before.txt       # then change the code
    python benchmarks/digest.py --data-dir FOLDER | diff before.txt -

The digests cover distances and gradients of the layer and of the solver on six datasets, and the weights of every model
after a short training. They depend on the processor and the version of PyTorch, so compare two runs on the same
machine.
"""

from common import Case, make_case, parser  # isort: skip  (pins BLAS threads first)

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor

from tfgw import ot
from tfgw.baselines import GIN, MLP, OTGNN, PPGN, DiffPool, DropGIN, PatchySAN
from tfgw.cli import main as tfgw
from tfgw.datasets import four_cycles, load, skip_circles
from tfgw.estimators import TFGWClassifier, TFGWRegressor, TFGWTransformer
from tfgw.nn import TFGWPooling, TWPooling
from tfgw.train import load_model

MODELS = {
    "TFGWClassifier": (TFGWClassifier, {}),
    "TFGWClassifier, shortest paths": (TFGWClassifier, {"structure": "shortest_path"}),
    "TFGWClassifier, validation": (TFGWClassifier, {"validation_fraction": 0.2, "dropout": 0.2, "stratified": True}),
    "TFGWClassifier, fixed": (TFGWClassifier, {"num_layers": 0, "alpha": 0.5, "learn_templates": False,
                                               "learn_weights": False}),
    "TFGWClassifier, 4 starts": (TFGWClassifier, {"n_starts": 4, "template_lr": 0.001, "epochs": 2}),
    "GIN": (GIN, {}),
    "DropGIN": (DropGIN, {}),
    "OTGNN": (OTGNN, {}),
    "DiffPool": (DiffPool, {}),
    "MLP": (MLP, {}),
    "PPGN": (PPGN, {"epochs": 1}),
    "PatchySAN": (PatchySAN, {}),
}  # fmt: skip

TRAINED = {"recipe": "paper", "epochs": 4, "accelerator": "cpu", "random_state": 0}


def digest(values: Iterable[Tensor | np.ndarray | None]) -> str:
    """SHA-256 of numbers with their shapes; −0 counts as 0."""
    found = hashlib.sha256()
    for value in values:
        array = np.asarray([] if value is None else value.detach().cpu() if isinstance(value, Tensor) else value)
        found.update(repr((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array + 0 if array.dtype.kind == "f" else array).tobytes())
    return found.hexdigest()[:16]


def of_layer(case: Case, **options: object) -> str:
    """Distances of the paper's layer, and all of its gradients."""
    count, nodes, features = case.templates.features.shape
    layer = TFGWPooling(features, count, nodes, **options)
    layer.set_templates(case.templates.structure, case.templates.features)
    x = case.batch.x.clone().requires_grad_()
    weight = torch.linspace(0.5, 1.5, case.batch.num_edges, dtype=x.dtype).requires_grad_()
    distances = layer(x, case.batch.edge_index, case.batch.batch, edge_weight=weight)
    (distances * torch.linspace(0.1, 1, distances.numel()).view_as(distances)).sum().backward()
    return digest([distances, x.grad, weight.grad, *(p.grad for _, p in sorted(layer.named_parameters()))])


def of_clouds(case: Case) -> str:
    """Distances and gradients of OT-GNN's layer."""
    count, nodes, features = case.templates.features.shape
    layer = TWPooling(features, count, nodes)
    layer.set_templates(case.templates.features)
    x = case.batch.x.clone().requires_grad_()
    distances = layer(x, case.batch.batch)
    (distances * torch.linspace(0.1, 1, distances.numel()).view_as(distances)).sum().backward()
    return digest([distances, x.grad, *(p.grad for _, p in sorted(layer.named_parameters()))])


def of_solver(case: Case, **options: object) -> str:
    """All results of the solver."""
    graphs = ot.GraphBatch(case.batch.x, batch=case.batch.batch, edge_index=case.batch.edge_index)
    alpha = torch.linspace(0, 1, len(case.templates.features), dtype=torch.float64)
    return digest(ot.fgw(graphs, case.templates, alpha, **options))


def of_transport(case: Case) -> str:
    """Results and gradients of linear transport."""
    generator = torch.Generator().manual_seed(0)
    cost = torch.rand(case.batch.num_nodes, 3, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    found = ot.linear_transport(cost, batch=case.batch.batch)
    found.distances.square().sum().backward()
    return digest([*found, cost.grad])


def of_diagnosis(case: Case) -> str:
    """All results of a diagnosis."""
    graphs = ot.GraphBatch(case.batch.x, batch=case.batch.batch, edge_index=case.batch.edge_index)
    return digest(ot.diagnose(graphs, case.templates, 0.5, n_starts=4))


def solves(args) -> Iterator[tuple[str, str]]:
    for name in args.datasets:
        case = make_case(name, args)
        yield f"{name}, layer", of_layer(case)
        yield f"{name}, layer, an α per template", of_layer(case, alpha_per_template=True)
        yield f"{name}, TWPooling", of_clouds(case)
        yield f"{name}, fgw", of_solver(case)
        yield f"{name}, fgw, 4 starts, one thread", of_solver(case, n_starts=4, num_threads=1)
        yield f"{name}, linear transport", of_transport(case)
        yield f"{name}, diagnose", of_diagnosis(case)


def weights(model: torch.nn.Module) -> list[Tensor]:
    return [tensor for _, tensor in sorted(model.state_dict().items())]


def trainings(args) -> Iterator[tuple[str, str]]:
    torch.set_default_dtype(torch.float32)  # the default of users
    graphs = list(load("MUTAG", data_dir=args.data_dir))
    labels = [int(graph.y) for graph in graphs]
    for name, (kind, options) in MODELS.items():
        model = kind(**(TRAINED | options)).fit(graphs, labels)
        yield name, digest([*weights(model.model_), model.predict_proba(graphs)])
    sizes = [float(graph.num_nodes) for graph in graphs]
    regressor = TFGWRegressor(**TRAINED).fit(graphs, sizes)
    yield "TFGWRegressor", digest([*weights(regressor.model_), regressor.predict(graphs)])
    yield "TFGWTransformer", digest([TFGWTransformer(random_state=0).fit(graphs, labels).transform(graphs)])
    circles = skip_circles(seed=0)
    yield "SKIP-CIRCLES, structures", digest(graph.edge_index for part in circles for graph in part)
    yield "4-CYCLES, structures", digest(graph.edge_index for part in four_cycles(seed=0) for graph in part)


def commands(args) -> Iterator[tuple[str, str]]:
    """The weights that ``tfgw train`` writes, and the scores it prints."""
    torch.set_default_dtype(torch.float32)
    data = [] if args.data_dir is None else ["--data-dir", args.data_dir]
    runs = {
        "tfgw train MUTAG": ["--dataset", "MUTAG", "--epochs", "4", *data],
        "tfgw train PTC_MR": ["--dataset", "PTC_MR", "--epochs", "3", "--structure", "shortest_path", *data],
        "tfgw train ENZYMES": ["--dataset", "ENZYMES", "--epochs", "2", *data],
        "tfgw train SKIP-CIRCLES": ["--epochs", "2"],
        "tfgw train 4-CYCLES": ["--dataset", "4-CYCLES", "--epochs", "3", "--fixed-templates"],
    }
    for name, options in runs.items():
        with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
            run = Path(folder) / "run"
            code = tfgw(
                ["train", "--recipe", "paper", "--accelerator", "cpu", "--json", "--output", str(run), *options]
            )
            assert not code, out.getvalue()
            found = digest(weights(load_model(run / "model.safetensors").model))
            scores = json.loads(out.getvalue())
        measured = [value for key, value in sorted(scores.items()) if key not in ("seconds", "folder")]
        yield name, f"{found} {hashlib.sha256(repr(measured).encode()).hexdigest()[:16]}"


def main() -> None:
    p = parser(__doc__)
    p.add_argument("--parts", nargs="+", default=["solves", "trainings", "commands"], metavar="PART")
    args = p.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    for part in args.parts:
        for name, found in {"solves": solves, "trainings": trainings, "commands": commands}[part](args):
            print(f"{found}  {name}", flush=True)


if __name__ == "__main__":
    main()
