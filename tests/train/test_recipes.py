import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.train.small import cycles_and_stars, regression_data, small_model
from tfgw.baselines import GIN, MLP, OTGNN, DiffPool, DropGIN
from tfgw.datasets import GraphDataset
from tfgw.estimators import TFGWClassifier, TFGWRegressor
from tfgw.nn import TFGWConfig, TFGWModel
from tfgw.train import TrainConfig, evaluate, fit
from tfgw.train.batch_statistics import refresh_statistics
from tfgw.train.batches import GraphStore
from tfgw.train.config import config_from
from tfgw.train.optimizer import LearningRates, new_optimizer
from tfgw.train.recipes import (
    BATCH_GROWTH,
    FEWEST_EPOCHS,
    RECIPES,
    RULES,
    TEMPLATES_PER_CLASS,
    complete,
    num_templates,
    recipe_of,
)
from tfgw.train.schedules import depends_on_epochs, lr_factor


def test_the_one_cycle_schedule_rises_for_a_tenth_and_falls_along_a_cosine() -> None:
    factors = [lr_factor("one_cycle", step, 100) for step in range(100)]
    assert factors[:10] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert all(later < earlier for earlier, later in pairwise(factors[9:]))
    assert factors[54] == pytest.approx(0.5, abs=0.02)  # half way down
    assert 0 < factors[-1] < 1e-3
    falling = factors[10:]
    assert [one + other for one, other in zip(falling, reversed(falling), strict=True)] == pytest.approx([1.0] * 90)
    assert [lr_factor("constant", step, 7) for step in range(7)] == [1.0] * 7
    # A tenth of three steps is less than one: the first has the full rate.
    assert [lr_factor("one_cycle", step, 3) for step in range(3)] == pytest.approx([1.0, 0.75, 0.25])
    assert all(0 < lr_factor("one_cycle", step, steps) <= 1 for steps in (1, 2, 3) for step in range(steps))


def test_the_halved_schedule_depends_on_epochs_alone() -> None:
    factors = [lr_factor("halved", step=3, steps=7, epoch=epoch) for epoch in (1, 50, 51, 100, 101, 1000)]
    assert factors == [1.0, 1.0, 0.5, 0.5, 0.25, 0.5**19]
    config = TrainConfig(schedule="halved", epochs=60, lr=0.5)
    optimizer = new_optimizer(nn.Linear(2, 3), config)
    found = []
    for epoch in (1, 50, 51, 60):
        LearningRates(optimizer, config).set(epoch, 2, 4)
        found.append(optimizer.param_groups[0]["lr"])
        optimizer = new_optimizer(nn.Linear(2, 3), config)
    assert found == [0.5, 0.5, 0.25, 0.25]
    assert [depends_on_epochs(schedule) for schedule in ("constant", "halved", "one_cycle")] == [False, False, True]


def test_rates_follow_the_schedule_in_proportion() -> None:
    model = small_model(cycles_and_stars(8))
    config = TrainConfig(epochs=5, lr=0.02, template_lr=0.004, schedule="one_cycle")
    optimizer = new_optimizer(model, config)
    rates = LearningRates(optimizer, config)
    rates.set(3, 1, 4)  # the tenth of 20 steps
    factor = lr_factor("one_cycle", 9, 20)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.02 * factor, 0.004 * factor])


def test_a_rate_that_is_a_tensor_is_changed_in_place() -> None:
    """As on a GPU, where recorded steps read it: to what the rate is elsewhere."""
    config = TrainConfig(schedule="one_cycle", epochs=4, lr=0.5)
    plain, recorded = (new_optimizer(nn.Linear(2, 3), config) for _ in range(2))
    rates = [LearningRates(optimizer, config) for optimizer in (plain, recorded)]
    tensors = [torch.tensor(9.0, dtype=torch.float64) for _ in recorded.param_groups]
    for group, tensor in zip(recorded.param_groups, tensors, strict=True):
        group["lr"] = tensor
    for epoch, step in ((1, 0), (2, 4), (4, 6)):
        for one in rates:
            one.set(epoch, step, 7)
        assert all(group["lr"] is tensor for group, tensor in zip(recorded.param_groups, tensors, strict=True))
        assert [float(tensor) for tensor in tensors] == [group["lr"] for group in plain.param_groups]
        assert plain.param_groups[0]["lr"] == 0.5 * lr_factor("one_cycle", 7 * (epoch - 1) + step, 28)


