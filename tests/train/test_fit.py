import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch_geometric.data import Data, InMemoryDataset

from tests.train.small import cycles_and_stars, regression_data, same_weights, small_model
from tfgw.datasets import GraphDataset
from tfgw.nn import GINModel
from tfgw.train import EpochRecord, Kept, TrainConfig, evaluate, fit, outputs
from tfgw.train.batches import GraphStore
from tfgw.train.epoch_plan import EpochPlan
from tfgw.train.evaluate import Evaluation
from tfgw.train.history import is_worth_keeping
from tfgw.train.schedules import lr_factor
from tfgw.train.trainer import Trainer

SHORT = TrainConfig(epochs=6, batch_size=7, accelerator="cpu")


def test_a_model_learns_to_tell_cycles_from_stars() -> None:
    train, test = cycles_and_stars(), cycles_and_stars(seed=1)
    model = small_model(train, layers=0)
    result = fit(model, train, config=TrainConfig(epochs=60, accelerator="cpu"))
    assert result.records[-1].loss < 0.5 * result.records[0].loss
    assert evaluate(model, test, task="classification").score > 0.9


@pytest.mark.parametrize("precision", ["float64", "float32", "bf16"])
def test_one_seed_gives_one_model(precision: str) -> None:
    train = cycles_and_stars()
    config = TrainConfig(epochs=4, batch_size=7, seed=5, precision=precision, accelerator="cpu")
    models = [small_model(train, dropout=0.5) for _ in range(2)]
    for number, model in enumerate(models):
        torch.manual_seed(number)  # the state of the global generator plays no role
        fit(model, train, config=config)
    assert same_weights(*models)
    expected = torch.float64 if precision == "float64" else torch.float32
    assert {parameter.dtype for parameter in models[0].parameters()} == {expected}


