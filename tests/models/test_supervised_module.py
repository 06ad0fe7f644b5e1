"""A user's module trains unchanged: its gradients equal those of a plain loop, or a sentence says why not."""

import copy
import math
import pickle
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn import functional

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import Clip
from discreet.algorithms.training import LocalSgd
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.per_example import clipped_sum
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.models.user_module.reachable_tensors import reachable_tensors
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params, norms, repeat_for_clients
from discreet.randomness.streams import RunKey

CLIENTS, EXAMPLES, CLASSES, CLIP = 3, 4, 3, 0.5


class Words(nn.Module):
    """From integers to a class: an embedding and some layers over the sequence."""

    def __init__(self, middle: nn.Module, width: int) -> None:
        super().__init__()
        self.embed, self.middle, self.last = nn.Embedding(10, 8), middle, nn.Linear(width, CLASSES)

    def forward(self, words: Tensor) -> Tensor:
        out = self.middle(self.embed(words))
        return self.last((out[0] if isinstance(out, tuple) else out).mean(dim=1))


class Attention(nn.Module):
    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.attention, self.causal = nn.MultiheadAttention(8, 2, batch_first=True), causal

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype) if self.causal else None
        out: Tensor = self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return out


class CounterModule(nn.Module):
    """Has a buffer of integers that training must not change, and a frozen layer."""

    order: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.arange(63, -1, -1))
        self.frozen = nn.Linear(64, 16).requires_grad_(False)
        self.last = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.frozen(x.flatten(start_dim=1)[:, self.order]).tanh())
        return out


def tie_layers() -> nn.Module:
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Linear(64, CLASSES))
    module[3].weight = module[1].weight
    return module


def frozen_batch_norm() -> nn.Module:
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, CLASSES))
    module[1].eval().requires_grad_(False)
    return module


def image(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), *layers, nn.Flatten(), nn.Linear(width, CLASSES))


def transformer(dropout: float) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
    return Words(nn.TransformerEncoder(layer, 2), 8)


