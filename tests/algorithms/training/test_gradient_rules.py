"""The gradient rules of local training, on a quadratic whose gradients are known in closed form."""

import math
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.training import AnyTrainer, GradientDescent, LocalSgd, LocalTrainer
from discreet.algorithms.training.gradient_rules import AnyGradientClip, Asam, Blur, L1Clip, L2Clip, Prox, Sam
from discreet.algorithms.training.schedules import Exponential, Harmonic
from discreet.data.federation import Federation
from discreet.params import Params, norms
from discreet.part import from_plain, to_plain
from discreet.randomness.streams import RunKey
from tests.federations import CPU, cross_entropy, federation, linear

KEY = RunKey.from_seed(4)
CURVE = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
START = {"a": torch.tensor([1.0, -2.0], dtype=torch.float64), "b": torch.tensor([0.5], dtype=torch.float64)}
TARGETS = torch.tensor([[0.0, 1.0, 3.0], [-1.0, 4.0, 0.25]], dtype=torch.float64)  # one example for each of two clients
STEP = LocalSgd(learning_rate=0.1, batch_size=1, steps=1)
PIECES: list[dict[str, Any]] = [
    {"perturbation": Sam(rho=0.5)},
    {"perturbation": Asam(rho=0.2)},
    {"regulariser": Blur(radius=0.3, strength=2.0)},
    {"regulariser": Prox(strength=0.7)},
    {"gradient_clip": L2Clip(bound=0.4)},
    {"gradient_clip": L1Clip(bound=0.4)},
    {"perturbation": Sam(rho=0.1), "regulariser": Prox(strength=0.1), "gradient_clip": L2Clip(bound=1.0)},
]
TRAINERS: list[LocalTrainer] = [
    replace(base, **pieces)
    for pieces in PIECES
    for base in (STEP, GradientDescent(learning_rate=0.1, iterations=(3, 1)))
]


