import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch_geometric.data import Data
from torch_geometric.nn import GCN

from tests.train.small import cycles_and_stars, regression_data, same_weights, small_model
from tfgw.datasets import GraphDataset, NodeEncoding, TableColumns
from tfgw.estimators import TFGWKernelClassifier
from tfgw.nn import Ensemble, TFGWConfig, TFGWModel
from tfgw.train import (
    SCORE_NAMES,
    FileError,
    Preprocessing,
    TrainConfig,
    TrainedModel,
    fit,
    load_model,
    save_model,
)
from tfgw.train.model_file import KIND
from tfgw.train.target_scaler import TargetScaler
from tfgw.train.tensor_file import content_digest, read_tensors, write_tensors

ROOT = Path(__file__).parents[2]


def trained_model() -> TrainedModel:
    train = cycles_and_stars()
    steps = Preprocessing.fit(train)
    model = small_model(steps(train))
    fit(model, steps(train), config=TrainConfig(epochs=2, accelerator="cpu"))
    return TrainedModel(
        model=model,
        task="classification",
        classes=train.classes,
        preprocessing=steps,
        source={"dataset": "small"},
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TrainedModel]:
    path, trained = tmp_path_factory.mktemp("model") / "model.safetensors", trained_model()
    save_model(trained, path)
    return path, trained


def test_a_saved_model_predicts_the_same_in_a_new_process(saved: tuple[Path, TrainedModel], tmp_path: Path) -> None:
    path, trained = saved
    answer = tmp_path / "outputs.pt"
    command = [sys.executable, "-m", "tests.train.predict_from_file", str(path), str(answer)]
    subprocess.run(command, check=True, cwd=ROOT)
    assert torch.equal(torch.load(answer), trained.outputs(cycles_and_stars(seed=1)))


def test_a_loaded_model_is_the_saved_one(saved: tuple[Path, TrainedModel]) -> None:
    path, trained = saved
    loaded = load_model(path)
    assert same_weights(loaded.model, trained.model)
    assert loaded.model.config == trained.model.config
    assert loaded.preprocessing == trained.preprocessing
    assert (loaded.task, loaded.classes, loaded.source) == (trained.task, trained.classes, trained.source)
    assert set(loaded.predict(cycles_and_stars())) <= {"star", "cycle"}


def test_classes_of_other_data_are_matched_by_their_names(saved: tuple[Path, TrainedModel]) -> None:
    _, trained = saved
    data = cycles_and_stars(seed=1)
    swapped = [graph.clone() for graph in data]
    for graph in swapped:
        graph.y = 1 - graph.y
    other = type(data).from_graphs(swapped, name="swapped", classes=("cycle", "star"))
    assert trained.evaluate(other) == trained.evaluate(data)
    unknown = type(data).from_graphs(swapped, name="unknown", classes=("cycle", "tree"))
    with pytest.raises(ValueError, match="tree"):
        trained.evaluate(unknown)


def test_features_of_another_width_are_refused(saved: tuple[Path, TrainedModel]) -> None:
    wider = cycles_and_stars().with_node_features(lambda x: torch.cat([x, x], 1))
    with pytest.raises(ValueError, match="6 features, but the model expects 3"):
        saved[1].predict(wider)


@pytest.mark.parametrize("size", [0, 5, 100, 2_000, -1])
def test_a_cut_file_is_refused(saved: tuple[Path, TrainedModel], tmp_path: Path, size: int) -> None:
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(saved[0].read_bytes()[:size])
    with pytest.raises(FileError, match=r"cut\.safetensors: not a readable model file"):
        load_model(cut)


def test_a_flipped_bit_is_noticed(saved: tuple[Path, TrainedModel], tmp_path: Path) -> None:
    content = bytearray(saved[0].read_bytes())
    content[-100] ^= 1
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(content)
    with pytest.raises(FileError, match="checksum"):
        load_model(damaged)