class Temperature(nn.Module):
    """Its parameters include one without a shape."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, CLASSES)
        self.temperature = nn.Parameter(torch.ones(()))

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.layer(inputs.flatten(1)) * self.temperature
        return outputs


WORDS = {
    "gru": lambda: Words(nn.GRU(8, 5, batch_first=True), 5),
    "lstm": lambda: Words(nn.LSTM(8, 5, batch_first=True), 5),
    "rnn": lambda: Words(nn.RNN(8, 5, batch_first=True), 5),
    "deep lstm": lambda: Words(nn.LSTM(8, 5, num_layers=2, bidirectional=True, batch_first=True, proj_size=3), 6),
    "attention": lambda: Words(Attention(causal=False), 8),
    "causal attention": lambda: Words(Attention(causal=True), 8),
    "transformer": lambda: transformer(0.0),
    "embedding": lambda: Words(nn.Identity(), 8),
}
IMAGES = {
    "group norm": lambda: image(nn.GroupNorm(2, 4), nn.ReLU(inplace=True), nn.MaxPool2d(2), width=36),
    "instance norm": lambda: image(nn.InstanceNorm2d(4, affine=True), width=144),
    "layer norm": lambda: nn.Sequential(nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, CLASSES)),
    "frozen and buffers": CounterModule,
    "frozen batch norm": frozen_batch_norm,
    "tied weights": tie_layers,
    "a single number": Temperature,
    "dropout of nothing": lambda: nn.Sequential(nn.Flatten(), nn.Dropout(0.0), nn.Linear(64, CLASSES)),
}
MODULES = {**WORDS, **IMAGES}


def data(name: str) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    if name in WORDS:
        inputs = torch.randint(0, 10, (CLIENTS, EXAMPLES, 6), generator=generator)
    else:
        inputs = torch.randn(CLIENTS, EXAMPLES, 1, 8, 8, generator=generator, dtype=torch.float64)
    return inputs, torch.randint(0, CLASSES, (CLIENTS, EXAMPLES), generator=generator)


def doubles(params: Params) -> Params:
    return {name: value.double() for name, value in params.items()}


def build_module(name: str) -> tuple[nn.Module, SupervisedModule]:
    torch.manual_seed(3)
    module = MODULES[name]()
    return copy.deepcopy(module).double(), SupervisedModule(module, "classification")


def plain_gradient(module: nn.Module, inputs: Tensor, targets: Tensor) -> Params:
    """Return the gradient of the mean loss by ordinary PyTorch."""
    own = {name: value for name, value in module.named_parameters() if value.requires_grad}
    found = torch.autograd.grad(functional.cross_entropy(module(inputs), targets), list(own.values()))
    return dict(zip(own, found, strict=True))


@pytest.mark.parametrize("name", MODULES)
def test_clipped_sums_equal_a_plain_loop_over_examples(name: str):
    module, supervised = build_module(name)
    inputs, targets = data(name)
    params = {key: value.expand(CLIENTS, *value.shape) for key, value in doubles(supervised.params).items()}
    mask = torch.ones(CLIENTS, EXAMPLES, dtype=torch.bool)
    found = clipped_sum(supervised.loss, params, Batch(inputs, targets, mask, mask[:, 0]), Clip(CLIP))
    for client in range(CLIENTS):
        total = {key: torch.zeros_like(value[0]) for key, value in params.items()}
        for example in range(EXAMPLES):
            one = plain_gradient(module, inputs[client, example][None], targets[client, example][None])
            length = float(norms({key: value[None] for key, value in one.items()}))
            for key, value in one.items():
                total[key] += value * min(1.0, CLIP / length)
        for key, value in total.items():
            torch.testing.assert_close(found[key][client], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", MODULES)
def test_local_sgd_equals_a_plain_loop_over_clients(name: str):
    module, supervised = build_module(name)
    inputs, targets = data(name)
    task = clients_from_arrays(
        inputs.flatten(end_dim=1), targets.flatten(), sizes=[EXAMPLES] * CLIENTS, classes=CLASSES
    )
    federation = task.train.move_to(torch.device("cpu"), torch.float64)
    start = doubles(supervised.params)
    rows = RunKey.from_seed(1).rows(0, b"", range(CLIENTS), torch.device("cpu"))
    trainer = LocalSgd(learning_rate=0.1, batch_size=EXAMPLES, steps=2)
    found = trainer.train(supervised.loss, Broadcast(0, start, {}), federation.block(range(CLIENTS)), rows)
    for client in range(CLIENTS):
        own = copy.deepcopy(module)
        mine = federation.block([client])
        kept = slice(mine.starts[0], mine.starts[0] + EXAMPLES)
        trained = {key: value for key, value in own.named_parameters() if value.requires_grad}
        for _ in range(2):
            gradient = plain_gradient(own, federation.inputs[kept], federation.targets[kept])
            with torch.no_grad():
                for key, value in trained.items():
                    value.sub_(0.1 * gradient[key])
        for key, value in trained.items():
            torch.testing.assert_close(found[key][client], value.detach() - start[key], rtol=1e-6, atol=1e-7)


def test_dropout_differs_from_example_to_example():
    torch.manual_seed(0)
    supervised = SupervisedModule(
        nn.Sequential(nn.Linear(64, 8), nn.Dropout(0.5), nn.Linear(8, CLASSES)), "classification"
    )
    params = {key: value.expand(2, *value.shape) for key, value in supervised.params.items()}
    alike = Batch(
        torch.ones(2, 5, 64),
        torch.zeros(2, 5, dtype=torch.int64),
        torch.eye(5, dtype=torch.bool)[:2],
        torch.ones(2, dtype=torch.bool),
    )
    first, second = clipped_sum(supervised.loss, params, alike, Clip(1e9))["0.weight"]
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", ["transformer", "lstm between layers"])
def test_dropout_inside_attention_and_recurrent_layers_trains(name: str):
    torch.manual_seed(0)
    recurrent = nn.LSTM(8, 5, num_layers=2, dropout=0.5, batch_first=True)
    supervised = SupervisedModule(transformer(0.3) if name == "transformer" else Words(recurrent, 5), "classification")
    inputs, targets = data("gru")
    params = {key: value.expand(CLIENTS, *value.shape) for key, value in supervised.params.items()}
    mask = torch.ones(CLIENTS, EXAMPLES, dtype=torch.bool)
    found = clipped_sum(supervised.loss, params, Batch(inputs, targets, mask, mask[:, 0]), Clip(CLIP))
    assert all(bool(torch.isfinite(value).all()) for value in found.values())


@pytest.mark.parametrize("name", ["gru", "lstm", "rnn", "deep lstm"])
@pytest.mark.filterwarnings("ignore:LSTM with projections")  # torch's own, outside of training too
def test_a_recurrent_layer_that_asks_where_its_weights_are_as_on_a_gpu_trains(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    """On a GPU flatten_parameters() asks for the addresses of all weights, which tensors under vmap don't have."""

    def ask(layer: nn.RNNBase) -> None:
        assert all(weight.data_ptr() for weight in layer._flat_weights)

    inputs, targets = data(name)
    mask = torch.ones(CLIENTS, EXAMPLES, dtype=torch.bool)
    supervised = SupervisedModule(MODULES[name](), "classification")
    params = {key: value.expand(CLIENTS, *value.shape) for key, value in supervised.params.items()}
    batch = Batch(inputs, targets, mask, mask[:, 0])
    expected = clipped_sum(supervised.loss, params, batch, Clip(CLIP))
    monkeypatch.setattr(nn.RNNBase, "flatten_parameters", ask)
    found = clipped_sum(supervised.loss, params, batch, Clip(CLIP))
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_the_users_module_is_never_changed_and_what_is_frozen_stays():
    module = CounterModule()
    before = copy.deepcopy(module.state_dict())
    supervised = SupervisedModule(module, "classification")
    assert set(supervised.params) == {"last.weight", "last.bias"}
    changed = {name: value + 1 for name, value in supervised.params.items()}
    supervised.evaluate(changed, torch.zeros(2, 64), torch.tensor([0, 1]))
    copied = supervised.module_with_params(changed)
    assert type(copied) is CounterModule
    assert not copied.training
    assert torch.equal(copied.state_dict()["last.bias"], before["last.bias"] + 1)
    assert copied.state_dict()["order"].dtype == torch.int64
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(copied.state_dict()["frozen.weight"], before["frozen.weight"])


