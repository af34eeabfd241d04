"""Support vector machines on kernels, WL by hand and against GraKeL, WL labels against networkx."""

from typing import Any

import grakel
import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.svm import SVC
from torch_geometric.data import Data

from tests.baselines.small import labelled_graphs
from tfgw.baselines import WL, WWL, FGWKernel, requirements
from tfgw.baselines.kernel_svm import KernelSVM, choose, signs
from tfgw.nn.refinement import row_labels


def indefinite_kernel(size: int = 20) -> np.ndarray:
    matrix = np.random.default_rng(0).normal(size=(size, size))
    return matrix + matrix.T + 3 * np.eye(size)


def test_signs_make_a_kernel_positive() -> None:
    kernel = indefinite_kernel()
    values = np.linalg.eigvalsh(kernel)
    assert values.min() < -1
    np.testing.assert_allclose(np.linalg.eigvalsh(kernel @ signs(kernel)), np.sort(np.abs(values)))


def test_krein_machine_is_the_plain_one_on_a_positive_kernel() -> None:
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(30, 3)), np.arange(30) % 3
    kernel = points @ points.T + np.eye(30)
    plain, krein = (KernelSVM(1.0, indefinite=flag).fit(kernel, labels) for flag in (False, True))
    np.testing.assert_allclose(krein.decision_function(kernel), plain.decision_function(kernel), atol=1e-6)
    expected = SVC(C=1.0, kernel="precomputed").fit(kernel, labels).decision_function(kernel)
    np.testing.assert_allclose(plain.decision_function(kernel), expected)


def test_krein_coefficients_are_carried_back() -> None:
    """Loosli et al.: with α of the flipped kernel, decisions are K P α + b."""
    kernel, labels = indefinite_kernel(), np.arange(20) % 2
    machine = KernelSVM(1.0, indefinite=True).fit(kernel, labels)
    coefficients = np.zeros(20)
    coefficients[machine.svc.support_] = machine.svc.dual_coef_[0]
    others = np.random.default_rng(1).normal(size=(5, 20))
    expected = others @ (signs(kernel) @ coefficients) + machine.svc.intercept_
    np.testing.assert_allclose(machine.decision_function(others), expected)


def test_choice_is_the_kernel_that_knows_the_labels() -> None:
    labels = np.arange(30) % 2
    noise = np.random.default_rng(0).normal(size=(30, 40))
    knowing = (labels[:, None] == labels[None]).astype(float)
    kernels = [("noise", noise @ noise.T), ("knowing", knowing)]
    choice = choose(kernels, labels, costs=[1e-3, 1.0], folds=5, seed=0)
    assert choice.kernel == "knowing"
    assert choice.score == 1.0
    with pytest.raises(ValueError, match=r"inner_folds: .* a class of 1"):
        choose(kernels, np.array([0] * 29 + [1]), costs=[1.0, 2.0], folds=5, seed=0)


def test_one_value_each_needs_no_cross_validation() -> None:
    graphs, _ = labelled_graphs(3)
    model = FGWKernel(alpha=0.5, C=2.0, gamma=3.0).fit(graphs, [0, 1, 1])
    assert (model.C_, model.gamma_, model.comparison_.alpha, model.inner_score_) == (2.0, 3.0, 0.5, None)
    assert WL(C=2.0, num_iterations=3).fit(graphs, [0, 1, 1]).num_iterations_ == 3


def test_wl_kernel_by_hand() -> None:
    """Two paths of two and three nodes, all labels equal, one step of refinement.

    Before: 2 and 3 nodes of one label. After: two nodes of degree 1; two of degree 1 and one of degree 2. So K is
    2·3 + 2·2 = 10 between them, 4 + 4 = 8 and 9 + 4 + 1 = 14 within.
    """
    graphs = [Data(x=torch.ones(n, 1), edge_index=_edges(nx.path_graph(n))) for n in (2, 3)]
    model = WL(C=1.0, num_iterations=1).fit(graphs, [0, 1])
    expected = np.array([[1, 10 / np.sqrt(8 * 14)], [10 / np.sqrt(8 * 14), 1]])
    np.testing.assert_allclose(model._between(model._as_graphs(graphs)), expected)


@pytest.mark.parametrize("num_iterations", [1, 2, 5])
def test_wl_kernel_agrees_with_grakel(num_iterations: int) -> None:
    graphs, names = labelled_graphs(17)
    known, others = graphs[:12], graphs[12:]
    model = WL(C=1.0, num_iterations=num_iterations).fit(known, names[:12])
    oracle = grakel.WeisfeilerLehman(n_iter=num_iterations, base_graph_kernel=grakel.VertexHistogram, normalize=True)
    expected = oracle.fit_transform([_as_grakel(graph) for graph in known])
    np.testing.assert_allclose(model._between(model._as_graphs(known)), expected, rtol=1e-12)
    expected = oracle.transform([_as_grakel(graph) for graph in others])
    np.testing.assert_allclose(model._between(model._as_graphs(others)), expected, rtol=1e-12)


def test_version_follows_the_features() -> None:
    graphs, names = labelled_graphs(12)
    assert WWL(C=1.0, gamma=1.0, num_iterations=1).fit(graphs, names).version_ == "discrete"
    for graph in graphs:
        graph.x = graph.x + 0.5
    assert WWL(C=1.0, gamma=1.0, num_iterations=1).fit(graphs, names).version_ == "continuous"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (WL(num_iterations=0), "num_iterations: must be at least 1"),
        (WWL(num_iterations=-1), "num_iterations: must not be negative"),
        (WWL(version="other"), "version: must be 'discrete', 'continuous' or None"),
        (FGWKernel(alpha=1.5), r"alpha: must lie in \[0, 1\], got 1\.5"),
        (FGWKernel(structure="precomputed"), "structure"),
        (FGWKernel(alpha=()), "alpha: the list of values is empty"),
        (WWL(gamma=()), "gamma: the list of values is empty"),
        (WL(C=()), "C: the list of values is empty"),
    ],
)
def test_errors(model: WL | WWL | FGWKernel, message: str) -> None:
    graphs, names = labelled_graphs(8)
    with pytest.raises(ValueError, match=message):
        model.fit(graphs, names)


def test_a_missing_package_is_one_sentence() -> None:
    with pytest.raises(ImportError, match=r"no_such_package is not installed; .* pip install 'tfgw\[paper\]'"):
        requirements.require("no_such_package")


def _as_grakel(graph: Data) -> list[dict[int, Any]]:
    """The neighbours and the label of each node."""
    neighbours: dict[int, Any] = {node: {} for node in range(graph.num_nodes)}
    for source, target in graph.edge_index.T.tolist():
        neighbours[source][target] = 1.0
    return [neighbours, dict(enumerate(row_labels(graph.x).tolist()))]


def _edges(graph: nx.Graph) -> torch.Tensor:
    return torch.from_numpy(np.stack(np.nonzero(nx.to_numpy_array(graph))))
