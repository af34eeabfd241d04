"""Kernel machines as estimators: what they learn, invariance, files, weights, caches and errors."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_score
from torch_geometric.data import Data

from tests.estimators.small import rings_and_stars
from tfgw import explain, load_model, ot
from tfgw.datasets import CanonicalOrder, GraphDataset
from tfgw.estimators import TFGWClassifier, TFGWKernelClassifier, TFGWKernelRegressor
from tfgw.nn.graph_distance import Description, NodeDescription
from tfgw.nn.kernel_model import Combination
from tfgw.train import FileError, embeddings
from tfgw.train.kernel_pipeline import train_kernel
from tfgw.train.kernel_ridge import PENALTIES, mixture_weights
from tfgw.train.tensor_file import read_tensors, write_tensors

SMALL: dict[str, Any] = {"levels": (0, 2), "alphas": (0.0, 0.7), "accelerator": "cpu"}
COMBINATIONS: tuple[Combination, ...] = ("scores", "distances")


def labelled(graph: nx.Graph, labels: list[int]) -> Data:
    x = torch.nn.functional.one_hot(torch.tensor(labels), 3).double()
    edges = torch.tensor([*graph.edges, *((b, a) for a, b in graph.edges)]).T
    return Data(x=x, edge_index=edges.reshape(2, -1))


def molecules(count: int = 30, seed: int = 0) -> tuple[list[Data], np.ndarray]:
    """Trees with labels of three kinds; the class says whether two nodes of label 2 are linked."""
    rng = np.random.default_rng(seed)
    graphs, classes = [], []
    while len(graphs) < count:
        size = int(rng.integers(5, 12))
        tree = nx.from_prufer_sequence(rng.integers(0, size, size - 2).tolist())
        labels = rng.integers(0, 3, size).tolist()
        linked = any(labels[a] == labels[b] == 2 for a, b in tree.edges)
        if linked == (len(graphs) % 2 == 1):
            graphs.append(labelled(tree, labels))
            classes.append("linked" if linked else "apart")
    return graphs, np.array(classes)


def test_learns_a_pattern_of_labels_and_links() -> None:
    graphs, classes = molecules(120)
    model = TFGWKernelClassifier(accelerator="cpu").fit(graphs[:90], classes[:90])
    assert model.score(graphs[90:], classes[90:]) > 0.75
    assert model.loo_score_ > 0.75
    probabilities = model.predict_proba(graphs[90:])
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert (model.classes_[probabilities.argmax(1)] == model.predict(graphs[90:])).all()
    np.testing.assert_array_equal(model.decision_function(graphs[90:]) > 0, probabilities[:, 1] > 0.5)


@pytest.mark.parametrize(("combine", "regressions"), [("scores", 6), ("distances", 1)])
def test_scores_are_the_documented_sum(combine: Combination, regressions: int) -> None:
    graphs, classes = molecules(12)
    others, _ = molecules(5, seed=1)
    model = TFGWKernelClassifier(**SMALL, combine=combine).fit(graphs, classes)
    ordered, new = ([CanonicalOrder()(graph) for graph in part] for part in (graphs, others))
    exponents = torch.zeros(regressions, 5, 12, dtype=torch.float64)
    costs = {"labels": "hamming", "codes": "squared_euclidean", "degrees": "euclidean"}
    kinds: list[tuple[Description, int, float]] = [
        *(("labels", 0, 0.0), ("codes", 0, 0.7), ("labels", 2, 0.0), ("codes", 2, 0.7)),
        *(("degrees", 0, 0.0), ("degrees", 2, 0.0)),
    ]
    for number, (kind, level, alpha) in enumerate(kinds):
        nodes = NodeDescription(kind, level)

        def described(graph: Data, nodes: NodeDescription = nodes) -> Data:
            return Data(x=nodes.features(graph.x, graph.edge_index), edge_index=graph.edge_index)

        distances = ot.pairwise(
            [described(g) for g in new],
            [described(g) for g in ordered],
            alpha=alpha,
            node_cost=costs[kind],
            canonical=False,
        )
        exponents += model.model_.rates[:, number, None, None] * distances
    each = torch.exp(-exponents) @ model.model_.coefficients
    expected = model.model_.factor * (model.model_.weights[:, None, None] * each).sum(0)
    assert len(set(model.model_.weights.tolist())) == regressions
    np.testing.assert_allclose(model.decision_function(others), (expected[:, 1] - expected[:, 0]).numpy(), rtol=1e-10)


def test_one_regression_compares_the_sum_of_all_distances() -> None:
    """Each distance relative to its median: with leave-one-out scores of scikit-learn's regression, one by one."""
    graphs, classes = molecules(21)
    model = TFGWKernelClassifier(**SMALL, combine="distances").fit(graphs, classes).model_
    ordered = GraphDataset.from_graphs([CanonicalOrder()(graph) for graph in graphs], name="training")
    distances = embeddings(model, ordered).reshape(21, 6, 21).double()
    medians = torch.stack([kind.median() for kind in distances.unbind(1)])
    assert medians.min() > 0
    gamma = model.rates[0] * medians
    torch.testing.assert_close(gamma, gamma[:1].expand(6), rtol=1e-9, atol=0)
    kernel = torch.exp(-gamma[0] * (distances / medians[:, None]).sum(1)).numpy()
    known = np.eye(2)[(np.asarray(classes) == "linked").astype(int)] - 0.5
    machines = [KernelRidge(alpha=penalty, kernel="precomputed").fit(kernel, known) for penalty in PENALTIES]
    errors = [np.abs(machine.dual_coef_ - model.coefficients[0].numpy()).max() for machine in machines]
    penalty = PENALTIES[int(np.argmin(errors))]
    assert min(errors) < 1e-6
    for number in range(21):
        kept = np.arange(21) != number
        machine = KernelRidge(alpha=penalty, kernel="precomputed").fit(kernel[kept][:, kept], known[kept])
        expected = float(model.factor) * machine.predict(kernel[number : number + 1, kept])
        np.testing.assert_allclose(model.left_out[number : number + 1].numpy(), expected, atol=1e-6)


