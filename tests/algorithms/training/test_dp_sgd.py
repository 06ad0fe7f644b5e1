"""DP-SGD: clipped sums equal those of a loop over examples, and noise is what the event claims."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import grad

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import Clip
from discreet.algorithms.population import Population
from discreet.algorithms.training import DpSgd, poisson_batches
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.per_example import clipped_sum
from discreet.algorithms.training.trainer import Loss
from discreet.errors import InvalidInput
from discreet.params import Params, norms, repeat_for_clients, zeros_like
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from tests.federations import CPU, convolution, cross_entropy, federation, images, linear

KEY = RunKey.from_seed(3)


def trainer(**fields: object) -> DpSgd:
    defaults = {"steps": 1, "sampling_rate": 0.5, "clip_norm": 0.5, "noise_multiplier": 1.0, "learning_rate": 1.0}
    return DpSgd(**(defaults | fields))  # type: ignore[arg-type]


def by_loop(loss, params: Params, batch: Batch, client: int, clip_norm: float) -> Params:  # type: ignore[no-untyped-def]
    total = {name: torch.zeros_like(value) for name, value in params.items()}
    for i in range(batch.mask.shape[1]):
        if batch.mask[client, i]:
            found = grad(lambda p, i=i: loss(p, batch.inputs[client, i : i + 1], batch.targets[client, i : i + 1])[0])(
                params
            )
            size = math.sqrt(sum(float(value.square().sum()) for value in found.values()))
            for name in total:
                total[name] += found[name] * min(1.0, clip_norm / size)
    return total


@pytest.mark.parametrize("network", ["linear", "convolution"])
def test_clipped_sums_are_those_of_a_loop_over_examples(network: str) -> None:
    data, (params, loss) = (
        (federation(9, 5), (linear(), cross_entropy)) if network == "linear" else (images(9, 5), convolution())
    )
    rows = KEY.rows(0, b"", [0, 1], CPU)
    (batch,) = data.block([0, 1]).draw_poisson(0.7, rows.open(), 100)
    found = clipped_sum(loss, repeat_for_clients(params, 2), batch, Clip(0.3))
    for client in (0, 1):
        for name, value in by_loop(loss, params, batch, client, 0.3).items():
            assert torch.allclose(found[name][client], value, rtol=2e-5, atol=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e200, 0.0])
def test_one_example_moves_the_sum_by_no_more_than_the_clip(bad: float) -> None:
    data = federation(4, features=5)
    inputs = data.inputs.clone()
    inputs[0] = bad
    mask, active = torch.ones(1, 4, dtype=torch.bool), torch.ones(1, dtype=torch.bool)
    params = repeat_for_clients(linear(), 1)
    with_it = clipped_sum(cross_entropy, params, Batch(inputs[None], data.targets[None], mask, active), Clip(0.5))
    without = clipped_sum(
        cross_entropy, params, Batch(inputs[None, 1:], data.targets[None, 1:], mask[:, 1:], active), Clip(0.5)
    )
    moved = {name: with_it[name] - without[name] for name in with_it}
    assert float(norms(moved)[0]) <= 0.5 * (1 + 1e-12)
    assert all(bool(torch.isfinite(value).all()) for value in with_it.values())


@pytest.mark.parametrize("size", [-1.0, -100.0])
def test_each_example_is_clipped_and_not_their_sum(size: float) -> None:
    """Three examples of gradient 1 and one against them, at a clip of ½: the sum is 1, and 1½ without it.

    A clip of the sum alone would turn ½ into −½ where the one is large: twice the clip.
    """

    def sum_of(*gradients: float) -> float:
        inputs = torch.tensor(gradients, dtype=torch.float64)[None, :, None]
        batch = Batch(inputs, torch.zeros(1, len(gradients)), torch.ones(1, len(gradients)).bool(), None)
        model = {"w": torch.zeros(1, 1, dtype=torch.float64)}
        return float(clipped_sum(lambda model, x, y: (x * model["w"]).sum(dim=1), model, batch, Clip(0.5))["w"])

    assert sum_of(1, 1, 1) == pytest.approx(1.5, rel=1e-4)
    assert sum_of(1, 1, 1, size) == pytest.approx(1.0, rel=1e-4)


def test_the_noise_has_the_variance_that_the_event_claims() -> None:
    """Chi-square on 2,000 × 18 normals: |z| < 5 has a false-alarm rate of 6e-7, and 3 % more noise has z = 8."""
    data, clip_norm, z = federation(10), 0.5, 1.3
    params = linear()
    local = trainer(sampling_rate=1e-12, clip_norm=clip_norm, noise_multiplier=z)  # nobody is drawn: only noise is left
    draws = []
    for round in range(2000):
        delta = local.train(
            cross_entropy, Broadcast(round, params, {}), data.block([0]), KEY.rows(round, b"", [0], CPU)
        )
        draws.append(torch.cat([value.flatten() for value in delta.values()]) * (1e-12 * 10))
    noise = torch.cat(draws) / (z * clip_norm)
    spread = (float(noise.square().mean()) - 1) / math.sqrt(2 / noise.numel())
    assert abs(spread) < 5
    assert abs(float(noise.mean())) * math.sqrt(noise.numel()) < 5


def test_an_empty_batch_still_gets_noise() -> None:
    local = trainer(sampling_rate=1e-12)
    delta = local.train(cross_entropy, Broadcast(0, linear(), {}), federation(3).block([0]), KEY.rows(0, b"", [0], CPU))
    assert float(norms(delta)[0]) > 0


def test_the_sum_is_divided_by_the_expected_size_whoever_was_drawn() -> None:
    """With almost no noise, doubling the rate at the same draw halves the step."""
    data = federation(8)
    rows = KEY.rows(0, b"", [0], CPU)
    quiet = trainer(sampling_rate=1.0, noise_multiplier=0.01, learning_rate=8.0)
    delta = quiet.train(cross_entropy, Broadcast(0, linear(), {}), data.block([0]), rows)
    (batch,) = data.block([0]).draw_poisson(1.0, rows.for_purpose(Purpose.BATCH).open(), 100)
    summed = clipped_sum(cross_entropy, repeat_for_clients(linear(), 1), batch, Clip(0.5))
    noise = rows.for_purpose(Purpose.NOISE).open().normal(linear())
    for name in delta:
        assert torch.allclose(delta[name], -8.0 * (summed[name] + 0.005 * noise[name]) / 8)


def test_the_event_says_what_train_does() -> None:
    noise = GaussianNoise(noise_multiplier=1.0)
    expected = Repeated(count=7, event=PoissonSampled(sampling_rate=0.5, event=noise))
    assert trainer(steps=7).exposure(0).own_event(range(1)) == expected
    unchosen = DpSgd(steps=1, sampling_rate=0.5, clip_norm=1, learning_rate=1)
    assert unchosen.exposure(0).own_event(range(1)) is None


def test_the_size_of_a_piece_changes_no_result() -> None:
    data, rows = federation(40, 30), KEY.rows(0, b"", [0, 1], CPU)
    broadcast = Broadcast(0, linear(), {})
    whole = trainer(steps=3, momentum=0.5).train(cross_entropy, broadcast, data.block([0, 1]), rows)
    pieces = trainer(steps=3, momentum=0.5, piece=4).train(cross_entropy, broadcast, data.block([0, 1]), rows)
    for name in whole:
        assert torch.allclose(whole[name], pieces[name], rtol=1e-12, atol=1e-14)


def noise_alone(local: DpSgd, round: int, clients: list[int]) -> torch.Tensor:
    """Return the updates of clients if none of their examples is drawn, one row per client."""
    rows, data = KEY.rows(round, b"", clients, CPU), federation(3, 3).block(clients)
    delta = local.train(cross_entropy, Broadcast(round, linear(), {}), data, rows)
    return torch.cat([value.flatten(start_dim=1) for value in delta.values()], dim=1)


def test_no_two_rounds_have_the_same_noise() -> None:
    local = trainer(sampling_rate=1e-12)
    one, other = (noise_alone(local, round, [0]) for round in (0, 1))
    assert bool((one != other).all())


def test_no_two_clients_have_the_same_noise() -> None:
    one, other = noise_alone(trainer(sampling_rate=1e-12), 0, [0, 1])
    assert bool((one != other).all())


def test_no_two_steps_have_the_same_noise() -> None:
    """Two steps without gradients move the model by the sum of their noises: with one noise, by twice the first."""
    first, both = (noise_alone(trainer(sampling_rate=1e-12, steps=steps), 0, [0]) for steps in (1, 2))
    assert not torch.isclose(both - first, first, rtol=1e-3).any()


def test_a_step_is_divided_by_the_expected_batch_and_not_by_the_realised_one() -> None:
    """Each example's loss falls by w, so a step is η/(qn) times the number of examples drawn."""
    quiet, data = trainer(clip_norm=1.0, noise_multiplier=1e-6), federation(8)
    counts = []
    for at in range(20):
        delta = quiet.train(
            lambda model, x, y: -model["w"] + 0 * x.sum(dim=1),
            Broadcast(at, {"w": torch.zeros(1, dtype=torch.float64)}, {}),
            data.block([0]),
            KEY.rows(at, b"", [0], CPU),
        )
        counts.append(float(delta["w"]) * (0.5 * 8))
    assert len({round(count) for count in counts}) > 3  # of 8 examples, each with chance ½
    assert all(abs(count - round(count)) < 1e-3 for count in counts)


