"""A regressor and the command line share one model file, whose values are in the units of the targets."""

import json
from pathlib import Path

import numpy as np
import pytest

import tfgw
from tests.cli.test_cli import write_tu_folder
from tests.estimators.small import QUICK, fitted, rings_and_stars
from tfgw.cli import main
from tfgw.datasets import load
from tfgw.estimators import TFGWRegressor

pytestmark = pytest.mark.usefixtures("workplace")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("values", [1, 2])
def test_a_saved_regressor_is_loaded_again(values: int) -> None:
    graphs, _ = rings_and_stars(12)
    y = np.stack([np.arange(12.0) - 1000, np.arange(12.0) ** 2], axis=1)[:, :values]
    model = TFGWRegressor(**{**QUICK, "epochs": 2}).fit(graphs, y[:, 0] if values == 1 else y)
    model.save("model.safetensors")
    again = TFGWRegressor.load("model.safetensors")
    np.testing.assert_array_equal(again.predict(graphs), model.predict(graphs))
    assert again.predict(graphs).shape == ((12,) if values == 1 else (12, 2))
    assert again.target_scaler_ == model.target_scaler_


def test_the_command_line_answers_in_the_units_of_the_targets(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_tu_folder(workplace / "MINE")
    sizes = np.array([4 + number % 3 for number in range(20)])
    (folder / "MINE_graph_labels.txt").unlink()
    (folder / "MINE_graph_attributes.txt").write_text("".join(f"{5000 + 100 * size}\n" for size in sizes))
    quick = ["--epochs", "60", "--estimators", "1", "--accelerator", "cpu", "--no-report"]
    assert main(["train", "--dataset", str(folder), *quick, "--output", "run"]) == 0
    assert json.loads(Path("run/results.json").read_text())["train_negative_mse"] > -1000  # the variance is 6,667
    capsys.readouterr()
    assert main(["predict", "run", "--dataset", str(folder), "--json"]) == 0
    predicted = [entry["prediction"] for entry in json.loads(capsys.readouterr().out)["predictions"]]
    np.testing.assert_allclose(predicted, 5000 + 100 * sizes, atol=40)
    model, trained = TFGWRegressor.load("run/model.safetensors"), tfgw.load_model("run/model.safetensors")
    dataset = trained.load(folder)
    np.testing.assert_allclose(model.predict(dataset), predicted, rtol=1e-6)
    assert trained.measure(dataset)["mae"] < 40
    assert trained.evaluate(dataset).score == pytest.approx(-(trained.measure(dataset)["rmse"] ** 2))


def test_what_is_no_regressor_is_refused() -> None:
    fitted(epochs=1).save("model.safetensors")
    with pytest.raises(ValueError, match="predicts classes, not values"):
        TFGWRegressor.load("model.safetensors")


def test_lists_of_graphs_are_predicted_like_their_dataset(workplace: Path) -> None:
    dataset = load(write_tu_folder(workplace / "MINE"))
    model = TFGWRegressor(**{**QUICK, "epochs": 1}).fit(dataset, dataset.y.numpy() * 3.5)
    trained = model.trained_
    assert trained.predict(list(dataset)) == trained.predict(dataset)
    with pytest.raises(ValueError, match="expected a dataset or a list of graphs, got one graph"):
        trained.predict(dataset[0])