def test_weights_of_distances_add_up() -> None:
    graphs, classes = molecules(15)
    separate, joint = (TFGWKernelClassifier(**SMALL, combine=c).fit(graphs, classes).model_ for c in COMBINATIONS)
    assert torch.equal(separate.distance_weights, separate.weights)
    means = joint.rates[0] * joint.mean_distances.mean(1)
    torch.testing.assert_close(joint.distance_weights, means / means.sum())
    joint.mean_distances.zero_()  # as for equal graphs
    torch.testing.assert_close(joint.distance_weights, joint.rates[0] / joint.rates[0].sum())


def test_renumbered_graphs_have_the_same_bits() -> None:
    graphs, classes = molecules(20)
    model = TFGWKernelClassifier(**SMALL).fit(graphs, classes)
    rng = np.random.default_rng(0)
    renumbered = []
    for graph in graphs:
        order = torch.from_numpy(rng.permutation(graph.num_nodes))
        renumbered.append(Data(x=graph.x[order.argsort()], edge_index=order[graph.edge_index]))
    np.testing.assert_array_equal(model.predict_proba(renumbered), model.predict_proba(graphs))
    again = TFGWKernelClassifier(**SMALL).fit(renumbered, classes)
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))


def test_real_valued_features_are_standardised_and_averaged() -> None:
    graphs, names = rings_and_stars(24)
    model = TFGWKernelClassifier(**SMALL).fit(graphs[:16], names[:16])
    assert model.model_.config.features == "averages"
    assert model.preprocessing_.mean is not None
    assert model.score(graphs[16:], names[16:]) == 1.0


def test_graphs_without_features() -> None:
    graphs = [nx.cycle_graph(n) for n in range(5, 11)] + [nx.star_graph(n) for n in range(5, 11)]
    model = TFGWKernelClassifier(**SMALL).fit(graphs, [0] * 6 + [1] * 6)
    assert model.predict([nx.cycle_graph(14), nx.star_graph(13)]).tolist() == [0, 1]