def test_other_files_are_refused(saved: tuple[Path, TrainedModel], tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        load_model(tmp_path / "none")
    text = tmp_path / "text"
    text.write_text(json.dumps({"a": 1}) * 10)
    with pytest.raises(FileError, match="not a readable model file"):
        load_model(text)
    foreign = tmp_path / "foreign.safetensors"
    save_file({"a": torch.zeros(2)}, foreign)
    with pytest.raises(FileError, match="not a model file of tfgw"):
        load_model(foreign)
    newer = tmp_path / "newer.safetensors"
    save_file(load_file(saved[0]), newer, metadata={"tfgw": '{"kind": "model", "format": 2}'})
    with pytest.raises(FileError, match="has format 2, but this version of tfgw reads formats up to 1"):
        load_model(newer)


def test_options_that_an_older_file_does_not_name_have_their_defaults(
    saved: tuple[Path, TrainedModel], tmp_path: Path
) -> None:
    tensors, description = read_tensors(saved[0], kind=KIND)
    del description["architecture"]["start_kinds"]
    write_tensors(tmp_path / "older.safetensors", tensors, description, kind=KIND)
    assert load_model(tmp_path / "older.safetensors").model.config == saved[1].model.config


def test_graphs_without_targets_are_not_measured(saved: tuple[Path, TrainedModel]) -> None:
    data = cycles_and_stars()
    bare = type(data).from_graphs([Data(x=graph.x, edge_index=graph.edge_index) for graph in data], name="bare")
    assert saved[1].outputs(bare).equal(saved[1].outputs(data))
    with pytest.raises(ValueError, match="the graphs have no classes"):
        saved[1].measure(bare)
    measured = saved[1].measure(data)
    assert (measured["loss"], measured["accuracy"]) == saved[1].evaluate(data)


def test_values_are_no_classes(saved: tuple[Path, TrainedModel]) -> None:
    with pytest.raises(ValueError, match=r"^dataset: the graphs have no classes$"):
        saved[1].evaluate(regression_data(1))


def test_values_are_measured_where_they_are_known() -> None:
    """Graphs whose value is missing do not count; without any there is nothing to measure."""
    data = regression_data(1)
    model = small_model(data, outputs=1)
    trained = TrainedModel(
        model=model, task="regression", classes=(), preprocessing=Preprocessing(in_channels=3), source={}
    )
    found = trained.outputs(data)[:, 0].double()
    graphs = [graph.clone() for graph in data]
    for graph, value in zip(graphs, found[:5] + torch.tensor([0.5, -0.5, 1.0, 0.0, 2.0]), strict=False):
        graph.y = value.reshape(1, 1).float()
    for graph in graphs[5:]:
        graph.y = torch.full((1, 1), torch.nan)
    measured = trained.measure(GraphDataset.from_graphs(graphs, name="partly"))
    assert measured["graphs"] == 5
    assert measured["loss"] == pytest.approx((0.25 + 0.25 + 1.0 + 4.0) / 5, rel=1e-5)
    with pytest.raises(ValueError, match=r"^dataset: no graph has a target$"):
        trained.measure(GraphDataset.from_graphs(graphs[5:], name="unknown"))
    bare = GraphDataset.from_graphs([Data(x=graph.x, edge_index=graph.edge_index) for graph in graphs], name="bare")
    with pytest.raises(ValueError, match=r"^dataset: the graphs have no targets y"):
        trained.evaluate(bare)
    with pytest.raises(ValueError, match=r"^dataset: the graphs have no targets y"):
        TargetScaler.of_dataset(bare)


def test_several_values_are_measured_together() -> None:
    """A graph counts if all of its values are known; the loss is the mean over graphs and values."""
    data = regression_data(2)
    trained = TrainedModel(
        model=small_model(data), task="regression", classes=(), preprocessing=Preprocessing(in_channels=3), source={}
    )
    graphs, found = [graph.clone() for graph in data][:6], trained.outputs(data[:6])
    for graph, row in zip(graphs, found, strict=True):
        graph.y = (row + torch.tensor([1.0, -3.0])).reshape(1, 2)
    graphs[4].y[0, 1] = torch.nan
    measured = trained.measure(GraphDataset.from_graphs(graphs, name="values"))
    assert measured["graphs"] == 5
    assert measured["loss"] == pytest.approx((1 + 9) / 2, rel=1e-5)
    assert (measured["mae"], measured["rmse"]) == (pytest.approx(2.0), pytest.approx(5**0.5))


def test_labels_of_which_several_may_hold_are_measured() -> None:
    """Each of the labels counts for itself."""
    graphs = [graph.clone() for graph in cycles_and_stars()]
    model = small_model(cycles_and_stars())
    steps = Preprocessing(in_channels=3)
    trained = TrainedModel(model=model, task="multilabel", classes=(), preprocessing=steps, source={})
    found = (trained.outputs(graphs) > 0).float()
    for number, (graph, row) in enumerate(zip(graphs, found, strict=True)):
        graph.y = (1 - row if number < 6 else row).reshape(1, 2)  # the first six are wrong in both labels
    measured = trained.measure(GraphDataset.from_graphs(graphs, name="labels"))
    assert measured.keys() == {"graphs", SCORE_NAMES["multilabel"], "loss"}
    assert (measured["graphs"], measured[SCORE_NAMES["multilabel"]]) == (24, 0.75)


def test_a_model_with_an_encoder_of_its_own_is_given_it_again(tmp_path: Path) -> None:
    config = TFGWConfig(in_channels=3, out_channels=2, num_templates=2, template_nodes=5)
    model = TFGWModel(config, encoder=GCN(3, 6, num_layers=2))
    steps = Preprocessing(in_channels=3)
    trained = TrainedModel(
        model=model, task="classification", classes=("star", "cycle"), preprocessing=steps, source={}
    )
    save_model(trained, tmp_path / "own.safetensors")
    with pytest.raises(ValueError, match="encoder: required"):
        load_model(tmp_path / "own.safetensors")
    loaded = load_model(tmp_path / "own.safetensors", encoder=GCN(3, 6, num_layers=2))
    assert same_weights(loaded.model, model)


def _changed(description: dict, path: str, value: object) -> dict:
    *parents, last = path.split("/")
    place = description
    for name in parents:
        place = place[name]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return description


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("task", "clustering"),
        ("task", ...),
        ("dtype", "nn"),
        ("dtype", 7),
        ("architecture", []),
        ("architecture/num_templates", 10**9),
        ("architecture/template_nodes", 10**6),
        ("architecture/width", 10**9),
        ("architecture/num_layers", 10**9),
        ("architecture/hidden_layers", 10**9),
        ("architecture/out_channels", 10**10),
        ("architecture/in_channels", 10**10),
        ("architecture/alpha_init", "half"),
        ("architecture/structure", "trees"),
        ("architecture/surprise", 1),
        ("classes", ["star"]),
        ("classes", None),
        ("classes", ["star", "star"]),
        ("classes", ["star", 1.5]),
        ("classes", ["star", ["cycle"]]),
        ("members", 0),
        ("members", True),
        ("own_encoder", 3),
        ("architecture/activation", "no"),
        ("architecture/n_starts", 1.5),
        ("architecture/start_kinds", "uniform"),
        ("architecture/alpha", float("nan")),
        ("preprocessing/in_channels", 4),
        ("preprocessing/mean", [0.0, 1.0]),
        ("preprocessing/mean", [0.0, float("nan"), 1.0]),
        ("preprocessing/scale", [1.0, 0.0, 1.0]),
        ("preprocessing/scale", None),
        ("source", 3),
        ("encoding", {"features": "labels", "vocabulary": [[1, 2, 2]]}),
        ("encoding", {"features": "labels", "vocabulary": [[3, 1, 2]]}),
        ("encoding", {"features": "labels", "vocabulary": [[1, "a", 3]]}),
        ("encoding", {"features": "degree", "vocabulary": [[0, 1, 2]]}),
        ("encoding", {"features": "attributes", "num_attributes": 4}),
        ("preprocessing", {}),
        ("preprocessing/mean", 3),
        ("source", ...),
        ("encoding", {"features": "labels"}),
        ("encoding", {"vocabulary": 3}),
        ("target_scaler", {"mean": [0.0], "scale": [1.0]}),
        ("target_scaler", {"mean": [0.0, 1.0], "scale": [1.0]}),
    ],
)
def test_a_crafted_description_is_refused(
    saved: tuple[Path, TrainedModel], tmp_path: Path, path: str, value: object
) -> None:
    """Before memory is taken for what it asks for, and with the error of files whatever it holds."""
    tensors, description = read_tensors(saved[0], kind=KIND)
    crafted = tmp_path / "crafted.safetensors"
    write_tensors(crafted, tensors, _changed(description, path, value), kind=KIND)
    with pytest.raises(FileError, match=r"crafted\.safetensors: (not a valid model|the weights do not match)"):
        load_model(crafted)