def quadratic(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
    """½·Σ curve·(w − x)², whose gradient is curve·(w − x)."""
    return ((flat(params) - inputs).square() * CURVE).sum(dim=-1) / 2


def flat(params: Params) -> Tensor:
    return torch.cat([params["a"], params["b"]], dim=-1)


def train_round(trainer: LocalTrainer, loss: Any = quadratic, targets: Tensor = TARGETS) -> Tensor:
    """Return each client's model after a round from START."""
    data = Federation(targets, torch.zeros(len(targets)), (1,) * len(targets))
    rows, clients = KEY.rows(0, b"", range(len(targets)), CPU), range(len(targets))
    return flat(START) + flat(trainer.train(loss, Broadcast(0, START, {}), data.block(clients), rows))


@pytest.mark.parametrize("trainer", TRAINERS, ids=str)
def test_a_trainer_with_its_pieces_comes_back_from_plain_data(trainer: LocalTrainer) -> None:
    assert from_plain(AnyTrainer, to_plain(trainer)) == trainer


def test_sam_takes_the_gradient_at_the_top_of_a_ball() -> None:
    w = flat(START).expand(2, 3)
    for steps in (1, 2, 3):
        g = CURVE * (w - TARGETS)
        w = w - 0.1 * CURVE * (w + 0.5 * g / g.norm(dim=1, keepdim=True) - TARGETS)
        assert torch.allclose(train_round(replace(STEP, steps=steps, perturbation=Sam(rho=0.5))), w, rtol=1e-11)


def test_asam_moves_weights_by_their_own_size() -> None:
    w = flat(START).expand(2, 3)
    for steps in (1, 2, 3):
        g = CURVE * (w - TARGETS)
        top = w + 0.2 * w.square() * g / (w.abs() * g).norm(dim=1, keepdim=True)
        w = w - 0.1 * CURVE * (top - TARGETS)
        assert torch.allclose(train_round(replace(STEP, steps=steps, perturbation=Asam(rho=0.2))), w, rtol=1e-11)


@pytest.mark.parametrize("piece", [Sam(rho=0.5), Asam(rho=0.5)], ids=str)
def test_where_the_gradient_is_zero_nothing_is_perturbed(piece: Sam | Asam) -> None:
    there = flat(START)[None]
    assert torch.equal(train_round(replace(STEP, perturbation=piece), targets=there), there)


def test_blur_sleeps_inside_the_ball_and_pulls_outside_it() -> None:
    inside, outside = Blur(radius=10.0, strength=3.0), Blur(radius=0.01, strength=3.0)
    two = replace(STEP, steps=2)
    assert torch.equal(train_round(replace(two, regulariser=inside)), train_round(two))
    once = train_round(STEP)
    away = once - flat(START)
    assert bool((away.norm(dim=1) > 0.01).all())
    assert torch.allclose(
        train_round(replace(two, regulariser=outside)), train_round(two) - 0.1 * 3.0 * away, rtol=1e-11
    )


def test_blur_wakes_for_each_client_by_itself() -> None:
    """The first steps are as long as the gradients: 0.1·‖(1, −6, −1.25)‖ = 0.62 and 0.1·‖(2, −12, 0.125)‖ = 1.22."""
    two = replace(STEP, steps=2)
    blurred, usual = train_round(replace(two, regulariser=Blur(radius=1.0, strength=3.0))), train_round(two)
    assert torch.equal(blurred[0], usual[0])
    assert not torch.equal(blurred[1], usual[1])


def test_the_proximal_term_pulls_by_the_distance() -> None:
    two = replace(STEP, steps=2)
    assert torch.equal(train_round(replace(two, regulariser=Prox(strength=0.0))), train_round(two))
    pulled = train_round(two) - 0.1 * 0.7 * (train_round(STEP) - flat(START))
    assert torch.allclose(train_round(replace(two, regulariser=Prox(strength=0.7))), pulled, rtol=1e-11)


def test_the_clip_holds_for_the_gradient_and_not_for_the_pull_back() -> None:
    pieces: dict[str, Any] = {"gradient_clip": L2Clip(bound=0.4), "regulariser": Prox(strength=1000.0)}
    start = train_round(replace(STEP, gradient_clip=L2Clip(bound=0.4)))
    again = train_round(replace(STEP, steps=2, **pieces))
    assert bool(((again - start).norm(dim=1) > 1).all())


@given(rows=st.lists(st.lists(st.floats(width=32), min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_gradient_is_longer_than_its_clip(rows: list[list[float]]) -> None:
    values = torch.tensor(rows)
    gradient = {"w": values[:, :2], "b": values[:, 2:]}
    assert bool((norms(L2Clip(bound=0.7).clip_gradient(gradient)) <= 0.7).all())
    assert bool((norms(L1Clip(bound=0.7).clip_gradient(gradient), order=1) <= 0.7).all())


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e30])
def test_a_gradient_that_is_not_finite_counts_as_zero_and_a_huge_one_as_the_bound(bad: float) -> None:
    def loss(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        return (flat(params) * inputs).sum(dim=-1)  # the gradient is the input

    trainer = replace(STEP, gradient_clip=L2Clip(bound=0.4))
    data = torch.tensor([[bad, 0.0, 0.0], [3.0, 0.0, 4.0]], dtype=torch.float64)
    rows = KEY.rows(0, b"", [0, 1], CPU)
    block = Federation(torch.zeros(2, 3), torch.zeros(2), (1, 1)).block([0, 1])
    update = flat(trainer.train(loss, Broadcast(0, START, {}), replace(block, inputs=data), rows))
    assert update[0].tolist() == pytest.approx([-0.04 if bad == 1e30 else 0, 0, 0], rel=2e-5)
    assert update[1].tolist() == pytest.approx([-0.024, 0, -0.032], rel=2e-5)


def test_no_piece_asks_the_device_for_a_number() -> None:
    """Tensors on the meta device have no values, and neither has a recorded step."""
    rows = {"w": torch.empty(2, 3, device="meta"), "b": torch.empty(2, 2, device="meta")}
    start = {"w": torch.empty(3, device="meta"), "b": torch.empty(2, device="meta")}
    found = [piece.perturb(rows, rows) for piece in (Sam(rho=0.5), Asam(rho=0.5))]
    found += [piece.gradient(rows, start) for piece in (Blur(radius=1.0, strength=0.5), Prox(strength=0.5))]
    found += [piece.clip_gradient(rows) for piece in (L2Clip(bound=1.0), L1Clip(bound=1.0))]
    assert all(each["w"].is_meta and each["w"].shape == (2, 3) and each["b"].shape == (2, 2) for each in found)


@settings(max_examples=40)
@given(
    bound=st.floats(1e-3, 1e3),
    rate=st.floats(1e-3, 10),
    length=st.integers(1, 4),
    round=st.integers(0, 5),
    order=st.sampled_from([1, 2]),
    perturbation=st.sampled_from([None, Sam(rho=0.5), Asam(rho=0.5)]),
)
def test_no_update_exceeds_the_bound_that_training_names(
    bound: float, rate: float, length: int, round: int, order: int, perturbation: Sam | Asam | None
) -> None:
    clip, data = L2Clip(bound=bound) if order == 2 else L1Clip(bound=bound), federation(7, 1, 12)
    pieces: dict[str, Any] = {"learning_rate": rate, "gradient_clip": clip, "perturbation": perturbation}
    for trainer in (
        LocalSgd(batch_size=3, steps=length, schedule=Exponential(decay=0.5), **pieces),
        GradientDescent(iterations=(length, 2), schedule=Harmonic(gamma=0.5), **pieces),
    ):
        named = trainer.exposure(round).update_norm
        assert named is not None
        block = data.block([0, 1, 2])
        update = trainer.train(cross_entropy, Broadcast(round, linear(), {}), block, KEY.rows(0, b"", [0, 1, 2], CPU))
        assert bool((norms(update, order=order) <= named * (1 + 1e-9) + 1e-14).all())  # doubles round too


def test_the_bound_is_the_clip_times_the_rates_of_the_round() -> None:
    clipped: dict[str, Any] = {"gradient_clip": L2Clip(bound=3.0)}
    local = LocalSgd(learning_rate=0.5, batch_size=2, steps=4, schedule=Exponential(decay=0.5), **clipped)
    assert (local.exposure(0).update_norm, local.exposure(2).update_norm) == (6.0, 1.5)
    harmonic = GradientDescent(learning_rate=2.0, iterations=(2, 3), schedule=Harmonic(gamma=4.0), **clipped)
    assert harmonic.exposure(0).update_norm == pytest.approx(3 * 2 * (1 / 4 + 1 / 5))
    assert harmonic.exposure(1).update_norm == pytest.approx(3 * 2 * (1 / 6 + 1 / 7 + 1 / 8))
    assert harmonic.exposure(2).update_norm == pytest.approx(3 * 2 * (1 / 9 + 1 / 10 + 1 / 11))


@pytest.mark.parametrize(
    "other",
    [
        {"gradient_clip": None},
        {"momentum": 0.5},
        {"weight_decay": 0.1},
        {"regulariser": Prox(strength=0.1)},
        {"steps": None, "epochs": 1},
    ],
    ids=str,
)
def test_nothing_bounds_an_update_that_more_than_a_known_number_of_clipped_gradients_moves(other: Any) -> None:
    local = LocalSgd(learning_rate=0.5, batch_size=2, steps=4, gradient_clip=L2Clip(bound=3.0))
    assert local.exposure(0).update_norm is not None
    assert replace(local, **other).exposure(0).update_norm is None


@pytest.mark.parametrize("kind", get_args(get_args(AnyGradientClip)[0]), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e30, math.inf, math.nan])
def test_no_clipped_gradient_exceeds_the_bound_in_the_norm_that_the_clip_names(kind: Any, size: float) -> None:
    clip = kind(bound=2.0)
    gradient = {"weight": size * torch.randn(3, 50), "bias": size * torch.randn(3, 5)}
    clipped = clip.clip_gradient(gradient)
    assert bool((norms(clipped, order=clip.norm_order) <= 2.0 * (1 + 1e-6)).all())
