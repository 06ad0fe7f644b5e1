"""Local passes for linear heads: leaving one example out moves the update by at most the stated sensitivity."""

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.linear_models import convex_local, proximal_local
from discreet.algorithms.training import ConvexLocal, Loss
from discreet.algorithms.training.batches import Batch, Batches
from discreet.algorithms.training.schedules import Exponential, Harmonic
from discreet.errors import InvalidInput
from discreet.models.user_module.supervised_module import SupervisedModule
from discreet.part import from_plain, to_plain
from discreet.privacy.events import GaussianNoise, PoissonSampled, steps
from discreet.randomness.streams import RunKey
from tests.federations import CPU, DOUBLE, cross_entropy, federation, linear

TRAINER = ConvexLocal(learning_rate=4.0, clip_norm=0.5, feature_bound=2.0, batch_size=4)


@dataclass(frozen=True)
class BatchesWithHoles(Batches):
    """One client with the same places in every row; row i lacks the example holes[i], whose place is empty."""

    holes: tuple[int, ...] = (-1,)

    def gather(self, index: Tensor, mask: Tensor, active: Tensor | None) -> Batch:
        here = index.expand(len(self.holes), -1) != torch.tensor(self.holes)[:, None]
        return super().gather(index, mask & here, active)


def updates(
    trainer: ConvexLocal,
    inputs: Tensor,
    targets: Tensor,
    model: dict[str, Tensor],
    holes: tuple[int, ...] = (-1,),
    loss: Loss = cross_entropy,
) -> Tensor:
    """Return the client's update as one vector for each hole."""
    same = len(holes)
    batches = BatchesWithHoles(inputs, targets, (0,) * same, (len(inputs),) * same, holes=holes)
    fitted = trainer.for_population(Population(examples=(len(inputs),)))
    delta = fitted.train(loss, Broadcast(0, model, {}), batches, RunKey.from_seed(0).rows(0, b"", [0] * same, CPU))
    return torch.cat([value.flatten(1) for value in delta.values()], dim=1)


def update(
    trainer: ConvexLocal, inputs: Tensor, targets: Tensor, model: dict[str, Tensor], loss: Loss = cross_entropy
) -> Tensor:
    return updates(trainer, inputs, targets, model, loss=loss)[0]


def reach(trainer: ConvexLocal, examples: int) -> float:
    found = trainer.for_population(Population(examples=(examples,))).exposure(0).example
    assert found is not None
    return found.sensitivity


def farthest(trainer: ConvexLocal, seed: int, spread: float, labels: str) -> float:
    """Return how far the update moves at most if one of 11 examples is left out, divided by the sensitivity."""
    generator = torch.Generator().manual_seed(seed)
    inputs = spread * torch.randn(11, 3, generator=generator, dtype=DOUBLE)
    model = {
        "weight": 3 * torch.randn(4, 3, generator=generator, dtype=DOUBLE),
        "bias": torch.randn(4, generator=generator, dtype=DOUBLE),
    }
    targets = torch.randint(4, (11,), generator=generator)
    if labels != "random":  # examples with the largest or the smallest possible gradients
        logits = torch.nn.functional.linear(inputs, model["weight"], model["bias"])
        targets = logits.argmin(dim=1) if labels == "wrong" else logits.argmax(dim=1)
    whole, *others = updates(trainer, inputs, targets, model, (-1, *range(11)))
    return max(float((whole - each).norm()) for each in others) / reach(trainer, 11)


@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.1, 1.0, 100.0]),
    labels=st.sampled_from(["random", "wrong", "right"]),
    changes=st.sampled_from(
        [
            {},
            {"clip_norm": 2.0},
            {"batch_size": 1},
            {"batch_size": 50},
            {"sampling_rate": 0.5},
            {"passes": 3},
            {"passes": 4, "strength": 0.3, "learning_rate": 1.8},
            {"passes": 5, "strength": 0.05, "learning_rate": 3.3, "batch_size": 1},
        ]
    ),
)
def test_no_example_moves_the_update_by_more_than_its_reach(
    seed: int, spread: float, labels: str, changes: dict[str, Any]
):
    assert farthest(replace(TRAINER, **changes), seed, spread, labels) <= 1


@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("batch_size", [5, 100])
def test_however_large_the_weights_are_rounding_moves_nothing_further(size: float, batch_size: int):
    """In single precision, as in runs: on weights of 10⁴ one example once moved it by 1.3 times its sensitivity."""
    generator = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(200, 20, generator=generator), torch.randint(5, (200,), generator=generator)
    model = {"weight": size * torch.randn(5, 20, generator=generator), "bias": torch.zeros(5)}
    trainer = replace(TRAINER, batch_size=batch_size)
    whole, *others = updates(trainer, inputs, targets, model, (-1, *range(60))).double()
    assert whole.norm() > 0
    assert max(float((whole - each).norm()) for each in others) <= reach(trainer, 200)