def test_the_optimiser_has_the_settings_of_the_run() -> None:
    model = small_model(cycles_and_stars(8))
    config = TrainConfig(lr=0.2, betas=(0.5, 0.75), weight_decay=0.125)
    networks, templates = new_optimizer(model, config).param_groups
    assert (networks["lr"], networks["weight_decay"], networks["betas"]) == (0.2, 0.125, (0.5, 0.75))
    assert (templates["lr"], templates["weight_decay"], templates["betas"]) == (0.2, 0.0, (0.5, 0.75))
    assert {id(p) for p in templates["params"]} == {id(p) for p in model.pool.parameters()}
    assert len(networks["params"]) + len(templates["params"]) == len(list(model.parameters()))
    (only,) = new_optimizer(nn.Linear(2, 3), config).param_groups
    assert len(only["params"]) == 2


def test_networks_decay_and_templates_do_not() -> None:
    model = small_model(cycles_and_stars(8))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = new_optimizer(model, TrainConfig(lr=0.1, weight_decay=0.5))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        expected = before[name] * (1.0 if name.startswith("pool.") else 1 - 0.1 * 0.5)
        torch.testing.assert_close(parameter.detach(), expected, msg=name)


def test_label_smoothing_changes_the_training_loss_alone() -> None:
    data = cycles_and_stars(12)
    records = []
    for smoothing in (0.0, 0.4):
        config = TrainConfig(epochs=1, batch_size=12, lr=1e-9, label_smoothing=smoothing, accelerator="cpu")
        records.append(fit(small_model(data), data, data, config=config).records[0])
    plain, smooth = records
    assert smooth.validation_loss == pytest.approx(plain.validation_loss, rel=1e-6)
    model = small_model(data).double().train()
    batch = GraphStore(data, dtype=torch.float64).batch(torch.arange(12))
    scores = model(**batch.inputs).log_softmax(1)
    expected = -(0.6 * scores[torch.arange(12), batch.y] + 0.4 * scores.mean(1)).mean()
    assert smooth.loss == pytest.approx(expected.item(), rel=1e-6)


def test_fresh_statistics_are_those_of_the_training_graphs() -> None:
    """A single batch of all graphs: evaluation normalises as training does, but for Bessel's correction."""
    data = cycles_and_stars(11)
    model = (
        TFGWModel(config_from(TFGWConfig, RECIPES["default"] | {"dropout": 0.3}, **SIZES)).init_templates(data).double()
    )
    batch = GraphStore(data, dtype=torch.float64).batch(torch.arange(11))
    refresh_statistics(model.eval(), [batch])
    assert not model.training
    norm = model.encoder.convs[0].nn[1]
    assert norm.momentum == 0.1
    assert int(norm.num_batches_tracked) == 1
    mean = model.head[0].running_mean.clone()
    with torch.no_grad():
        first = model.encoder.convs[0].nn[0](batch.inputs["x"] + _summed(batch.inputs))
        torch.testing.assert_close(norm.running_mean, first.mean(0))
        torch.testing.assert_close(norm.running_var, first.var(0))
        torch.testing.assert_close(mean, model.train().readout(**batch.inputs).mean(0))


def test_statistics_are_averaged_over_batches() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2))
    x = [torch.tensor([[0.0, 1.0], [2.0, 5.0]]), torch.tensor([[4.0, 3.0], [10.0, 3.0]])]

    class Batch:
        def __init__(self, rows: torch.Tensor) -> None:
            self.inputs = {"input": rows}

    refresh_statistics(model, [Batch(rows) for rows in x])  # type: ignore[misc]
    assert model[0].running_mean.tolist() == [4.0, 3.0]
    assert model[0].running_var.tolist() == [10.0, 4.0]  # (2 + 18) / 2 and (8 + 0) / 2


def test_what_no_training_graph_has_is_not_scaled_up() -> None:
    """The number of atoms of an element that is in a new graph only: its variance would be 0."""
    graphs = [graph.clone() for graph in cycles_and_stars(40)]
    for graph in graphs:
        graph.x = torch.cat([graph.x, torch.zeros(graph.num_nodes, 1)], dim=1)
    data = GraphDataset.from_graphs(graphs, name="wide")
    model = TFGWModel(config_from(TFGWConfig, RECIPES["default"], **SIZES | {"in_channels": 4})).init_templates(data)
    fit(model, data, config=TrainConfig(epochs=2, batch_size=16, fresh_statistics=True, accelerator="cpu"))
    norm = model.head[0]
    entry = model.config.num_templates + 3  # after the distances and the three other features
    assert norm.running_mean[entry] == 0
    assert norm.running_var[entry] == 1
    assert norm.running_var.min() > 1e-9