def test_a_plain_module_can_be_saved_and_called():
    supervised = build_module("lstm")[1]
    inputs, targets = data("lstm")
    module = supervised.module_with_params(supervised.params)
    plainly = functional.cross_entropy(module(inputs[0]), targets[0], reduction="none")
    torch.testing.assert_close(supervised.loss(supervised.params, inputs[0], targets[0]), plainly)


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (nn.BatchNorm1d(6), r"Use GroupNorm\(1, 6\) instead of BatchNorm1d at '1'"),
        (nn.BatchNorm2d(48), r"Use GroupNorm\(16, 48\) instead of BatchNorm2d at '1'"),
        (nn.BatchNorm2d(4, track_running_stats=False).eval(), "mixes the examples"),
        (nn.SyncBatchNorm(4), "mixes the examples"),
        (nn.InstanceNorm2d(4, track_running_stats=True), "Set track_running_stats=False"),
        (nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), "spectral normalisation"),
        (nn.LazyLinear(4), "LazyLinear at '1' has no shape yet"),
        (nn.Embedding(4, 4, max_norm=1.0), "Leave out max_norm"),
        (nn.RReLU(), "Use LeakyReLU instead of RReLU at '1'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_layers_that_mix_examples_or_keep_state_are_refused_with_the_fix_named(layer: nn.Module, sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        SupervisedModule(nn.Sequential(nn.Linear(4, 4), layer), "classification")


def test_what_has_nothing_to_train_is_refused():
    with pytest.raises(InvalidInput, match="no trainable parameter"):
        SupervisedModule(nn.Linear(2, 2).requires_grad_(False), "classification")
    with pytest.raises(InvalidInput, match=r"must be a torch\.nn\.Module"):
        SupervisedModule(len, "classification")  # type: ignore[arg-type]


class PackedWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.recurrent, self.last = nn.Embedding(10, 4), nn.GRU(4, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, words: Tensor) -> Tensor:
        lengths = torch.full((len(words),), words.shape[1])
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(words), lengths, batch_first=True)
        out: Tensor = self.last(self.recurrent(packed)[1][0])
        return out