def test_weights_so_large_that_doubles_would_round_too_much_are_refused():
    model = {"weight": torch.full((5, 20), 1e6), "bias": torch.zeros(5)}
    with pytest.raises(InvalidInput, match=r"weights reach logits of 2e\+07, and above 1e\+06 rounding would move"):
        updates(TRAINER, torch.randn(20, 20), torch.zeros(20, dtype=torch.int64), model)


def test_a_steep_enough_example_reaches_as_far_as_is_said():
    """An example that the model predicts wrongly with certainty, alone in its client: nearly γC/(FB)."""
    inputs, targets = torch.tensor([[100.0]], dtype=DOUBLE), torch.tensor([1])
    model = {"weight": torch.tensor([[9.0], [-9.0]], dtype=DOUBLE), "bias": torch.zeros(2, dtype=DOUBLE)}
    assert reach(TRAINER, 1) == 4.0 * 0.5 / (2.0 * 4)
    assert update(TRAINER, inputs, targets, model).norm() == pytest.approx(reach(TRAINER, 1), rel=1e-4)


def test_the_reach_does_not_grow_with_the_number_of_steps_but_with_passes_that_nothing_pulls_back():
    assert reach(TRAINER, 8) == reach(TRAINER, 8000) == 0.25
    assert reach(replace(TRAINER, passes=3), 8) == 3 * 0.25
    pulled = replace(TRAINER, passes=3, strength=0.5, learning_rate=1.0)
    once, kept = 1.0 * 0.5 / (2.0 * 4), 0.5**2  # ρ = 1 − γλ, and two steps in a pass over 8 examples
    assert reach(pulled, 8) == pytest.approx(once * (1 + kept + kept**2))
    several = pulled.for_population(Population(examples=(4000, 8, 400)))
    assert several.exposure(0).example.sensitivity == pytest.approx(
        once * (1 + kept + kept**2)
    )  # the client with the fewest steps decides
    assert replace(TRAINER, schedule=Exponential(decay=0.5), fewest_steps=2).exposure(2).example.sensitivity == 0.25 / 4


def test_steps_say_how_large_the_largest_clients_batches_are():
    fitted = convex_local(learning_rate=1, clip_norm=1, feature_bound=1, local_steps=6).for_population(
        Population(examples=(100, 20))
    )
    assert isinstance(fitted.trainer, ConvexLocal)
    assert fitted.trainer.batch_size == 17


def test_one_step_is_what_the_formula_says():
    held, model = federation(5), linear()
    trainer = replace(TRAINER, batch_size=5, clip_norm=0.4, feature_bound=1.5, learning_rate=3.0)
    expected = torch.zeros(3, 6, dtype=DOUBLE)
    for x, y in zip(held.inputs, held.targets, strict=True):
        a = torch.cat([x, torch.ones(1, dtype=DOUBLE)])
        a = a * min(1.0, 1.5 / float(a.norm()))
        p = (torch.cat([model["weight"], model["bias"][:, None]], dim=1) @ a).softmax(dim=0)
        wrong = 1 - float(p[y])
        gradient = p - torch.nn.functional.one_hot(y, 3)
        expected -= 3.0 / (1.5**2 * 5) * min(1.0, 0.4 / 2**0.5 / wrong) * gradient[:, None] * a
    found = update(trainer, held.inputs, held.targets, model)
    assert torch.allclose(found, torch.cat([expected[:, :5].flatten(), expected[:, 5]]), rtol=1e-4)


def test_a_pass_takes_every_example_once_and_the_next_one_in_the_same_batches():
    batches = Batches(torch.arange(10.0, dtype=DOUBLE)[:, None], torch.zeros(10, dtype=torch.int64), (0,), (10,))
    rows = RunKey.from_seed(4).rows(0, b"", [0], CPU)
    first, again = (
        [each.inputs[each.mask].flatten().tolist() for each in TRAINER._batches(batches, rows)] for _ in range(2)
    )
    assert [len(each) for each in first] == [4, 4, 2]
    assert sorted(each for batch in first for each in batch) == list(range(10))
    assert first == again