@pytest.mark.parametrize(
    ("precision", "expected"), [("float64", torch.float64), ("float32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_products_of_matrices_have_the_precision_of_the_training(precision: str, expected: torch.dtype) -> None:
    train = cycles_and_stars()
    model, seen = small_model(train), set()
    linear = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    for module in linear:
        module.register_forward_hook(lambda *arguments: seen.add(arguments[-1].dtype))
    fit(model, train, config=TrainConfig(epochs=1, precision=precision, accelerator="cpu"))
    assert len(linear) > 1
    assert seen == {expected}


def test_the_validation_loss_is_that_of_the_model_to_all_digits() -> None:
    train, validation = cycles_and_stars(), cycles_and_stars(14, seed=1)
    model = small_model(train)
    config = TrainConfig(epochs=1, validate_every=1, batch_size=5, precision="float64", accelerator="cpu")
    (record,) = fit(model, train, validation, config=config).records
    expected = evaluate(model, validation, task="classification")
    assert record.validation_loss == pytest.approx(expected.loss, rel=1e-13)
    assert record.validation_score == pytest.approx(expected.score, rel=1e-13)


def test_the_running_loss_is_the_mean_over_the_graphs_of_balanced_batches() -> None:
    """The learning rate is so small that steps change nothing."""
    train = cycles_and_stars(25)[[*range(0, 24, 2), 1, 3, 5]]  # 12 stars and 3 cycles
    config = TrainConfig(epochs=1, batch_size=14, balanced_batches=True, accelerator="cpu", lr=1e-300)
    model = small_model(train, layers=0)
    result = fit(model, train, config=config)
    scores = outputs(model, train).log_softmax(1)
    losses = -scores.gather(1, train.y[:, None])[:, 0]
    drawn = torch.cat(EpochPlan.of(1, config, GraphStore(train, dtype=torch.float64), rank=0, processes=1).batches)
    assert len(drawn) == 28 != len(train)
    assert result.records[0].loss == pytest.approx(float(losses[drawn].mean()), rel=1e-9)


class Penalised(GINModel):
    """Its scores are judged, and its weights drawn towards 1."""

    def forward(self, *arguments: object, **named: object) -> torch.Tensor:
        self.auxiliary_loss = 1000 * sum(((p - 1) ** 2).sum() for p in self.parameters())
        return super().forward(*arguments, **named)


def test_auxiliary_loss_is_descended_and_not_reported() -> None:
    train = cycles_and_stars()
    model = Penalised(train.num_node_features, 2, num_layers=1, width=4)
    result = fit(model, train, config=TrainConfig(epochs=300, accelerator="cpu"))
    assert max(float((p - 1).detach().abs().max()) for p in model.parameters()) < 0.1
    assert result.records[0].loss < 100


def test_gradients_that_are_there_already_do_not_count() -> None:
    data = cycles_and_stars()
    fresh, used = small_model(data).double(), small_model(data).double()
    for parameter in used.parameters():
        parameter.grad = torch.ones_like(parameter)
    for model in (fresh, used):
        fit(model, data, config=SHORT)
    assert same_weights(fresh, used)


def test_another_seed_gives_another_model() -> None:
    train = cycles_and_stars()
    models = [small_model(train) for _ in range(2)]
    for seed, model in enumerate(models):
        fit(model, train, config=TrainConfig(epochs=2, batch_size=7, seed=seed, accelerator="cpu"))
    assert not same_weights(*models)


def test_training_leaves_the_global_generator_alone() -> None:
    train = cycles_and_stars()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fit(small_model(train), train, config=SHORT)
    assert torch.equal(torch.rand(2), expected)


def test_templates_stay_on_their_constraint_sets() -> None:
    train = cycles_and_stars()
    model = small_model(train)
    fit(model, train, config=TrainConfig(epochs=5, lr=0.3, accelerator="cpu"))
    pool = model.pool
    assert torch.allclose(pool.template_weights.sum(-1), torch.ones(2, dtype=torch.float64))
    assert bool(((pool.structure_entries >= 0) & (pool.structure_entries <= 1)).all())
    assert 0 <= pool.alpha.item() <= 1


def test_the_kept_weights_are_those_of_the_kept_epoch() -> None:
    train, validation = cycles_and_stars(), cycles_and_stars(seed=1)
    model, shorter = small_model(train), small_model(train)
    result = fit(model, train, validation, config=TrainConfig(epochs=12, validate_every=3, accelerator="cpu"))
    assert [r.epoch for r in result.records if r.validation_score is not None] == [3, 6, 9, 12]
    fit(shorter, train, config=TrainConfig(epochs=result.kept.epoch, accelerator="cpu"))
    assert same_weights(model, shorter)
    measured = evaluate(model, validation, task="classification").score
    assert measured == pytest.approx(result.kept.validation_score)


def test_the_papers_rule_wants_validation_and_training_score() -> None:
    kept = Kept(epoch=5, score=0.8, validation_score=0.9)
    better = EpochRecord(epoch=10, loss=0, score=0.8, validation_score=0.9)
    assert is_worth_keeping(better, kept)
    assert is_worth_keeping(better, None)
    assert not is_worth_keeping(better._replace(score=0.7), kept)
    assert not is_worth_keeping(better._replace(validation_score=0.8), kept)
    assert not is_worth_keeping(better._replace(validation_score=None), None)


def test_an_evaluated_selection_measures_the_training_graphs_in_evaluation_mode() -> None:
    """With dropout, the running score differs from it."""
    train, validation = cycles_and_stars(), cycles_and_stars(seed=1)
    config = TrainConfig(epochs=12, validate_every=3, selection="evaluated", batch_size=7, accelerator="cpu")
    model, shorter = (small_model(train, dropout=0.6) for _ in range(2))
    result = fit(model, train, validation, config=config)
    assert result.kept.score == pytest.approx(evaluate(model, train, task="classification").score)
    assert result.kept.validation_score == pytest.approx(evaluate(model, validation, task="classification").score)
    assert result.kept.score != result.records[result.kept.epoch - 1].score
    fit(shorter, train, config=replace(config, epochs=result.kept.epoch))
    assert same_weights(model, shorter)  # evaluations do not disturb the training


def test_an_evaluated_selection_compares_with_the_best_validation_of_all_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second epoch has the best validation score, but too low a training score to be kept."""
    validation_scores, training_scores = [0.5, 0.9, 0.7, 0.9], [0.6, 0.5, 0.8, 0.7]
    train = cycles_and_stars()

    def kept_epoch(selection: str) -> int:
        found = iter([value for pair in zip(validation_scores, training_scores, strict=True) for value in pair])
        config = TrainConfig(epochs=4, validate_every=1, selection=selection, accelerator="cpu")
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "_evaluate", lambda *_: Evaluation(0.0, next(found)))
            if selection == "running":
                found = iter(validation_scores)
                running = iter(training_scores)
                patch.setattr(Trainer, "_pass", _with_scores(Trainer._pass, running))
            return fit(small_model(train, layers=0), train, train, config=config).kept.epoch

    assert kept_epoch("running") == 3  # not below the first epoch, the last one kept
    assert kept_epoch("evaluated") == 4  # the third is below the second


def _with_scores(run_epoch: Callable, scores: Iterator[float]) -> Callable:
    """The same training with made-up running scores."""

    def changed(self: Trainer) -> tuple[Evaluation, dict[str, float]]:
        evaluation, templates = run_epoch(self)
        return evaluation._replace(score=next(scores)), templates

    return changed


def test_early_stopping_ends_a_run_that_keeps_nothing() -> None:
    train = cycles_and_stars()
    config = TrainConfig(epochs=200, validate_every=1, patience=3, lr=0.05, accelerator="cpu")
    result = fit(small_model(train), train, cycles_and_stars(6, seed=2), config=config)
    assert len(result.records) == result.kept.epoch + 3 < 200


@pytest.mark.parametrize(("task", "values"), [("regression", 1), ("regression", 2), ("multilabel", 2)])
def test_values_and_labels_are_learned_too(task: str, values: int) -> None:
    data = regression_data(values)
    if task == "multilabel":
        data = data.with_tensors({"y": (data.stacked["y"] > 0).float()})
    model = small_model(data, outputs=values)
    result = fit(model, data, config=TrainConfig(task=task, epochs=60, accelerator="cpu"))
    assert result.records[-1].loss < 0.5 * result.records[0].loss
    assert outputs(model, data).shape == (len(data), values)


def test_a_model_without_templates_trains_as_well() -> None:
    train = cycles_and_stars()
    result = fit(GINModel(3, 2, num_layers=1), train, config=SHORT)
    assert result.records[-1].alpha is None
    assert result.records[-1].live_nodes is None


def test_records_follow_alpha_and_live_nodes() -> None:
    train = cycles_and_stars()
    model = small_model(train)
    last = fit(model, train, config=SHORT).records[-1]
    assert last.alpha == model.pool.alpha.item()
    assert last.live_nodes == float(model.pool.live_nodes.double().mean())


def test_tensorboard_files_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="an optional dependency")
    train = cycles_and_stars()
    fit(small_model(train), train, config=SHORT, folder=tmp_path, tensorboard=True)
    assert list((tmp_path / "tensorboard").glob("events.*"))


def test_a_loss_that_is_not_finite_ends_the_run_with_a_sentence() -> None:
    data = regression_data(1)
    data = data.with_tensors({"y": data.stacked["y"] * 1e300})
    with pytest.raises(FloatingPointError, match="epoch 1 is not finite"):
        fit(small_model(data, outputs=1), data, config=TrainConfig(task="regression", accelerator="cpu"))


def test_graphs_without_targets_or_features_cannot_be_learned() -> None:
    graphs = [graph.clone() for graph in cycles_and_stars()]
    model = small_model(cycles_and_stars())
    for graph in graphs:
        del graph.y
    with pytest.raises(ValueError, match=r"^train: the graphs have no targets y"):
        fit(model, GraphDataset.from_graphs(graphs, name="unknown"), config=SHORT)
    with pytest.raises(ValueError, match=r"^dataset: the graphs have no targets y"):
        evaluate(model, GraphDataset.from_graphs(graphs, name="unknown"), task="classification")
    for graph in graphs:
        del graph.x
        graph.num_nodes = int(graph.edge_index.max()) + 1
    with pytest.raises(ValueError, match=r"^dataset: the graphs have no features x"):
        GraphStore(Stored(graphs), dtype=torch.float32)


class Stored(InMemoryDataset):
    """A dataset of PyTorch Geometric's own."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs)


@pytest.mark.parametrize("option", ["resume", "tensorboard"])
def test_what_is_kept_needs_a_folder(option: str) -> None:
    data = cycles_and_stars()
    with pytest.raises(ValueError, match=r"^folder: required"):
        fit(small_model(data), data, config=SHORT, **{option: True})


def test_hints_about_tensor_cores_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("lightning_fabric.utilities.rank_zero")
    with caplog.at_level(logging.INFO, logger=logger.name):
        logger.info("You are using a CUDA device ('H200') that has Tensor Cores. To properly utilize them, …")
        logger.info("something else")
    assert caplog.messages == ["something else"]


def test_validation_graphs_need_targets() -> None:
    data = cycles_and_stars()
    bare = type(data).from_graphs([Data(x=graph.x, edge_index=graph.edge_index) for graph in data], name="bare")
    with pytest.raises(ValueError, match="validation: the graphs have no targets y"):
        fit(small_model(data), data, bare, config=TrainConfig(epochs=1, validate_every=1, accelerator="cpu"))


def test_every_step_has_the_learning_rate_of_its_schedule() -> None:
    data, found = cycles_and_stars(), []
    config = TrainConfig(epochs=3, batch_size=7, lr=0.02, schedule="one_cycle", accelerator="cpu")
    hook = register_optimizer_step_pre_hook(lambda optimizer, *_: found.append(optimizer.param_groups[0]["lr"]))
    try:
        fit(small_model(data), data, config=config)
    finally:
        hook.remove()
    steps = len(found)
    assert steps == 3 * 4
    assert found == pytest.approx([0.02 * lr_factor("one_cycle", step, steps) for step in range(steps)])


def test_the_log_says_why_a_run_is_not_recorded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="tfgw")
    data = cycles_and_stars(12)
    for precision in ("float64", "bf16"):
        fit(small_model(data), data, config=replace(SHORT, precision=precision, epochs=1))
    told = [record for record in caplog.records if record.name == "tfgw"]
    assert {record.levelno for record in told} == {logging.DEBUG}  # nobody expects it on a CPU
    assert [record.message for record in told] == [
        "tfgw: steps are not recorded as CUDA graphs: the graphs are not on a GPU",
        "tfgw: steps are not recorded as CUDA graphs: the precision is bf16",
    ]


def test_a_bar_is_shown_only_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    data = cycles_and_stars()
    fit(small_model(data), data, config=SHORT)
    assert capsys.readouterr().err == ""
    fit(small_model(data), data, config=SHORT, progress_bar=True)
    assert "6/6" in capsys.readouterr().err


def test_the_folder_of_a_run_is_made_if_there_is_none(tmp_path: Path) -> None:
    data = cycles_and_stars()
    for folder in (tmp_path, tmp_path / "of" / "runs"):
        fit(small_model(data), data, config=SHORT, folder=folder)
        assert [path.name for path in folder.iterdir() if path.is_file()] == ["checkpoint.safetensors"]


def test_a_model_is_trained_in_training_mode_whatever_its_mode_was() -> None:
    """With dropout and the statistics of each batch; the mode is not part of what is learned."""
    data = cycles_and_stars()
    models = [small_model(data, dropout=0.5).train(mode) for mode in (True, False)]
    for model in models:
        fit(model, data, config=SHORT)
    assert same_weights(*models)
