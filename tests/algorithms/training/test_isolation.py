"""For any user module: one example moves a clipped sum by at most 2C, and no client's data reaches another
client's update; otherwise the module is refused with a sentence.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from discreet.algorithms.clipping import Clip
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.isolation_check import fixed_randomness
from discreet.algorithms.training.local_step import client_gradients
from discreet.algorithms.training.per_example import clipped_sum
from discreet.algorithms.training.shipped_modules import runs_only_shipped_code
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.data.tasks.task import Task
from discreet.errors import DiscreetError
from discreet.models.networks.residual_blocks import ResidualBlock
from discreet.models.user_module.example_losses import LossFunction
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.params import Params, norms, repeat_for_clients
from tests.algorithms.training import user_modules
from tests.algorithms.training.user_modules import CLASSES, FEATURES, LENGTH, SEQUENCES, WORDS
from tests.federations import CPU

CLIP, EXAMPLES = 0.5, 64
REFUSED = {
    *("batch mean", "own batch norm", "batch norm", "softmax over examples", "sorted", "running sum", "rolled"),
    *("largest", "attention over examples", "size of the batch", "a subclass of Linear", "a patched forward"),
    *("a forward hook", "a pre-hook", "a new function over the batch", "gru over examples"),
    *("transformer over examples", "a bank in a list", "a bank in an attribute", "a bank in a global"),
    *("a bank in the class", "a hidden state", "a running mean", "an assigned running mean", "a count of calls"),
    *("spectral norm", "an old function", "compiled", "compiled in place", "a branch on data", "item", "numpy"),
    *("nonzero", "checkpoint", "scripted", "a vmap rule of its own", "a bank in a closure", "a bank in a store"),
    *("a bank behind a weak reference",),
}


def task_for(name: str) -> Task:
    generator = torch.Generator().manual_seed(7)
    if name in SEQUENCES:
        inputs = torch.randint(0, WORDS, (2 * EXAMPLES, LENGTH), generator=generator)
    else:
        inputs = torch.randn(2 * EXAMPLES, FEATURES, generator=generator)
    targets = torch.randint(0, CLASSES, (2 * EXAMPLES,), generator=generator)
    return clients_from_arrays(inputs, targets, sizes=[EXAMPLES, EXAMPLES], classes=CLASSES)


def prepare_module(
    name: str, module: nn.Module | None = None, device: torch.device = CPU
) -> tuple[SupervisedModule, Task]:
    """Prepare the module as a run does. Raises if it is refused."""
    torch.manual_seed(3)
    task = task_for(name)
    supervised = SupervisedModule(module or user_modules.ALL[name](), "classification")
    supervised.check(task)
    supervised = supervised.move_to(device)
    supervised.verify_isolation(task, supervised.params)
    return supervised, replace(task, train=task.train.move_to(device, torch.float32))


def batch_of(task: Task, replaced: int | None = None) -> Batch:
    """Return the first client's examples; one of them may be replaced by an outlier from the second client."""
    inputs, targets = task.train.inputs[:EXAMPLES].clone(), task.train.targets[:EXAMPLES].clone()
    if replaced is not None:
        other = task.train.inputs[EXAMPLES + replaced]
        inputs[replaced] = 50 * other if inputs.is_floating_point() else other
        targets[replaced] = (targets[replaced] + 1) % CLASSES
    mask = torch.ones(1, EXAMPLES, dtype=torch.bool, device=inputs.device)
    return Batch(inputs[None], targets[None], mask, mask[:, 0])


def sum_gradients(supervised: SupervisedModule, batch: Batch) -> Params:
    with fixed_randomness(5, batch.inputs.device):
        return clipped_sum(supervised.loss, repeat_for_clients(supervised.params, 1), batch, Clip(CLIP))


def largest_move(supervised: SupervisedModule, task: Task) -> float:
    """Return how far replacing one example moves the sum, in units of the clip norm."""
    before = sum_gradients(supervised, batch_of(task))
    moves = [sum_gradients(supervised, batch_of(task, replaced)) for replaced in (0, 17, EXAMPLES - 1)]
    return max(float(norms({k: move[k] - before[k] for k in before})[0]) for move in moves) / CLIP


def update_after(supervised: SupervisedModule, task: Task, replaced: int | None) -> Params:
    """Return the second client's gradient, after the first client took part with or without a replaced example."""
    model = repeat_for_clients(supervised.params, 1)
    taken = client_gradients(supervised.loss, shared=False)
    mine = Batch(task.train.inputs[None, EXAMPLES:], task.train.targets[None, EXAMPLES:], *batch_of(task)[2:])
    device = mine.inputs.device
    with fixed_randomness(6, device):
        for _ in range(15):
            theirs = batch_of(task, replaced)
            taken(model, theirs.inputs, theirs.targets, theirs.mask)
    with fixed_randomness(7, device):
        return taken(model, mine.inputs, mine.targets, mine.mask)