def test_tensors_outlive_their_file(saved: tuple[Path, TrainedModel], tmp_path: Path) -> None:
    """A file that somebody overwrites while its tensors are in use must not end the process."""
    shutil.copy(saved[0], tmp_path / "model.safetensors")
    code = """
import sys
from pathlib import Path
from tfgw.train.tensor_file import read_tensors
tensors, _ = read_tensors(Path("model.safetensors"), kind="model")
Path("model.safetensors").write_bytes(b"")
sys.exit(0 if all(tensor.isfinite().all() for tensor in tensors.values()) else 1)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


def test_weights_that_are_not_finite_are_refused(saved: tuple[Path, TrainedModel], tmp_path: Path) -> None:
    """A head with NaN would predict the first class for every graph."""
    tensors, description = read_tensors(saved[0], kind=KIND)
    name = next(name for name in tensors if name.startswith("head."))
    tensors[name].view(-1)[0] = torch.nan
    write_tensors(tmp_path / "nan.safetensors", tensors, description, kind=KIND)
    with pytest.raises(FileError, match="not finite"):
        load_model(tmp_path / "nan.safetensors")


@pytest.mark.parametrize("header", ["[]", "7", '{"kind": "model"}', '{"kind": "model", "format": 1}', "[" * 10**5])
def test_a_crafted_header_is_refused(saved: tuple[Path, TrainedModel], tmp_path: Path, header: str) -> None:
    save_file(load_file(saved[0]), tmp_path / "crafted.safetensors", metadata={"tfgw": header})
    with pytest.raises(FileError):
        load_model(tmp_path / "crafted.safetensors")


def test_all_that_a_model_knows_about_its_data_is_saved(tmp_path: Path) -> None:
    data = regression_data(2)
    encoding = NodeEncoding(features="both", num_attributes=2, vocabulary=((7,),))
    steps = Preprocessing(in_channels=3, canonical_order=False, mean=(0.5, 1.0, 2.0), scale=(1.0, 3.0, 4.0))
    columns = TableColumns(smiles="structure", target="value", identifier="name")
    trained = TrainedModel(
        model=small_model(data),
        task="regression",
        classes=(),
        preprocessing=steps,
        source={"dataset": "values", "seed": 3},
        encoding=encoding,
        target_scaler=TargetScaler(mean=(1.0, -2.0), scale=(3.0, 0.5)),
        columns=columns,
    )
    path = tmp_path / "all.safetensors"
    save_model(trained, path)
    loaded = load_model(path)
    for name in ("task", "classes", "preprocessing", "source", "encoding", "target_scaler", "columns"):
        assert getattr(loaded, name) == getattr(trained, name), name
    assert not loaded.model.training
    bare = dataclasses.replace(trained, target_scaler=None)
    torch.testing.assert_close(
        loaded.outputs(list(data)), bare.outputs(list(data)) * torch.tensor([3.0, 0.5]) + torch.tensor([1.0, -2.0])
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_model_keeps_its_precision(dtype: torch.dtype, tmp_path: Path) -> None:
    trained = TrainedModel(
        model=small_model(cycles_and_stars()).to(dtype),
        task="classification",
        classes=("star", "cycle"),
        preprocessing=Preprocessing(in_channels=3),
        source={},
    )
    save_model(trained, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert {parameter.dtype for parameter in loaded.model.parameters()} == {dtype}
    assert same_weights(loaded.model, trained.model)


def test_graphs_whose_class_is_not_known_are_not_measured(saved: tuple[Path, TrainedModel]) -> None:
    """Also if their dataset has the classes of the model in another order."""
    data, trained = cycles_and_stars(seed=1), saved[1]
    graphs = [graph.clone() for graph in data]
    for graph in graphs:
        graph.y = 1 - graph.y
    for graph in graphs[:4]:
        graph.y = torch.tensor([-1])
    other = GraphDataset.from_graphs(graphs, name="partly", classes=("cycle", "star"))
    assert trained.with_own_classes(other).y.tolist() == [-1] * 4 + data.y.tolist()[4:]
    measured = trained.measure(other)
    assert measured["graphs"] == 20
    assert measured == trained.measure(data[4:])
    with pytest.raises(ValueError, match=r"^dataset: no graph has a target$"):
        trained.measure(other[:4])


def test_one_member_of_an_ensemble_that_does_not_fit_is_noticed(tmp_path: Path) -> None:
    data = cycles_and_stars()
    for sizes in ((5, 5), (5, 6), (6, 5)):
        members = [
            TFGWModel(TFGWConfig(in_channels=3, out_channels=2, num_templates=2, template_nodes=size, num_layers=1))
            for size in sizes
        ]
        path = tmp_path / f"{sizes}.safetensors"
        first = dataclasses.replace(members[0].config)
        trained = TrainedModel(
            model=Ensemble(members), task="classification", classes=data.classes,
            preprocessing=Preprocessing(in_channels=3), source={},
        )  # fmt: skip
        save_model(trained, path)
        if sizes == (5, 5):
            assert [member.config for member in load_model(path).members] == [first, first]
        else:
            with pytest.raises(FileError, match="the weights do not match the architecture"):
                load_model(path)


def test_a_description_may_be_in_any_order() -> None:
    tensors = {"a": torch.zeros(2), "b": torch.ones(3)}
    turned = dict(reversed(tensors.items()))
    assert content_digest(tensors, {"x": 1, "y": 2}) == content_digest(turned, {"y": 2, "x": 1})
    others = [tensors | {"a": torch.ones(2)}, tensors | {"a": torch.zeros(1, 2)}, tensors | {"a": torch.zeros(2).int()}]
    digests = {content_digest(other, {"x": 1}) for other in [tensors, *others, {"c": tensors["a"], "b": tensors["b"]}]}
    assert len(digests) == 5


def test_heads_with_many_layers(tmp_path: Path) -> None:
    """Their tensors are named by numbers, of which 12 comes after 9."""
    config = TFGWConfig(in_channels=3, out_channels=2, num_templates=2, template_nodes=5, num_layers=0, hidden_layers=4)
    model = TFGWModel(config)
    assert any(name.startswith("head.12.") for name in model.state_dict())
    trained = TrainedModel(
        model=model, task="classification", classes=(3, "b"), preprocessing=Preprocessing(in_channels=3), source={}
    )
    save_model(trained, tmp_path / "deep.safetensors")
    assert same_weights(load_model(tmp_path / "deep.safetensors").model, model)


def test_classes_that_a_model_does_not_know_are_named_in_order(saved: tuple[Path, TrainedModel]) -> None:
    data = cycles_and_stars()
    other = type(data).from_graphs(list(data), name="other", classes=("tree", 3))
    with pytest.raises(ValueError, match=r"contains classes that the model does not know: 3, tree$"):
        saved[1].evaluate(other)


def test_a_kernel_machine_has_no_networks(tmp_path: Path) -> None:
    data = cycles_and_stars(8)
    machine = TFGWKernelClassifier().fit(list(data), data.y.numpy())
    machine.save(tmp_path / "kernel.safetensors")
    loaded = load_model(tmp_path / "kernel.safetensors")
    assert len(loaded.predict(data)) == 8
    with pytest.raises(
        ValueError,
        match="the model is a kernel machine, which compares graphs with its training graphs and has no networks",
    ):
        _ = loaded.members