def test_a_short_training_is_as_good_in_evaluation_as_in_training() -> None:
    """Moving averages have hardly begun to move after so few steps."""
    data = cycles_and_stars(40)
    scores = {}
    for fresh in (False, True):
        model = default_model(data, dropout=0.0)
        config = TrainConfig(epochs=8, batch_size=40, lr=0.03, fresh_statistics=fresh, accelerator="cpu")
        trained = fit(model, data, config=config).records[-1].score
        scores[fresh] = (trained, evaluate(model, data, task="classification").score)
    trained, evaluated = scores[True]
    assert trained > 0.9
    assert evaluated > trained - 0.05
    assert scores[False][1] < evaluated


def test_validation_sees_fresh_statistics() -> None:
    data = cycles_and_stars(16)
    model = small_model(data)
    config = TrainConfig(epochs=1, batch_size=16, lr=1e-9, fresh_statistics=True, accelerator="cpu")
    record = fit(model, data, data, config=config).records[0]
    assert record.validation_loss == pytest.approx(record.loss, rel=0.05)


def test_chosen_settings_come_before_the_recipe() -> None:
    settings = complete({"lr": 0.5, "epochs": None, "alpha": None}, "default", num_graphs=1000)
    assert settings == {name: value for name, value in RECIPES["default"].items() if name not in RULES} | {"lr": 0.5}
    assert complete({"epochs": 3}, "paper", num_graphs=100) == {"epochs": 3, "n_estimators": 1}


@pytest.mark.parametrize(
    ("graphs", "epochs", "networks", "batch_size"),
    [
        *((64, 300, 3, 64), (65, 150, 3, 64), (170, 100, 3, 64), (2_333, 100, 3, 64)),
        *((2_334, 99, 3, 256), (4_000, 58, 3, 256), (16_000, 21, 2, 256), (50_000, 20, 1, 256)),
    ],
)
def test_the_number_of_graphs_decides(graphs: int, epochs: int, networks: int, batch_size: int) -> None:
    settings = complete({}, "default", num_graphs=graphs)
    assert (settings["epochs"], settings["n_estimators"], settings["batch_size"]) == (epochs, networks, batch_size)
    chosen = complete({"epochs": 321, "batch_size": 48}, "default", num_graphs=graphs)
    assert (chosen["epochs"], chosen["batch_size"]) == (321, 48)


def test_more_networks_share_the_work() -> None:
    assert complete({"n_estimators": 10}, "default", num_graphs=1_000)["epochs"] == 70
    assert complete({"n_estimators": 90}, "default", num_graphs=1_000)["epochs"] == FEWEST_EPOCHS
    one = complete({"n_estimators": 1}, "default", num_graphs=4_000)
    assert (one["epochs"], one["batch_size"]) == (100, 64)
    assert complete({"n_estimators": 1, "epochs": 100}, "default", num_graphs=4_000) == one


@pytest.mark.parametrize(
    ("settings", "classes", "templates"),
    [
        ({}, 3, 12),
        ({"templates_per_class": 2}, 5, 10),
        ({"templates_per_class": 2}, 0, 4),
        ({"num_templates": 7}, 3, 7),
    ],
)
def test_templates_depend_on_the_number_of_classes(settings: dict, classes: int, templates: int) -> None:
    assert num_templates(settings, classes) == templates


def test_small_batches_need_fewer_epochs_for_as_many_steps() -> None:
    assert complete({"batch_size": 8}, "default", num_graphs=20)["epochs"] == 100
    assert complete({"batch_size": 8}, {"fewest_steps": 5000}, num_graphs=20)["epochs"] == 1667
    assert complete({}, {"largest_work": 10_000}, num_graphs=100) == {
        "epochs": 100,
        "n_estimators": 1,
        "batch_size": BATCH_GROWTH * TrainConfig.batch_size,
    }