def assert_isolated(supervised: SupervisedModule, task: Task) -> None:
    assert largest_move(supervised, task) <= 2 * (1 + 1e-5)
    first, second = update_after(supervised, task, None), update_after(supervised, task, 0)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", sorted(set(user_modules.ALL) - REFUSED))
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_users_module_keeps_examples_and_clients_apart(name: str):
    assert_isolated(*prepare_module(name))


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_module_that_mixes_examples_keeps_state_or_cannot_be_vectorised_is_refused_in_a_sentence(name: str):
    with pytest.raises(DiscreetError) as refusal:
        prepare_module(name)
    assert refusal.value.problem.endswith(".")
    assert refusal.value.fix.endswith(".")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["an input kept in an attribute", "inputs kept in a list"])
def test_what_a_module_keeps_in_itself_is_dropped_with_the_copy_of_the_call(name: str):
    supervised, task = prepare_module(name)
    assert_isolated(supervised, task)
    supervised.evaluate(supervised.params, *task.train.examples_at(torch.arange(4)))
    trained = supervised.module_with_params(supervised.params)
    assert not trained.kept


def test_eighty_kinds_of_modules_are_tried():
    assert len(user_modules.ALL) >= 80
    assert set(user_modules.ALL) > REFUSED


@pytest.fixture
def global_hook() -> Iterator[None]:
    """Subtract the batch mean from the output of every Linear, in training."""

    def less_the_mean(layer: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor | None:
        return out - out.mean(dim=0) if isinstance(layer, nn.Linear) and layer.training else None

    handle = register_module_forward_hook(less_the_mean)
    yield
    handle.remove()


@pytest.mark.usefixtures("global_hook")
def test_a_hook_on_all_modules_sees_one_example_at_a_time():
    assert_isolated(*prepare_module("perceptron"))


def test_a_hook_that_is_registered_after_training_began_sees_one_example_at_a_time(request: pytest.FixtureRequest):
    supervised, task = prepare_module("perceptron")
    sum_gradients(supervised, batch_of(task))
    request.getfixturevalue("global_hook")
    assert largest_move(supervised, task) <= 2 * (1 + 1e-5)


def test_a_patched_class_of_torch_gets_one_example_at_a_time(monkeypatch: pytest.MonkeyPatch):
    plain = nn.Tanh.forward
    monkeypatch.setattr(nn.Tanh, "forward", lambda self, x: plain(self, x - x.mean(dim=0) if self.training else x))
    assert_isolated(*prepare_module("", nn.Sequential(nn.Linear(FEATURES, 6), nn.Tanh(), nn.Linear(6, CLASSES))))


def test_a_patched_function_of_torch_gets_one_example_at_a_time(monkeypatch: pytest.MonkeyPatch):
    plain = nn.functional.relu

    def less_the_mean(x: Tensor, inplace: bool = False) -> Tensor:
        return plain(x - x.mean(dim=0) if torch.is_grad_enabled() else x)

    monkeypatch.setattr(nn.functional, "relu", less_the_mean)
    assert_isolated(*prepare_module("perceptron"))


def test_a_class_that_only_claims_to_be_ours_gets_one_example_at_a_time():
    class Mean(user_modules.MixingLinear):
        __module__ = "discreet.models.networks.resnet18"

    with pytest.raises(DiscreetError, match="mixes examples"):
        prepare_module("", nn.Sequential(Mean(FEATURES, 6), nn.Linear(6, CLASSES)))


def test_a_network_of_ours_with_a_function_in_place_of_a_layer_gets_one_example_at_a_time():
    block = ResidualBlock(32, 32, 1)
    del block.shortcut
    block.shortcut = lambda x: x - x.mean(dim=0) if torch.is_grad_enabled() else x  # type: ignore[assignment]
    assert not runs_only_shipped_code(block)


def test_a_patched_function_of_torch_itself_is_noticed(monkeypatch: pytest.MonkeyPatch):
    plain = torch.tanh
    monkeypatch.setattr(torch, "tanh", lambda x: plain(x - x.mean(dim=0)))
    assert not runs_only_shipped_code(nn.Sequential(nn.Linear(2, 2), nn.Tanh()))


def bank_in_a_loss() -> LossFunction:
    kept: list[Tensor] = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        kept.append(outputs.detach())
        return nn.functional.cross_entropy(outputs + (kept[-20].mean() if len(kept) > 20 else 0), targets)

    return loss


def test_a_loss_that_keeps_what_it_saw_is_refused():
    task = task_for("linear")
    supervised = SupervisedModule(nn.Linear(FEATURES, CLASSES), "classification", loss=bank_in_a_loss())
    with pytest.raises(DiscreetError, match="keeps state"):
        supervised.check(task)


def one_hot(outputs: Tensor, targets: Tensor) -> Tensor:
    return -(nn.functional.one_hot(targets) * outputs.log_softmax(dim=1)).sum(dim=1)


class SqueezedOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(FEATURES, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x).squeeze()
        return out


@pytest.mark.parametrize(
    ("module", "loss", "said"),
    [
        (nn.Linear(FEATURES, CLASSES), one_hot, "can't be differentiated example by example"),
        (SqueezedOutput(), nn.BCEWithLogitsLoss(), "must keep the first dimension"),
    ],
)
def test_what_torch_would_say_of_a_model_or_a_loss_is_said_in_a_sentence(module: nn.Module, loss: Any, said: str):
    with pytest.raises(DiscreetError, match=said):
        SupervisedModule(module, "classification", loss=loss).check(task_for("linear"))
