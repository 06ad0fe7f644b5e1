"""What a lattice costs a secure sum: the parts that would run, asked what they certify at so many bits."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import InvalidInput
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm
    from discreet.algorithms.population import Population
    from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort
    from discreet.report.curves import Panel

ROUNDED = (
    "Bits: sums are scaled onto a lattice, rounded and added up modulo 2^bits, with Skellam noise; the scale is the "
    "largest at which a sum leaves the ring with probability 1e-9 at most. A run that isn't told takes the fewest bits "
    "with which rounding costs 1 % of the noise or less. Shares are drawn up to a variance of 2e12, which limits the "
    "scale too: with much noise more bits change nothing. ε is by Rényi divergences, which alone are proven for "
    "Skellam noise"
)


class Bits(NamedTuple):
    """A ring, the lattice that fits into it, and what is certified on it; nothing where none fits."""

    bits: int
    scale: float | None  # steps of the lattice to what one example may move
    noise: float | None  # over the sensitivity after rounding
    epsilon: float  # infinity: no promise
    taken: bool  # by a run that is not told how many bits
    valid: bool
    reason: str


def lattices(
    work: "ClientWork",
    cohort: "Cohort",
    noise_multiplier: float,
    delta: float,
    bits: Sequence[int],
    *,
    examples: int,
    dimension: int,
) -> Iterator[Bits]:
    """`ddp_fedavg` with gradients at the broadcast model, for each ring: of one example, to the server of the sum.

    One ring is that which a run takes when it isn't told.
    """
    from discreet.algorithms.population import Population

    population = Population(examples=(examples,) * cohort.clients)

    def on(bits: int | None) -> "Algorithm":
        return _laid_out(work, cohort, noise_multiplier, bits).for_population(population, dimension)

    taken = _ring(on(None))
    for each in sorted({*bits, taken}):
        try:
            ready = on(each)
        except InvalidInput as error:
            yield Bits(each, None, None, math.inf, taken=False, valid=False, reason=error.problem)
        else:
            yield _certified(ready, population, work.rounds, delta)._replace(taken=each == taken)


def _laid_out(work: "ClientWork", cohort: "Cohort", noise_multiplier: float, bits: int | None) -> "Algorithm":
    from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg

    return ddp_fedavg(
        learning_rate=1.0,  # neither it nor the clip changes what is certified
        clip_norm=1.0,
        sampling_rate=work.sampling_rate,
        local_steps=work.steps,
        noise_multiplier=noise_multiplier,
        bits=bits,
        colluding=cohort.colluding,
        dropouts=cohort.dropouts,
    )


def _certified(ready: "Algorithm", population: "Population", rounds: int, delta: float) -> Bits:
    from discreet.privacy import accountant
    from discreet.privacy.events import SkellamNoise, step_noise, steps

    grid = ready.grid(population)
    seen = next(each for each in ready.planned_releases(rounds, population) if each.view == "server")
    (step,) = steps(seen.event)
    noise = step_noise(step)
    assert grid is not None
    assert isinstance(noise, SkellamNoise)
    left = math.sqrt(noise.variance) / noise.l2_sensitivity
    epsilon = accountant.epsilon(seen.event, delta, seen.relation)
    scale = grid.scale / math.sqrt(grid.times)
    return Bits(_ring(ready), scale, left, epsilon, taken=False, valid=True, reason="")


def _ring(ready: "Algorithm") -> int:
    from discreet.algorithms.aggregation import Lattice

    assert isinstance(ready.aggregation, Lattice)
    assert ready.aggregation.bits is not None
    return ready.aggregation.bits


def cells(found: Bits) -> tuple[str, ...]:
    if found.scale is None or found.noise is None:
        return str(found.bits), "–", "–", "–", ""
    taken = "a run's own choice" if found.taken else ""
    return str(found.bits), compact(found.scale, 4), compact(found.noise, 4), round_up(found.epsilon), taken


def row(found: Bits) -> dict[str, Any]:
    return {
        "bits": found.bits,
        "scale": found.scale,
        "noise_multiplier": found.noise,
        "epsilon": found.epsilon,
        "taken": found.taken,
        "valid": found.valid,
        "reason": found.reason,
    }


def panel(found: Sequence[Bits], gaussian: float, clients: int) -> "Panel":
    """ε against bits, and the ε of real numbers under Gaussian noise that it comes down to."""
    from discreet.report.curves import Panel, curve

    xs = [each.bits for each in found]
    return Panel(
        title=f"What the ring costs {clients:,} clients",
        across="bits of a coordinate",
        up="ε",
        curves=(
            curve("Skellam on the lattice, certified", xs, [each.epsilon for each in found]),
            curve("Gaussian noise, real numbers", xs, [gaussian] * len(xs), dashed=True),
        ),
        log_y=True,
        whole_x=True,
    )