class BufferMemory(nn.Module):
    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.last = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        self.seen += x.mean(dim=0)
        out: Tensor = self.last(x)
        return out


class Several(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), x


class WeightInAList(nn.Module):
    """Computes with a weight that it also keeps in a list, where training can't replace it."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 3)
        self.kept = [self.last.weight]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(x) + nn.functional.linear(x.tanh(), self.kept[0])
        return out


def penalise(module: nn.Linear) -> Any:
    """Return a loss with a penalty on the weights of a module, which is not the copy that is trained."""
    return lambda outputs, targets: (
        nn.functional.cross_entropy(outputs, targets, reduction="none") + module.weight.square().sum()
    )


NUMBERS = clients_from_arrays(torch.arange(24.0).reshape(6, 4) / 24, [0, 1, 2, 0, 1, 2], sizes=[2, 4], classes=3)
SENTENCES = clients_from_arrays(torch.ones(6, 5, dtype=torch.int64), [0, 1, 2, 0, 1, 2], sizes=[2, 4], classes=3)
PRICES = clients_from_arrays(torch.arange(24.0).reshape(6, 4) / 24, torch.arange(6.0), sizes=[6])


@pytest.mark.parametrize(
    ("module", "task", "loss", "sentence"),
    [
        (nn.Linear(5, 3), NUMBERS, None, r"can't take inputs of the shape \(4,\)"),
        (nn.Linear(4, 2), NUMBERS, None, "Let its last layer have 3 outputs"),
        (nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), NUMBERS, None, "Let its last layer have 3 outputs"),
        (Several(4, 3), NUMBERS, None, "must return one tensor, and returned tuple"),
        (nn.Linear(4, 2), PRICES, None, "as many numbers as an example has targets"),
        (PackedWords(), SENTENCES, None, "Packed sequences differ in shape"),
        (BufferMemory(), NUMBERS, None, "forward\\(\\) changes its tensor 'seen'"),
        (nn.Linear(4, 3), NUMBERS, lambda outputs, targets: 1.0, "must return a tensor, and returned float"),
        (nn.Linear(4, 3), NUMBERS, lambda outputs, targets: outputs.sum(dim=0), "one number per example"),
        (nn.Linear(4, 3), NUMBERS, lambda outputs, targets: (outputs - outputs.mean(0)).norm(), "mixes examples"),
        (nn.Linear(4, 3), NUMBERS, nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 9.0])), "mixes examples"),
        (WeightInAList(), NUMBERS, None, r"a parameter of the shape \(3, 4\) that it keeps beside its layers"),
        (nn.Linear(4, 3), NUMBERS, penalise(nn.Linear(4, 3)), "where training would not change it"),
    ],
)
def test_what_cannot_be_trained_is_said_before_training(module: nn.Module, task: Task, loss: Any, sentence: str):
    torch.manual_seed(0)
    with pytest.raises(InvalidInput, match=sentence):
        SupervisedModule(module, task.kind, loss).check(task)


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # torch's own, outside of training too
@pytest.mark.parametrize("name", MODULES)
def test_what_can_be_trained_passes_the_check(name: str):
    inputs, targets = data(name)
    task = clients_from_arrays(inputs.flatten(0, 1), targets.flatten(), sizes=[CLIENTS * EXAMPLES], classes=CLASSES)
    build_module(name)[1].check(task)


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.CrossEntropyLoss(reduction="none"),
        lambda outputs, targets: functional.cross_entropy(outputs, targets),
        lambda outputs, targets: -outputs.log_softmax(dim=1).gather(1, targets[:, None]),
    ],
    ids=["mean", "sum", "none", "function", "column"],
)
def test_a_loss_may_give_one_number_an_example_or_one_for_all(loss: Any):
    module = nn.Linear(4, 3)
    supervised = SupervisedModule(module, "classification", loss)
    supervised.check(NUMBERS)
    inputs, targets = NUMBERS.train.inputs, NUMBERS.train.targets
    expected = SupervisedModule(module, "classification").loss(supervised.params, inputs, targets)
    torch.testing.assert_close(supervised.loss(supervised.params, inputs, targets), expected)
    for one in range(6):
        alone = supervised.loss(supervised.params, inputs[one][None], targets[one][None])
        torch.testing.assert_close(alone, expected[one][None])


def test_a_column_of_predictions_meets_a_row_of_targets_without_broadcasting():
    inputs, targets = PRICES.train.inputs, PRICES.train.targets
    for loss in (None, nn.MSELoss()):
        supervised = SupervisedModule(nn.Linear(4, 1), "regression", loss)
        supervised.check(PRICES)
        predicted = supervised.module_with_params(supervised.params)(inputs)[:, 0]
        losses = supervised.loss(supervised.params, inputs, targets)
        torch.testing.assert_close(losses, (predicted - targets).square())
        found = supervised.evaluate(supervised.params, inputs, targets)
        assert found["mse"] == pytest.approx(float(losses.mean()), rel=1e-5)
        assert set(found) == {"mse", "loss"}


def test_a_layer_with_two_names_is_as_it_was_after_its_gradients_were_taken():
    twice = nn.Linear(4, 4)
    model = SupervisedModule(nn.Sequential(twice, nn.Tanh(), twice, nn.Linear(4, 3)), "classification")
    inputs, targets = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])
    before = model.evaluate(model.params, inputs, targets)
    vmap(grad(lambda params: model.loss(params, inputs, targets).sum()))(repeat_for_clients(model.params, 2))
    assert model.evaluate(model.params, inputs, targets) == before


def test_evaluation_counts_right_answers_without_dropout_in_chunks():
    module = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Dropout(0.9))
    with torch.no_grad():
        module.get_parameter("0.weight").copy_(torch.eye(2))
    supervised = SupervisedModule(module, "classification")
    inputs = torch.eye(2).repeat(1500, 1)  # three chunks
    targets = torch.tensor([0, 1]).repeat(1500)
    targets[:300] = 1 - targets[:300]
    found = supervised.evaluate(supervised.params, inputs, targets)
    assert found["accuracy"] == 0.9
    right = float(torch.tensor([1.0, 0.0]).log_softmax(0)[0])
    assert found["loss"] == pytest.approx(-0.9 * right - 0.1 * (right - 1), rel=1e-5)
    assert supervised.evaluate(supervised.params, inputs[:0], targets[:0]) == {}


def test_a_metric_of_the_users_own_joins_under_its_name():
    def top(outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs.max()

    supervised = SupervisedModule(nn.Linear(4, 3), "classification", metric=top)
    given = supervised.params, NUMBERS.train.inputs, NUMBERS.train.targets
    assert set(supervised.evaluate(*given)) >= {"accuracy", "loss", "top"}
    several = SupervisedModule(nn.Linear(4, 3), "classification", metric=lambda outputs, targets: {"a": 1, "b": 2.5})
    assert several.evaluate(*given).items() >= {"a": 1.0, "b": 2.5}.items()


def test_one_output_for_two_classes_is_judged_by_its_sign():
    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(1.0)

    def binary(outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets.to(outputs.dtype))

    supervised = SupervisedModule(module, "classification", binary)
    inputs, targets = torch.tensor([[-1.0], [2.0], [3.0], [4.0]]), torch.tensor([0, 1, 1, 0])
    supervised.check(clients_from_arrays(inputs, targets, sizes=[4], classes=2))
    assert supervised.evaluate(supervised.params, inputs, targets)["accuracy"] == 0.75


def test_a_change_of_precision_takes_what_is_held_along():
    supervised = SupervisedModule(CounterModule(), "classification").move_to(torch.device("cpu"), torch.float64)
    inputs = torch.zeros(2, 64, dtype=torch.float64)
    assert supervised.loss(supervised.params, inputs, torch.tensor([0, 1])).dtype == torch.float64
    assert {value.dtype for value in supervised.params.values()} == {torch.float64}
    assert supervised.module_with_params(supervised.params).order.dtype == torch.int64


def test_a_weighted_mean_is_found_out_though_labels_are_sorted():
    torch.manual_seed(0)
    task = clients_from_arrays(torch.randn(300, 4), torch.arange(300) // 100, sizes=[300])
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 1.0, 9.0]))
    with pytest.raises(InvalidInput, match='reduction="none"'):
        SupervisedModule(nn.Linear(4, 3), "classification", weighted).check(task)


class BatchSoftmax(nn.Module):
    """Softmax over the examples of a batch instead of over the classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.layer(inputs).softmax(dim=0)
        return outputs