def test_similar_degrees_are_near_although_their_labels_differ() -> None:
    """Complete graphs: at level 1 all nodes of graphs of different sizes have different labels."""
    graphs = [nx.complete_graph(n) for n in (3, 4, 5, 7, 8, 12, 14, 15, 17, 18)]
    targets = np.array([float(len(graph)) for graph in graphs])
    options: dict[str, Any] = {"levels": (1,), "alphas": (0.0,), "accelerator": "cpu"}
    model, without = (TFGWKernelRegressor(**options, degrees=degrees).fit(graphs, targets) for degrees in (True, False))
    assert [len(one.model_.config.distances) for one in (model, without)] == [2, 1]
    small, large = (model.predict([nx.complete_graph(n)])[0] for n in (6, 16))
    assert large - small > 5
    same = [without.predict([nx.complete_graph(n)])[0] for n in (6, 16)]
    assert same[0] == pytest.approx(same[1], rel=1e-9)


@pytest.mark.parametrize("combine", COMBINATIONS)
def test_clustering_tells_graphs_of_equal_degrees_apart(combine: Combination, tmp_path: Path) -> None:
    """Prisms with triangles, and Möbius ladders without; all nodes have three neighbours."""
    prisms = [nx.disjoint_union(nx.circular_ladder_graph(3), nx.circular_ladder_graph(n)) for n in (3, 5, 6, 7)]
    ladders = [nx.circulant_graph(2 * n, [1, n]) for n in (3, 5, 6, 7)]
    graphs, labels = prisms + ladders, [1] * 4 + [0] * 4
    options: dict[str, Any] = {"levels": (1,), "alphas": (0.0,), "accelerator": "cpu", "cycles": False}
    model = TFGWKernelClassifier(**options, clustering=True, combine=combine).fit(graphs, labels)
    assert model.loo_score_ == 1.0
    without = TFGWKernelClassifier(**options, clustering=False, combine=combine).fit(graphs, labels)
    assert without.loo_score_ < 1.0
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = TFGWKernelClassifier.load(path)
    assert (loaded.clustering, loaded.combine) == (True, combine)
    explained = explain(model, prisms[1], target=1)
    assert float(explained.kinds[:, 2].abs().sum()) > 0.1 * float(explained.kinds.abs().sum())
    total = float(explained.templates.sum() + explained.rest)
    assert total == pytest.approx(float(explained.score - explained.reference_score))
    np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))


def test_weights_are_those_of_what_each_machine_explains() -> None:
    graphs, classes = molecules(21)
    model = TFGWKernelClassifier(**SMALL)
    known = [Data(x=g.x, edge_index=g.edge_index, y=int(c == "linked")) for g, c in zip(graphs, classes, strict=True)]
    prepared = GraphDataset.from_graphs([CanonicalOrder()(graph) for graph in known], name="training")
    config = model._config(prepared, 2)
    training = train_kernel(prepared, config, task="classification")
    assert torch.equal(training.model.weights, mixture_weights(training.fits))
    model.fit(graphs, classes)
    torch.testing.assert_close(model.model_.weights, training.model.weights)


def test_weights_of_classes_move_the_decision() -> None:
    graphs, classes = molecules(40)
    few = [*range(0, 40, 2), 1, 3, 5]  # twenty "apart", three "linked"
    plain, balanced = (
        TFGWKernelClassifier(**SMALL, class_weight=weight).fit([graphs[i] for i in few], classes[few])
        for weight in (None, "balanced")
    )
    linked = [graphs[i] for i in range(7, 40, 2)]
    assert balanced.predict_proba(linked)[:, 1].mean() > plain.predict_proba(linked)[:, 1].mean()


def test_weight_zero_leaves_a_graph_out() -> None:
    graphs, classes = molecules(15)
    weights = np.ones(15)
    weights[4] = 0
    kept = [i for i in range(15) if i != 4]
    model = TFGWKernelClassifier(**SMALL).fit(graphs, classes, sample_weight=weights)
    expected = TFGWKernelClassifier(**SMALL).fit([graphs[i] for i in kept], classes[kept])
    np.testing.assert_allclose(model.predict_proba(graphs), expected.predict_proba(graphs), rtol=1e-9)
    assert model.model_.num_graphs == 14
    assert model.training_indices_.tolist() == kept


