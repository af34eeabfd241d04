"""Estimators and the command line share one model file."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import tfgw
from tests.cli.test_cli import write_tu_folder
from tests.cli.test_new_graphs import with_attributes
from tests.estimators.small import QUICK, fitted, rings_and_stars
from tfgw.baselines import MLP
from tfgw.cli import main
from tfgw.datasets import load
from tfgw.estimators import TFGWClassifier, TFGWTransformer


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_saved_classifier_is_loaded_again() -> None:
    model = fitted(epochs=2, canonical_order=False, n_starts=2)
    model.save("model.safetensors")
    again = TFGWClassifier.load("model.safetensors")
    graphs, _ = rings_and_stars(7, seed=1)
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    np.testing.assert_array_equal(again.transform(graphs), model.transform(graphs))
    assert again.predict(graphs).tolist() == model.predict(graphs).tolist()
    assert (again.num_templates, again.alpha, again.n_starts, again.canonical_order) == (4, 0.9, 2, False)
    assert (again.n_iter_, again.n_features_in_, again.num_parameters_) == (0, 3, model.num_parameters_)


def test_settings_of_a_recipe_are_in_the_file() -> None:
    """Those that change what the network computes."""
    recipe = {"self_loops": True, "free_diagonal": True, "single_dropout": True, "activation": True}
    model = fitted(epochs=3, num_layers=2, alpha=None, recipe=recipe)
    model.save("model.safetensors")
    again = TFGWClassifier.load("model.safetensors")
    assert {name: getattr(again.model_.config, name) for name in recipe} == recipe
    graphs, _ = rings_and_stars(7, seed=1)
    np.testing.assert_array_equal(again.predict_proba(graphs), model.predict_proba(graphs))
    assert again.templates_.structure.diagonal(dim1=1, dim2=2).any()


def test_several_labels_and_no_features() -> None:
    graphs, names = rings_and_stars(12)
    bare = [(C, None) for C, _ in graphs]
    y = np.stack([names == "ring", np.arange(12) % 3 == 0], axis=1).astype(int)
    model = TFGWClassifier(**{**QUICK, "epochs": 2}).fit(bare, y)
    model.save("model.safetensors")
    again = TFGWClassifier.load(Path("model.safetensors"))
    np.testing.assert_array_equal(again.predict_proba(bare), model.predict_proba(bare))
    assert again.classes_.tolist() == [0, 1]


def test_the_command_line_reads_it(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(workplace / "MINE")
    dataset = load(folder)
    labels = [dataset.classes[number] for number in dataset.y]
    model = TFGWClassifier(**{**QUICK, "epochs": 2}).fit(dataset, labels)
    model.save("model.safetensors")
    assert main(["predict", "model.safetensors", "--dataset", str(folder), "--json"]) == 0
    predicted = json.loads(capsys.readouterr().out)["predictions"]
    found = [[entry["probability_3"], entry["probability_7"]] for entry in predicted]
    np.testing.assert_array_equal(found, model.predict_proba(dataset))
    assert main(["evaluate", "model.safetensors"]) == 1
    assert "--dataset: required" in capsys.readouterr().err


def test_features_of_unknown_origin_cannot_be_read_from_files(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fitted(epochs=2).save("model.safetensors")
    assert main(["predict", "model.safetensors", "--dataset", str(write_tu_folder(workplace / "MINE"))]) == 1
    assert "the model file has no node encoding" in capsys.readouterr().err


def test_a_run_is_loaded_as_a_classifier(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_tu_folder(workplace / "MINE")
    assert main(["train", "--dataset", str(folder), "--epochs", "2", "--accelerator", "cpu", "--output", "run"]) == 0
    trained = tfgw.load_model("run/model.safetensors")
    model = TFGWClassifier.load("run/model.safetensors")
    dataset = trained.load(folder)
    np.testing.assert_array_equal(model.predict_proba(dataset), trained.probabilities(dataset))
    assert model.classes_.tolist() == [3, 7]


def test_what_is_no_classifier_is_refused(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotFittedError):
        TFGWClassifier().save("model.safetensors")
    folder = write_tu_folder(workplace / "MINE")
    (folder / "MINE_graph_labels.txt").rename(folder / "MINE_graph_attributes.txt")
    assert main(["train", "--dataset", str(folder), "--epochs", "2", "--accelerator", "cpu", "--output", "run"]) == 0
    with pytest.raises(ValueError, match="predicts values, not classes"):
        TFGWClassifier.load("run/model.safetensors")


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tfgw.nothing


def test_labels_beside_attributes_stay_as_they_are(workplace: Path) -> None:
    folder = with_attributes(write_tu_folder(workplace / "MINE"))
    dataset = load(folder)
    assert dataset.encoding.features == "both"
    for estimator in (TFGWClassifier(**{**QUICK, "epochs": 1}), TFGWTransformer(num_templates=2)):
        estimator.fit(dataset, dataset.y.tolist())
        assert estimator.preprocessing_.mean[1:] == (0.0,) * 3
        assert estimator.preprocessing_.mean[0] == pytest.approx(float(dataset.x[:, 0].mean()), abs=1e-6)
        with pytest.raises(ValueError, match="with different columns"):
            estimator.transform(load(folder, features="degree").with_tensors({"x": dataset.x}))


def test_a_summary_of_nodes_is_standardised_as_a_whole(workplace: Path) -> None:
    dataset = load(with_attributes(write_tu_folder(workplace / "MINE")))
    model = MLP(epochs=1, accelerator="cpu").fit(dataset, dataset.y.tolist())
    assert all(mean != 0 for mean in model.preprocessing_.mean)
