"""The cost of a lattice for a secure sum: what the parts of a run certify with a given number of bits."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.errors import InvalidInput
from discreet.planning.curves.sweep_panels import sweep_panel
from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort
from discreet.privacy import accountant
from discreet.privacy.events import SkellamNoise, step_noise, steps
from discreet.privacy.wording import compact, round_up
from discreet.report.curves import Panel

HEADINGS = ("bits", "scale", "noise after rounding", "ε, sums", "")
ROUNDING_NOTE = (
    "Bits: sums are scaled onto a lattice, rounded and added modulo 2^bits, with Skellam noise; the scale is the "
    "largest at which a sum leaves the ring with probability 1e-9 at most. A run without a number of bits chooses the "
    "fewest bits with which rounding costs 1 % of the noise or less. Shares are drawn up to a variance of 2e12, which "
    "limits the scale too: with much noise more bits change nothing. ε is by Rényi divergences, the only ones proven "
    "for Skellam noise"
)


class RingBits(NamedTuple):
    """A ring, the lattice that fits into it, and what is certified on it; the fields are the JSON keys of a row.

    Attributes:
        bits: The bits of the ring.
        scale: Lattice steps per unit that one example can move; None where no lattice fits.
        noise_multiplier: The noise divided by the sensitivity after rounding; None where no lattice fits.
        epsilon: The certified ε; infinity where no lattice fits.
        taken: Whether a run chooses this ring by itself.
        valid: Whether a lattice fits.
        reason: Why none does.
    """

    bits: int
    scale: float | None
    noise_multiplier: float | None
    epsilon: float
    taken: bool
    valid: bool
    reason: str


def evaluate_rings(
    work: ClientWork,
    cohort: Cohort,
    noise_multiplier: float,
    delta: float,
    bits: Sequence[int],
    *,
    examples: int,
    dimension: int,
) -> Iterator[RingBits]:
    """Evaluate `ddp_fedavg` with gradients at the broadcast model on each ring, for one example against the server.

    The ring that a run chooses by itself is added to `bits`.
    """
    population = Population(examples=(examples,) * cohort.clients)

    def fit(ring: int | None) -> Algorithm:
        recipe = ddp_fedavg(
            learning_rate=1.0,  # neither it nor the clip norm changes what is certified
            clip_norm=1.0,
            sampling_rate=work.sampling_rate,
            local_steps=work.steps,
            noise_multiplier=noise_multiplier,
            bits=ring,
            colluding=cohort.colluding,
            dropouts=cohort.dropouts,
        )
        return recipe.for_population(population, dimension)

    default = _ring_bits(fit(None))
    for ring in sorted({*bits, default}):
        try:
            algorithm = fit(ring)
        except InvalidInput as error:
            yield RingBits(ring, None, None, math.inf, taken=False, valid=False, reason=error.problem)
        else:
            yield _certify(algorithm, population, work.rounds, delta)._replace(taken=ring == default)


def ring_cells(ring: RingBits) -> tuple[str, ...]:
    """Return the cells of one row of the table."""
    if ring.scale is None or ring.noise_multiplier is None:
        return str(ring.bits), "–", "–", "–", ""
    note = "chosen by default" if ring.taken else ""
    return str(ring.bits), compact(ring.scale, 4), compact(ring.noise_multiplier, 4), round_up(ring.epsilon), note


def ring_panel(rings: Sequence[RingBits], gaussian_epsilon: float, clients: int) -> Panel:
    """Draw ε against bits, beside the ε of real numbers under Gaussian noise."""
    return sweep_panel(
        f"Cost of the ring for {clients:,} clients",
        ("bits per coordinate", "ε"),
        rings,
        lambda ring: ring.bits,
        {
            "Skellam on the lattice, certified": lambda ring: ring.epsilon,
            "Gaussian noise, real numbers": lambda ring: gaussian_epsilon,
        },
        dashed=("Gaussian noise, real numbers",),
        log_y=True,
        whole_x=True,
    )


def _certify(algorithm: Algorithm, population: Population, rounds: int, delta: float) -> RingBits:
    grid = algorithm.grid(population)
    release = next(release for release in algorithm.planned_releases(rounds, population) if release.view == "server")
    (step,) = steps(release.event)
    noise = step_noise(step)
    assert grid is not None
    assert isinstance(noise, SkellamNoise)
    multiplier = math.sqrt(noise.variance) / noise.l2_sensitivity
    epsilon = accountant.epsilon(release.event, delta, release.relation)
    scale = grid.scale / math.sqrt(grid.times)
    return RingBits(_ring_bits(algorithm), scale, multiplier, epsilon, taken=False, valid=True, reason="")


def _ring_bits(algorithm: Algorithm) -> int:
    assert algorithm.aggregation.ring_bits is not None
    return algorithm.aggregation.ring_bits