def test_an_epoch_is_as_many_steps_as_see_every_example_once():
    """Opacus's convention, which PFL used: 6,000 examples in batches of 256 are 24 steps at rate 1/24."""
    local = DpSgd(epochs=(1,), batch_size=256, clip_norm=1, learning_rate=0.3)
    fitted = local.for_population(Population(examples=(6000, 5999)))
    assert (fitted.steps, fitted.sampling_rate) == ((24,), 1 / 24)
    assert fitted.for_population(Population(examples=(6000,))) == fitted


@given(st.integers(1, 10**6), st.integers(1, 2000), st.integers(1, 50))
def test_every_batch_size_gives_whole_epochs(examples: int, batch_size: int, epochs: int):
    local = DpSgd(epochs=(epochs,), batch_size=batch_size, clip_norm=1, learning_rate=1)
    fitted = local.for_population(Population(examples=(examples,)))
    assert fitted.sampling_rate is not None
    assert fitted.steps == (epochs * -(-examples // batch_size),)
    assert fitted.sampling_rate * examples <= batch_size * (1 + 1e-12)


def test_local_steps_may_differ_by_round_and_the_last_number_holds_on():
    exposure = trainer(steps=(5, 2, 1)).exposure(0)
    assert exposure.has_uneven_rounds
    counts = [exposure.own_event(range(r, r + 1)).count for r in range(5)]  # type: ignore[union-attr]
    assert counts == [5, 2, 1, 1, 1]
    assert exposure.own_event(range(5)).count == 10  # type: ignore[union-attr]
    assert exposure.own_event(range(10**6)).count == 7 + 10**6 - 2  # type: ignore[union-attr]


def test_a_round_takes_the_steps_that_it_is_accounted_for(monkeypatch: pytest.MonkeyPatch):
    taken: list[bool] = []
    local = trainer(steps=(3, 1))

    def count_sum(loss: Loss, params: Params, *rest: object, shared: bool) -> Params:
        taken.append(shared)
        return zeros_like(repeat_for_clients(params, 1) if shared else params)

    monkeypatch.setattr(poisson_batches, "sum_clipped_gradients", count_sum)
    for round, steps in enumerate((3, 1, 1)):
        taken.clear()
        rows = KEY.rows(round, b"", [0], CPU)
        local.train(cross_entropy, Broadcast(round, linear(), {}), federation(3).block([0]), rows)
        assert taken == [True] + [False] * (steps - 1)  # only the first step is at the broadcast


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"steps": 1, "epochs": 1},
        {"sampling_rate": 0.5, "batch_size": 3},
        {"steps": 0},
        {"steps": []},
        {"steps": 1.5},
    ],
)
def test_what_says_nothing_or_two_things_is_refused(wrong: dict[str, object]):
    one = {"steps": 1} if not {"steps", "epochs"} & set(wrong) and wrong else {}
    other = {"sampling_rate": 0.5} if not {"sampling_rate", "batch_size"} & set(wrong) and wrong else {}
    with pytest.raises(InvalidInput):
        DpSgd(**one, **other, **wrong, clip_norm=1, learning_rate=1)  # type: ignore[arg-type]


def test_a_clip_that_single_precision_cannot_measure_is_refused():
    with pytest.raises(InvalidInput, match="at least 1e-09"):
        DpSgd(steps=(1,), sampling_rate=0.5, clip_norm=1e-12, learning_rate=1)