def test_a_model_that_mixes_examples_is_refused():
    with pytest.raises(InvalidInput, match="mixes examples"):
        SupervisedModule(BatchSoftmax(), "classification").check(NUMBERS)


def contrast(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return one loss for each example, each of which depends on all others."""
    return -(outputs @ outputs.T).log_softmax(dim=1).diagonal()


def test_a_loss_that_looks_at_other_examples_is_refused():
    with pytest.raises(InvalidInput, match="mixes examples"):
        SupervisedModule(nn.Linear(4, 3), "classification", loss=contrast).check(NUMBERS)


def fail(*given: Tensor) -> float:
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"metric": fail}, "metric 'fail' failed: KeyError"),
        ({"metric": lambda outputs, targets: outputs}, "must return a number"),
        ({"metric": lambda outputs, targets: {"a": "x"}}, "must return a number"),
        ({"loss": fail}, "loss 'fail' failed: KeyError"),
    ],
)
def test_own_functions_that_fail_are_found_out_before_training(own: dict[str, Any], said: str):
    with pytest.raises(InvalidInput, match=said):
        SupervisedModule(nn.Linear(4, 3), "classification", **own).check(NUMBERS)


def test_a_metric_that_fails_later_is_not_a_number_and_ends_no_run():
    calls: list[int] = []

    def fickle(outputs: Tensor, targets: Tensor) -> float:
        calls.append(1)
        return 1.0 if len(calls) == 1 else 1 / 0

    supervised = SupervisedModule(nn.Linear(4, 3), "classification", metric=fickle)
    supervised.check(NUMBERS)
    found = supervised.evaluate(supervised.params, NUMBERS.train.inputs, NUMBERS.train.targets)
    assert math.isnan(found["fickle"])
    assert 0 <= found["accuracy"] <= 1


def test_a_model_that_was_sent_to_another_process_still_computes_its_loss():
    supervised = pickle.loads(pickle.dumps(SupervisedModule(CounterModule(), "classification")))
    losses = supervised.loss(supervised.params, torch.zeros(2, 64), torch.tensor([0, 1]))
    assert losses.shape == (2,)


class LabelledNet(nn.Linear):
    """A network with an attribute of its class, whose type is written down."""

    labels: ClassVar[dict[str, int]] = {"no": 0, "yes": 1, "maybe": 2}

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input)


def test_a_network_whose_class_attributes_have_types_can_be_trained():
    """What is behind `ClassVar[…]` reaches objects of libraries that can't be read."""
    SupervisedModule(LabelledNet(4, 3), "classification").check(NUMBERS)


def test_an_object_that_can_not_be_read_holds_nothing():
    class Vault:
        __slots__ = ("held",)

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    kept = torch.zeros(1)
    assert list(reachable_tensors([Vault(), kept]).values()) == [kept]