def test_more_graphs_than_allowed_are_sampled_with_a_warning() -> None:
    graphs, classes = molecules(30)
    with pytest.warns(UserWarning, match="random sample of 11 of 30"):
        model = TFGWKernelClassifier(**SMALL, max_graphs=11, random_state=0).fit(graphs, classes)
    assert model.model_.num_graphs == 11
    targets = 2.0 ** np.arange(30)  # each sum is that of one set of graphs only
    with pytest.warns(UserWarning, match="random sample of 11 of 30"):
        regressor = TFGWKernelRegressor(**SMALL, max_graphs=11, random_state=0).fit(graphs, targets)
    assert round(11 * regressor.target_scaler_.mean[0]).bit_count() == 11


def test_cycles_tell_apart_what_labels_cannot() -> None:
    """All nodes have two neighbours; one class has a ring, the other two rings of the same size together."""
    graphs, classes = [], np.arange(20) % 2
    for number, is_split in enumerate(classes):
        size = 6 + number // 2 % 3  # 6, 7, 8: rings of 3, and of 3, 4, 5
        split = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(size - 3))
        graphs.append(labelled(split if is_split else nx.cycle_graph(size), [0] * size))
    options: dict[str, Any] = {"alphas": (0.0,), "accelerator": "cpu"}
    model, without = (TFGWKernelClassifier(cycles=cycles, **options).fit(graphs, classes) for cycles in (True, False))
    assert (model.loo_score_, model.score(graphs, classes)) == (1.0, 1.0)
    assert without.score(graphs, classes) == 0.5
    explained = explain(model, graphs[1], target=1)
    total = float(explained.templates.sum() + explained.rest)
    assert total == pytest.approx(explained.score - explained.reference_score)
    assert float(explained.template_structure.abs().sum()) == 0


def marked_paths(count: int) -> tuple[list[Data], np.ndarray]:
    """Paths with two marks that are 8 or 10 steps apart: only from level 4 on does a node see both marks."""
    rng = np.random.default_rng(0)
    graphs, classes = [], np.arange(count) % 2
    for far in classes:
        before, after = rng.integers(1, 6, 2)
        marks = [0] * before + [1] + [0] * (9 if far else 7) + [1] + [0] * after
        graphs.append(labelled(nx.path_graph(len(marks)), marks))
    return graphs, classes


def test_far_labels_are_compared_where_they_help(tmp_path: Path) -> None:
    graphs, classes = marked_paths(44)
    options: dict[str, Any] = {"alphas": (0.0,), "accelerator": "cpu"}
    model = TFGWKernelClassifier(**options).fit(graphs[:24], classes[:24])
    assert model.model_.config.label_levels[0] == 4
    assert model.model_.weights.shape == (8 + len(model.model_.config.label_levels),)
    assert model.score(graphs[24:], classes[24:]) == 1.0

    scores = model.decision_function(graphs[24:])
    model.save(tmp_path / "model.safetensors")
    loaded = TFGWKernelClassifier.load(tmp_path / "model.safetensors")
    assert loaded.levels is None
    np.testing.assert_array_equal(loaded.decision_function(graphs[24:]), scores)
    cached = TFGWKernelClassifier(cache=tmp_path / "distances", **options)
    cached.precompute(graphs, tmp_path / "distances")
    np.testing.assert_array_equal(cached.fit(graphs[:24], classes[:24]).decision_function(graphs[24:]), scores)
    explained = explain(model, graphs[-1], target=1)
    assert explained.kinds.shape == (10, len(model.model_.weights))
    total = float(explained.templates.sum() + explained.rest)
    assert total == pytest.approx(explained.score - explained.reference_score)


def test_a_cache_changes_nothing(tmp_path: Path) -> None:
    graphs, classes = molecules(21)
    plain = TFGWKernelClassifier(**SMALL).fit(graphs[:16], classes[:16])
    cached = TFGWKernelClassifier(**SMALL)
    cached.precompute(graphs, tmp_path)
    tables = len(list(tmp_path.rglob("*.keys.npy")))
    assert tables == 6
    cached.fit(graphs[:16], classes[:16])
    np.testing.assert_allclose(cached.predict_proba(graphs), plain.predict_proba(graphs), rtol=1e-12)
    assert len(list(tmp_path.rglob("*.keys.npy"))) == tables