def test_each_example_joins_a_round_by_its_own_coin():
    """One-hot inputs show who took part. False alarms below 1e-6: 300 of 1,000 within five deviations of 14.5."""
    inputs, targets = torch.eye(1000, dtype=DOUBLE), torch.zeros(1000, dtype=torch.int64)
    model = {"weight": torch.zeros(2, 1000, dtype=DOUBLE)}

    def loss(params: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(inputs @ params["weight"].T, targets, reduction="none")

    trainer = replace(TRAINER, sampling_rate=0.3, batch_size=64, passes=2)
    moved = update(trainer, inputs, targets, model, loss=loss).reshape(2, 1000)[0] != 0
    assert abs(int(moved.sum()) - 300) < 5 * 14.5
    once = update(replace(trainer, passes=1), inputs, targets, model, loss=loss).reshape(2, 1000)[0] != 0
    assert torch.equal(moved, once)  # the same coins in every pass


def test_a_round_is_one_noise_whatever_its_steps():
    population = Population(examples=(100,) * 16)
    algorithm = convex_local(
        learning_rate=4, clip_norm=1, feature_bound=1, batch_size=2, sampling_rate=0.5, noise_multiplier=4.0
    ).for_population(population)
    found = {each.view: each for each in algorithm.planned_releases(3, population)}
    for view, noise in (("public", 4.0), ("server", 1.0)):
        step = PoissonSampled(sampling_rate=0.5, event=GaussianNoise(noise_multiplier=noise))
        assert steps(found[view].event) == {step: 3}  # type: ignore[index]


def test_an_algorithm_of_it_is_its_own_configuration():
    for algorithm in (
        convex_local(learning_rate=4, clip_norm=1, feature_bound=1, local_steps=5),
        proximal_local(learning_rate=1, clip_norm=1, feature_bound=1, batch_size=5, passes=2, strength=0.7),
    ):
        assert from_plain(Algorithm, to_plain(algorithm)) == algorithm


def test_layers_that_learn_nothing_may_come_first():
    torch.manual_seed(0)
    front = nn.Sequential(nn.GroupNorm(2, 4, affine=False), nn.Flatten())
    module = nn.Sequential(*front, nn.Linear(36, 3)).double()
    inputs, targets = torch.randn(9, 4, 3, 3, dtype=DOUBLE), torch.randint(3, (9,))
    model = SupervisedModule(module, "classification")
    found = update(TRAINER, inputs, targets, model.params, loss=model.loss)
    named = dict(zip(("weight", "bias"), model.params.values(), strict=True))
    assert torch.allclose(found, update(TRAINER, front(inputs), targets, named))


def starting_at_zero() -> nn.Linear:
    layer = nn.Linear(5, 3).double()
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


MODELS = {
    "deep": SupervisedModule(nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double(), "classification"),
    "bent": SupervisedModule(nn.Sequential(nn.Linear(5, 3), nn.Tanh()).double(), "classification"),
    "normed": SupervisedModule(nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 3)).double(), "classification"),
    "smoothed": SupervisedModule(starting_at_zero(), "classification", loss=nn.CrossEntropyLoss(label_smoothing=0.2)),
    "regression": SupervisedModule(nn.Linear(5, 1).double(), "regression"),
}


@pytest.mark.parametrize("name", MODELS)
def test_other_models_are_refused(name: str):
    held, model = federation(4), MODELS[name]
    targets = held.targets.double()[:, None] if model.kind == "regression" else held.targets
    with pytest.raises(InvalidInput, match="takes a model of one linear layer under cross-entropy, and got"):
        update(TRAINER, held.inputs, targets, model.params, loss=model.loss)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"learning_rate": 4.01}, "learning_rate must be at most 4, above which a step may move two models apart"),
        ({"strength": 0.5}, r"learning_rate must be at most 1\.33333"),
        ({"schedule": Harmonic(gamma=0.5)}, "at most 4, .* and got 8"),
        ({"steps": 3}, "either batch_size or local steps"),
        ({"batch_size": None}, "either batch_size or local steps"),
    ],
)
def test_what_would_not_hold_is_refused(changes: dict[str, Any], sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        replace(TRAINER, **changes)


@pytest.mark.parametrize("factor", [3.0, -1.0, math.nan])
def test_a_later_round_whose_steps_may_move_two_models_apart_exposes_no_number(factor: float):
    """The first round is checked when the part is built; a schedule may still rise, and every round is priced anew."""
    trainer = TRAINER.for_population(Population(examples=(8,)))
    changed = Exponential(decay=0.5)
    object.__setattr__(changed, "factor", lambda k: factor if k else 1.0)
    object.__setattr__(trainer, "schedule", changed)
    assert trainer.exposure(0).example is not None
    with pytest.raises(InvalidInput, match="a step may move two models apart"):
        trainer.exposure(1)