def test_only_classes_have_labels_to_smooth() -> None:
    assert "label_smoothing" in complete({}, "default", num_graphs=9)
    assert "label_smoothing" not in complete({}, "default", num_graphs=9, task="regression")
    with pytest.raises(ValueError, match="label_smoothing: only for classification"):
        TrainConfig(task="regression", label_smoothing=0.1)


@pytest.mark.parametrize("name", RECIPES)
def test_every_setting_of_a_recipe_is_known(name: str) -> None:
    assert recipe_of(dict(RECIPES[name])) == RECIPES[name]
    with pytest.raises(ValueError, match="recipe: 'weigth_decay' is not a setting"):
        recipe_of({**RECIPES[name], "weigth_decay": 0.1})


@pytest.mark.parametrize("name", ["in_channels", "out_channels", "seed", "task"])
def test_what_a_recipe_cannot_set_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"recipe: '{name}' is not a setting"):
        recipe_of({name: 1})


@pytest.mark.parametrize("setting", [{"stratified": True}, {"n_starts": 2}, {"precision": "float32"}])
def test_a_setting_that_a_parameter_always_overrides_is_an_error(setting: dict[str, object]) -> None:
    graphs, labels = labelled(12)
    (name,) = setting
    with pytest.raises(ValueError, match=f"recipe: '{name}' is a parameter of TFGWClassifier; set it there"):
        TFGWClassifier(recipe=setting, epochs=1, accelerator="cpu").fit(graphs, labels)


def test_a_recipe_may_set_the_size_of_templates() -> None:
    graphs, labels = labelled(12)
    model = TFGWClassifier(recipe={"template_nodes": 3}, epochs=1, accelerator="cpu").fit(graphs, labels)
    assert model.model_.config.template_nodes == 3


def test_an_unknown_recipe_is_refused() -> None:
    with pytest.raises(ValueError, match="recipe: must be one of default, paper, or a mapping of settings, got 'best'"):
        TFGWClassifier(recipe="best").fit(*labelled(6))
    with pytest.raises(ValueError, match="or a mapping of settings, got 3"):
        TFGWClassifier(recipe=3).fit(*labelled(6))


@pytest.mark.parametrize("kind", [TFGWClassifier, GIN, OTGNN, DropGIN, DiffPool])
def test_every_network_takes_the_recipe(kind: type) -> None:
    graphs, labels = labelled(12)
    ensemble = kind(epochs=2, accelerator="cpu", random_state=0).fit(graphs, labels).model_
    assert len(ensemble.members) == RECIPES["default"]["n_estimators"]
    model = ensemble.members[1]
    names = [type(module).__name__ for module in model.head.modules()]
    assert names.count("GraphVectorNorm") == 1
    assert names.count("Linear") == 2  # one hidden layer
    assert [module.p for module in model.head.modules() if isinstance(module, nn.Dropout)] == [0.5]
    paper = kind(recipe="paper", epochs=2, accelerator="cpu", random_state=0).fit(graphs, labels).model_
    names = [type(module).__name__ for module in paper.head.modules()]
    assert names.count("GraphVectorNorm") == 0
    assert names.count("Linear") == 3


def test_parameters_come_before_the_recipe() -> None:
    graphs, labels = labelled(12)
    settings = {"n_estimators": 1, "epochs": 2, "accelerator": "cpu", "random_state": 0}
    model = TFGWClassifier(dropout=0.25, width=5, num_layers=1, **settings).fit(graphs, labels).model_
    assert model.config.dropout == 0.25
    assert model.encoder.out_channels == 3 + 5
    own = TFGWClassifier(recipe={"hidden_layers": 0}, **settings).fit(graphs, labels).model_
    assert own.config.hidden_layers == 0
    assert own.config.readout == "distances"


@pytest.mark.parametrize("kind", [TFGWClassifier, GIN, OTGNN, DropGIN])
def test_self_loops_of_a_recipe_are_in_every_encoder(kind: type) -> None:
    graphs, labels = labelled(12)
    settings = {"epochs": 1, "num_layers": 2, "width": 5, "accelerator": "cpu", "random_state": 0}
    for recipe, loops in (("paper", [False, False]), ({"self_loops": True}, [True, True])):
        model = kind(recipe=recipe, **settings).fit(graphs, labels).model_
        assert [layer.self_loops for layer in model.encoder.convs] == loops