def test_standardised_features_are_compared_for_the_training_graphs_alone(tmp_path: Path) -> None:
    graphs, names = rings_and_stars(24)
    model = TFGWKernelClassifier(**SMALL)
    model.precompute(graphs, tmp_path)
    assert {path.parent.parent.name for path in tmp_path.rglob("*.keys.npy")} == {"fgw-euclidean-alpha=0-starts=1"}
    model.fit(graphs[:16], names[:16])
    assert len({path.parent.parent.name for path in tmp_path.rglob("*.keys.npy")}) == 3
    plain = TFGWKernelClassifier(**SMALL).fit(graphs[:16], names[:16])
    np.testing.assert_allclose(model.predict_proba(graphs), plain.predict_proba(graphs), rtol=1e-12)


def test_regression_of_several_values(tmp_path: Path) -> None:
    graphs, _ = molecules(120)
    targets = np.array([[float(g.num_nodes), float(g.x[:, 2].mean())] for g in graphs])
    model = TFGWKernelRegressor(accelerator="cpu").fit(graphs[:100], targets[:100])
    assert model.score(graphs[100:], targets[100:]) > 0.7
    assert 0.7 < model.loo_score_ < 1
    model.save(tmp_path / "m.safetensors")
    loaded = TFGWKernelRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(graphs[100:]), model.predict(graphs[100:]))
    single = TFGWKernelRegressor(**SMALL).fit(graphs[:100], targets[:100, 0])
    assert single.predict(graphs[100:]).shape == (20,)
    with pytest.raises(ValueError, match="predicts values, not classes"):
        TFGWKernelClassifier.load(tmp_path / "m.safetensors")


def test_a_file_has_everything(tmp_path: Path) -> None:
    graphs, classes = molecules(14)
    weighted = [
        Data(x=g.x, edge_index=g.edge_index, edge_weight=torch.full((g.num_edges,), 0.5).double()) for g in graphs
    ]
    for given in (graphs, weighted):
        model = TFGWKernelClassifier(**SMALL).fit(given, classes)
        path = tmp_path / "model.safetensors"
        model.save(path)
        np.testing.assert_array_equal(TFGWKernelClassifier.load(path).predict_proba(given), model.predict_proba(given))
        assert load_model(path).predict(given) == model.predict(given).tolist()
    with pytest.raises(ValueError, match="kernel machine"):
        TFGWClassifier.load(path)
    with pytest.raises(ValueError, match="kernel machine"):
        load_model(path).members  # noqa: B018


def test_repeated_predictions_read_the_training_graphs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, classes = molecules(12)
    model = TFGWKernelClassifier(**SMALL).fit(graphs, classes)
    expected = model.predict_proba(graphs[:3])
    monkeypatch.setattr("tfgw.nn.kernel_model.read_graphs", lambda *_, **__: pytest.fail("read again"))
    np.testing.assert_array_equal(model.predict_proba(graphs[:3]), expected)
    with pytest.raises(pytest.fail.Exception, match="read again"):  # other tensors
        model.model_.float()(graphs[0].x.float(), graphs[0].edge_index)


def test_files_that_leave_the_combination_open_are_refused(tmp_path: Path) -> None:
    model = TFGWKernelClassifier(**SMALL).fit(*molecules(9))
    config = model.model_.config
    for change in ({"combine": "auto"}, {"clustering": None}):
        model.model_.config = replace(config, **change)
        model.save(tmp_path / "model.safetensors")
        with pytest.raises(FileError, match="how distances are combined"):
            load_model(tmp_path / "model.safetensors")


@pytest.mark.parametrize("combine", get_args(Combination))
def test_weights_count_in_every_combination(combine: Combination) -> None:
    """A weight of 0 leaves a graph out: its value, however wrong, has no effect."""
    graphs, _ = molecules(30)
    values = np.array([float(graph.num_nodes) for graph in graphs])
    weights = np.where(np.arange(30) % 7 == 0, 0.0, 1.0)
    wrong = np.where(weights == 0, 1e6, values)
    model, other = (
        TFGWKernelRegressor(**SMALL, combine=combine).fit(graphs, y, sample_weight=weights) for y in (values, wrong)
    )
    assert len(model.training_indices_) == 25
    np.testing.assert_array_equal(model.predict(graphs), other.predict(graphs))
    assert np.corrcoef(model.predict(graphs), values)[0, 1] > 0.9


