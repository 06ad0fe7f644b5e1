"""A trainer that breaks its contract is refused, with a sentence that says how."""

from typing import Any

import pytest
import torch
from torch.func import grad, vmap

from discreet.algorithms.clipping import clip
from discreet.algorithms.training import ExampleBound, Exposure
from discreet.algorithms.training.exposure import same_noise
from discreet.params import Params, norms, scale, sum_clients
from discreet.privacy.events import GaussianNoise
from discreet.randomness.purposes import Purpose
from discreet.testing import PartFailed, check_trainer

CLIP, RATE = 0.5, 0.1


class ClippedSum:
    """A sound trainer of a user's own: the sum of clipped gradients of all examples, at the broadcast model."""

    clip_norm = CLIP
    declared = CLIP * RATE

    def exposure(self, round: int) -> Exposure:
        example = ExampleBound(sensitivity=self.declared, passes=1, parts=1, counted_noise=same_noise)
        return Exposure(
            steps=(1,), sampling_rate=None, own_noise=None, update_norm=None, norm_order=None, example=example
        )

    def bound(self, gradients: Params) -> Params:
        return clip(gradients, self.clip_norm)

    def update(self, loss: Any, broadcast: Any, batches: Any, client: int) -> Params:
        first = batches.starts[client]
        own = slice(first, first + batches.sizes[client])

        def example_loss(params: Params, example: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
            value: torch.Tensor = loss(params, example[None], label[None])[0]
            return value

        gradients = vmap(grad(example_loss), in_dims=(None, 0, 0))(
            broadcast.params, batches.inputs[own], batches.targets[own]
        )
        return scale(sum_clients(self.bound(gradients)), -RATE)

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        updates = [self.update(loss, broadcast, batches, client) for client in range(batches.clients)]
        return {name: torch.stack([update[name] for update in updates]) for name in broadcast.params}


class Noisy(ClippedSum):
    """A sound trainer that adds noise of its own."""

    def exposure(self, round: int) -> Exposure:
        noise = GaussianNoise(noise_multiplier=2.0)
        return Exposure(
            steps=(1,), sampling_rate=None, own_noise=noise, update_norm=None, norm_order=None, example=None
        )

    def noise(self, broadcast: Any, rows: Any) -> Params:
        drawn: Params = rows.for_purpose(Purpose.NOISE).open().normal(broadcast.params)
        return scale(drawn, 2 * CLIP * RATE)

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        clean, noise = super().train(loss, broadcast, batches, rows), self.noise(broadcast, rows)
        return {name: clean[name] + noise[name] for name in clean}


class BoundedUpdate(ClippedSum):
    """A sound trainer whose whole update is bounded."""

    def exposure(self, round: int) -> Exposure:
        return Exposure(steps=(1,), sampling_rate=None, own_noise=None, update_norm=0.1, norm_order=2, example=None)

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        return clip(super().train(loss, broadcast, batches, rows), 0.1)


@pytest.mark.parametrize(
    ("sound", "sentence"),
    [
        (ClippedSum(), "One example moved an update by at most 1 of its declared bound."),
        (Noisy(), "Noise in training was fresh in two rounds, runs and clients; its amount was not measured."),
        (BoundedUpdate(), "The largest update had a norm of 0.1; at most 0.1 is declared."),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_sound_trainer_of_a_users_own_passes(sound: Any, sentence: str) -> None:
    tried, measured = check_trainer(sound)
    assert tried == "Trained 3 clients on synthetic data: no client changed the update of another."
    assert measured == sentence


class ReadsOthers(ClippedSum):
    """Every client's update has a trace of the first client's data."""

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        trace = float(batches.inputs[0].nan_to_num().sum())
        return {name: value + 1e-6 * trace for name, value in super().train(loss, broadcast, batches, rows).items()}


class BlockOffset(ClippedSum):
    """Subtracts the mean of the block."""

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        return {
            name: value - value.shape[0] * 1e-3 for name, value in super().train(loss, broadcast, batches, rows).items()
        }


class HalfDeclared(ClippedSum):
    declared = CLIP * RATE / 2


class LetsNanThrough(ClippedSum):
    def bound(self, gradients: Params) -> Params:
        factors = (CLIP / norms(gradients).clamp(min=CLIP)).float()
        return {name: value * factors.reshape(-1, *[1] * (value.dim() - 1)) for name, value in gradients.items()}


class NoClip(ClippedSum):
    def bound(self, gradients: Params) -> Params:
        return {name: value.nan_to_num(0, 0, 0) for name, value in gradients.items()}


class LongerThanDeclared(BoundedUpdate):
    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        return scale(super().train(loss, broadcast, batches, rows), 1.5)


class Silent(Noisy):
    def noise(self, broadcast: Any, rows: Any) -> Params:
        return scale(super().noise(broadcast, rows), 0.0)


class OneSeed(Noisy):
    """Noise by a seed of its own, of the run but not of the round."""

    def noise(self, broadcast: Any, rows: Any) -> Params:
        return super().noise(broadcast, type(rows)(rows.secret, ("mine",), rows.clients, rows.device))


class SharedNoise(Noisy):
    def noise(self, broadcast: Any, rows: Any) -> Params:
        alone = type(rows)(rows.secret, rows.name, (0,), rows.device)
        return {
            name: value.expand(len(rows.clients), *value.shape[1:])
            for name, value in super().noise(broadcast, alone).items()
        }


class NumpyNoise(Noisy):
    def noise(self, broadcast: Any, rows: Any) -> Params:
        import numpy as np

        return {
            name: torch.from_numpy(np.random.randn(len(rows.clients), *value.shape)).float()
            for name, value in broadcast.params.items()
        }


class OneRow(ClippedSum):
    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Params:
        return {name: value[0] for name, value in super().train(loss, broadcast, batches, rows).items()}


class NoWeights(ClippedSum):
    def examples_per_step(self, population: Any) -> tuple[float, ...]:
        return (0.0,) * population.clients


class NoSensitivity(ClippedSum):
    declared = 0.0


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (ReadsOthers, r"Data of one client, replaced by other inputs, changed the update of another client"),
        (BlockOffset, r"A client's update depends on which other clients are in its block"),
        (
            HalfDeclared,
            r"One example that was replaced \(\w+ values\) moved an update by (2|1.\d+) times what `exposure`",
        ),
        (LetsNanThrough, r"With one NaN example, an update is not finite"),
        (NoClip, r"One example that was replaced \(\w+ values\) moved an update by \S+ times what `exposure`"),
        (LongerThanDeclared, r"An update has a norm of 0.15, and `exposure` declares at most 0.1"),
        (Silent, r"Training declares noise, and two runs gave the same update"),
        (OneSeed, r"Two rounds carry the same noise: the correlation is 1.00"),
        (SharedNoise, r"Two clients carry the same noise: the correlation is 1.00"),
        (NumpyNoise, r"The same training gave two updates"),
        (OneRow, r"Training must return an update of every tensor of the model, one row for each client"),
        (NoWeights, r"`examples_per_step` must return a positive number for each client"),
        (NoSensitivity, r"The sensitivity of an example must be above 0"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_trainer_that_breaks_its_contract_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_trainer(wrong())