@pytest.mark.parametrize("kind", [TFGWClassifier, GIN, OTGNN, DropGIN, DiffPool, MLP])
def test_single_dropout_of_a_recipe_is_in_every_head(kind: type) -> None:
    graphs, labels = labelled(12)
    settings = {"epochs": 1, "dropout": 0.25, "accelerator": "cpu", "random_state": 0}
    for recipe, rates in (("paper", [0.25, 0.25]), ({"single_dropout": True}, [0.25])):
        head = kind(recipe=recipe, **settings).fit(graphs, labels).model_.head
        assert [module.p for module in head.modules() if isinstance(module, nn.Dropout)] == rates


def test_a_regressor_takes_the_recipe() -> None:
    graphs = list(regression_data(1))
    values = [float(graph.y) for graph in graphs]
    model = TFGWRegressor(epochs=3, accelerator="cpu", random_state=0).fit(graphs, values)
    assert [member.config.readout for member in model.model_.members] == ["distances+sum"] * 3
    assert model.predict(graphs).shape == (len(graphs),)


SIZES = {"in_channels": 3, "out_channels": 2, "num_templates": 2, "template_nodes": 5}


def default_model(data: GraphDataset, *, dropout: float) -> TFGWModel:
    """The architecture of the default recipe; the same weights at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        settings = {**RECIPES["default"], "dropout": dropout}
        return TFGWModel(config_from(TFGWConfig, settings, **SIZES)).init_templates(data)


def labelled(count: int) -> tuple[list, list[int]]:
    graphs = list(cycles_and_stars(count))
    return graphs, [int(graph.y) for graph in graphs]


def _summed(inputs: dict) -> torch.Tensor:
    source, target = inputs["edge_index"]
    return torch.zeros_like(inputs["x"]).index_add(0, target, inputs["x"][source])


def test_the_docs_tell_what_the_recipes_are() -> None:
    """The table of docs/recipe.md, with the numbers of the code."""
    text = (Path(__file__).parents[2] / "docs/recipe.md").read_text()
    rows = dict(re.findall(r"^\| ([\w ]+) \| (.*) \|$", text, re.MULTILINE))
    recipe, paper, network = recipe_of("default"), TrainConfig(), TFGWConfig(**SIZES)
    words = {1: "one", 2: "two", 3: "three", 4: "four"}
    assert rows["networks"].startswith(words[recipe["n_estimators"]] + ", ")
    templates = (f"{words[recipe['templates_per_class']]} per class", f"{words[TEMPLATES_PER_CLASS]} per class")
    assert [part.removesuffix(" in each network") for part in rows["templates"].split(" | ")] == [*templates]
    layers = f"{recipe['num_layers']} layers of {recipe['width']} features"
    assert rows["GIN"].startswith(f"{layers}, each ending with a ReLU")
    assert rows["GIN"].endswith(f"{network.num_layers} layers of {network.width} features, without this ReLU")
    assert f"weight decay of {recipe['weight_decay']} for the networks" in rows["optimiser"]
    assert f"rises to {recipe['lr']} in the first tenth of all steps" in rows["learning rate"]
    assert rows["learning rate"].endswith(f"| {paper.schedule} {paper.lr}")
    assert (recipe["schedule"], paper.schedule) == ("one_cycle", "constant")
    limits = f"fewer than {recipe['fewest_steps']} steps; fewer if epochs × graphs × networks exceeds"
    assert f"{recipe['epochs']}; more if that is {limits} {recipe['largest_work']:,}" in rows["epochs"]
    assert f"but at least {FEWEST_EPOCHS}, " in rows["epochs"]
    assert rows["epochs"].endswith(f"| {paper.epochs}")
    batches = f"{recipe['batch_size']} graphs; {BATCH_GROWTH * recipe['batch_size']} where epochs are fewer"
    assert rows["batch"].startswith(batches)
    assert rows["batch"].endswith(f"| {paper.batch_size} graphs")
    assert f"label smoothing {recipe['label_smoothing']} |" in rows["loss"]
    assert rows["statistics of batch normalisation"].startswith("recomputed")
    assert (recipe["fresh_statistics"], recipe["activation"], recipe["normalize"]) == (True, True, True)
    assert rows["head"] == f"{words[recipe['hidden_layers']]} hidden layer of 128, dropout {recipe['dropout']} | " + (
        f"{words[network.hidden_layers]} hidden layers of 128"
    )