def test_training_graphs_are_kept_in_order() -> None:
    graphs, classes = molecules(9)
    weighted = [Data(x=g.x, edge_index=g.edge_index, edge_weight=(g.edge_index.sum(0) + 0.5).double()) for g in graphs]
    model = TFGWKernelClassifier(**SMALL, canonical_order=False).fit(weighted, classes)
    for number, graph in enumerate(weighted):
        found = model.model_.training_graph(number)
        assert torch.equal(found.x, graph.x)
        dense = [torch.zeros(g.num_nodes, g.num_nodes).double() for g in (found, graph)]
        for C, g in zip(dense, (found, graph), strict=True):
            C[tuple(g.edge_index)] = g.edge_weight
        assert torch.equal(*dense)


def test_the_machine_remembers_how_it_was_trained() -> None:
    graphs, classes = molecules(13)
    model = TFGWKernelClassifier(**SMALL).fit(graphs, classes)
    left_out = model.classes_[model.model_.left_out.argmax(1).numpy()]
    assert (left_out == classes).mean() == model.loo_score_
    ordered = model.preprocessing_(GraphDataset.from_graphs(graphs, name="training"))
    mean = embeddings(model.model_, ordered).mean(0).reshape(6, 13)
    torch.testing.assert_close(model.model_.mean_distances, mean, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"rates": torch.ones(3, 6, dtype=torch.float64)},
        {"rates": torch.ones(6, dtype=torch.float64)},
        {"weights": torch.ones(4, dtype=torch.float64)},
        {"weights": torch.tensor([1.5, -0.5, 0, 0, 0, 0], dtype=torch.float64)},
        {"weights": torch.full((6,), 0.5, dtype=torch.float64)},
        {"rates": torch.full((6, 6), -1.0, dtype=torch.float64)},
        {"mean_distances": torch.ones(6, 13, dtype=torch.float64)},
        {"left_out": torch.ones(14, 3, dtype=torch.float64)},
        {"coefficients": torch.zeros(6, 13, 2, dtype=torch.float64)},
        {"graph_edge_index": torch.tensor([[0, 10**9], [1, 0]])},
        {"graph_batch": torch.zeros(5, dtype=torch.int64)},
        {"graph_x": torch.zeros(2, 3, dtype=torch.float32)},
        {"factor": torch.tensor(torch.nan, dtype=torch.float64)},
        {"unknown": torch.zeros(1, dtype=torch.float64)},
    ],
)
def test_damaged_files_are_refused(change: dict[str, torch.Tensor], tmp_path: Path) -> None:
    graphs, classes = molecules(14)
    path = tmp_path / "model.safetensors"
    TFGWKernelClassifier(**SMALL).fit(graphs, classes).save(path)
    tensors, description = read_tensors(path, kind="model")
    write_tensors(path, tensors | change, description, kind="model")
    with pytest.raises(FileError):
        load_model(path)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"levels": (0, -1)}, "levels: must not be negative"),
        ({"levels": ()}, "levels: needs at least one"),
        ({"alphas": (0.2, 1.5)}, r"alphas: must lie in \[0, 1\], got 1.5"),
        ({"alphas": (0.2, 0.2)}, "alphas: has a value twice"),
        ({"n_starts": 0}, "n_starts: must be at least 1"),
        ({"max_graphs": 1}, "max_graphs: must be at least 2"),
        ({"accelerator": "tpu"}, "accelerator: must be"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    graphs, classes = molecules(6)
    with pytest.raises(ValueError, match=message):
        TFGWKernelClassifier(**SMALL | parameters).fit(graphs, classes)


def test_one_class_is_refused() -> None:
    graphs, _ = molecules(6)
    with pytest.raises(ValueError, match="at least two classes"):
        TFGWKernelClassifier(**SMALL).fit(graphs, ["a"] * 6)


def test_cross_validation_by_scikit_learn() -> None:
    graphs, classes = molecules(30)
    assert len(cross_val_score(TFGWKernelClassifier(**SMALL), graphs, classes, cv=3)) == 3
