"""Standardise numbers by means and spreads that one noisy sum gives before the first round.

The sum is a round of the algorithm's own parts with another model, whose loss has the moments (x, x² − ½) of an example
as its gradient. So the noise is added where the algorithm adds its noise, and is priced as the algorithm prices it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.algorithms.input_scale import CENTRE, SPREAD
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Everyone
from discreet.algorithms.server_optimizers import ServerSgd
from discreet.algorithms.sparsifiers import AllCoordinates
from discreet.algorithms.training import BroadcastGradients, LocalTrainer
from discreet.algorithms.training.gradient_descent import one_plain_step
from discreet.lazy_torch import Tensor, torch
from discreet.params import Params
from discreet.part import Flag, Index, Multiplier, part

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm

MOMENTS = "moments"  # the name of the only parameter of the model of moments
PREPARATION = -1  # the number of the round that sums the moments, so that it shares no random stream with another
WIDEST_SPREAD = 8.0  # that a server may announce; numbers in [-1, 1] have at most 1, and noise may double it
SAFETY = 2.0  # a spread is at least so many standard deviations of its own noise
USELESS_SPREAD = 0.5  # numbers spread evenly over their range have 0.58: with a larger floor, nothing is gained


@part
class Standardisation:
    """Which numbers are standardised, and with how much noise their means and spreads are summed.

    All of them are in [-1, 1] before. Divisors are the public sizes of the clients.

    Attributes:
        inputs: Number of inputs of an example.
        numeric: Indices of the inputs that are numbers. Others, such as those of a category, stay as they are.
        target: Whether the target is a number that is standardised too.
        noise_multiplier: Noise of the sum of moments over the most that one unit moves it. None computes it from the
            promise.
    """

    inputs: Index
    numeric: tuple[Index, ...]
    target: Flag = False
    noise_multiplier: Multiplier | None = None

    @property
    def columns(self) -> int:
        """Number of columns that are standardised, the target among them."""
        return len(self.numeric) + self.target

    @property
    def bound(self) -> float:
        """The norm of one example's moments, at most: x² + (x² − ½)² ≤ 5/4 for each number x in [-1, 1]."""
        return math.sqrt(1.25 * self.columns)

    def first_model(self, like: Tensor) -> Params:
        """Return the model of moments before the sum: zeros, on the device and in the precision of `like`."""
        return {MOMENTS: torch.zeros(2 * self.columns, dtype=like.dtype, device=like.device)}

    def moment_loss(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return a loss for each example whose gradient is minus its moments: a step of rate 1 adds their mean."""
        numbers = inputs[..., list(self.numeric)]
        if self.target:
            numbers = torch.cat([numbers, targets.reshape(*numbers.shape[:-1], 1).to(numbers.dtype)], dim=-1)
        numbers = numbers.clamp(-1, 1)
        moments = torch.cat([numbers, numbers.square() - 0.5], dim=-1)
        return -(moments * params[MOMENTS]).sum(dim=-1)

    def unit_scale(self, like: Tensor) -> Params:
        """Return a centre of 0 and a spread of 1 for every input and the target."""
        values = torch.zeros(self.inputs + 1, dtype=torch.float64, device=like.device)
        return {CENTRE: values, SPREAD: torch.ones_like(values)}

    def accepts(self, scale: Params) -> bool:
        """Whether centres and spreads are such as `scale_from_moments` returns. A server may announce no others."""
        unit, places = self.unit_scale(scale[CENTRE]), self._places
        centre, spread = scale[CENTRE], scale[SPREAD]
        is_within = bool((centre.abs() <= 1).all() and (spread > 0).all() and (spread <= WIDEST_SPREAD).all())
        others = torch.ones_like(centre, dtype=torch.bool)
        others[places] = False
        return is_within and all(torch.equal(scale[name][others], unit[name][others]) for name in (CENTRE, SPREAD))

    @property
    def _places(self) -> list[int]:
        """Where the standardised numbers are among the inputs and the target, which is last."""
        return [*self.numeric, *([self.inputs] if self.target else [])]

    def scale_from_moments(self, moments: Tensor, deviation: float) -> Params:
        """Return the centre and spread of every input and of the target, from the noisy means of the moments.

        Args:
            moments: The means of x, then those of x² − ½.
            deviation: Standard deviation of the noise in each of them.
        """
        values = moments.double().cpu()
        mean, square = values[: self.columns].clamp(-1, 1), values[self.columns :]
        variance = (square + 0.5).clamp(0, 1) - mean.square()
        floor = SAFETY * deviation * (1 + 4 * mean.square()).sqrt()  # of the variance, by the noise of both moments
        spread = torch.maximum(variance, floor).sqrt()
        spread[spread < torch.finfo(torch.float32).eps] = 1.0  # a column of one value, summed without noise
        whole = self.unit_scale(moments)
        places = self._places
        whole[CENTRE][places], whole[SPREAD][places] = mean.to(moments.device), spread.to(moments.device)
        return whole


def moments_algorithm(algorithm: Algorithm, population: Population) -> Algorithm | None:
    """Return the algorithm of the round that sums the moments, for these clients.

    All clients join it with all their examples. None if the algorithm standardises nothing, has parts with which it
    can't be done, or would not charge all clients for it.
    """
    wanted = algorithm.standardisation
    if wanted is None or algorithm.as_published or not _charges_all_clients(algorithm, population):
        return None
    mechanism = algorithm.mechanism.for_moments(wanted.bound, wanted.noise_multiplier)
    trainer, aggregation = _moments_trainer(algorithm, wanted), algorithm.aggregation.for_moments()
    if mechanism is None or trainer is None or aggregation is None:
        return None
    parts: dict[str, Any] = {"trainer": trainer, "mechanism": mechanism, "aggregation": aggregation}
    moments = replace(
        algorithm,
        sampling=Everyone(),
        sparsifier=AllCoordinates(),
        server=ServerSgd(),
        weighting="uniform" if mechanism.is_private else "by_examples",
        standardisation=None,
        **parts,
    )
    return moments.for_population(population, 2 * wanted.columns)


def drop_out_factor(moments: Algorithm, population: Population, joined: Sequence[int]) -> float:
    """Return by what the means of the moments are to be multiplied if only these clients are in the sum.

    Client sizes, and who is in this sum, are public.
    """
    if len(joined) == population.clients:
        return 1.0
    divided_by = len(joined) if moments.aggregation.is_secure else population.clients
    if moments.mechanism.is_private and moments.mechanism.unit == "client":
        return divided_by / len(joined)
    mean_size = sum(population.examples) / population.clients
    return divided_by * mean_size / sum(population.examples[client] for client in joined)


def moment_deviation(algorithm: Algorithm, population: Population) -> float:
    """Return the standard deviation of the noise in each mean of the moments."""
    wanted, moments = algorithm.standardisation, moments_algorithm(algorithm, population)
    assert wanted is not None
    assert moments is not None
    if moments.trainer.exposure(0).own_noise is not None:
        total, divisor = (wanted.noise_multiplier or 0.0) * math.sqrt(population.clients), sum(population.examples)
    elif not moments.mechanism.is_private:
        return 0.0
    else:
        total = moments.mechanism.noise_deviation(range(population.clients)) or 0.0
        divisor = population.clients if moments.mechanism.unit == "client" else sum(population.examples)
    return total * wanted.bound / divisor


def is_worthwhile(algorithm: Algorithm, population: Population) -> bool:
    """Whether spreads smaller than that of evenly spread numbers would show through the noise. It looks at no data."""
    return math.sqrt(SAFETY * moment_deviation(algorithm, population)) < USELESS_SPREAD


def _charges_all_clients(algorithm: Algorithm, population: Population) -> bool:
    """Whether the first round is charged to all clients, since all of them are in the sum of moments.

    Where clients join some rounds only, that is so if no release names those who joined.
    """
    cohort = algorithm.sampling.public_cohort(population, 0)
    if cohort is not None:
        return len(set(cohort)) == population.clients
    noisy = replace(algorithm, standardisation=None).with_noise(1.0).for_population(population)
    return all(release.clients is None for release in noisy.releases(population, 0, cohort=(0,)))


def _moments_trainer(algorithm: Algorithm, wanted: Standardisation) -> LocalTrainer | None:
    """Return one step on all examples of a client, with the noise or the bound of examples that the algorithm needs."""
    if not algorithm.mechanism.is_private:
        return algorithm.trainer.for_moments(wanted.bound, wanted.noise_multiplier)
    if algorithm.mechanism.unit == "client":
        return one_plain_step()
    return BroadcastGradients(steps=(1,), sampling_rate=1.0, clip_norm=wanted.bound, learning_rate=1.0)
