"""What a lattice costs a secure sum: the parts that would run, asked what they certify at so many bits."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.errors import InvalidInput
from discreet.privacy.wording import brief, rounded_up

if TYPE_CHECKING:
    from discreet.report.curves import Panel
    from discreet.theory.cohorts import Cohort, Work

ROUNDED = (
    "Bits: sums are scaled onto a lattice, rounded and added up modulo 2^bits, with Skellam noise; the scale is the "
    "largest at which a sum leaves the ring with probability 1e-9 at most. Its ε is by Rényi divergences, which alone "
    "are proven for Skellam noise"
)


class Bits(NamedTuple):
    """A ring, the lattice that fits into it, and what is certified on it; nothing where none fits."""

    bits: int
    scale: float | None  # steps of the lattice to what one example may move
    noise: float | None  # over the sensitivity after rounding
    epsilon: float  # infinity: no promise
    valid: bool
    reason: str


def lattices(
    work: "Work",
    cohort: "Cohort",
    noise_multiplier: float,
    delta: float,
    bits: Sequence[int],
    *,
    examples: int,
    dimension: int,
) -> Iterator[Bits]:
    """`ddp_fedavg` with gradients at the broadcast model, for each ring: of one example, to the server of the sum."""
    from discreet.algorithms import ddp_fedavg
    from discreet.population import Population
    from discreet.privacy import accountant
    from discreet.privacy.events import SkellamNoise, noise_of, steps

    population = Population(examples=(examples,) * cohort.clients)
    for each in bits:
        algorithm = ddp_fedavg(
            learning_rate=1.0,  # neither it nor the clip changes what is certified
            clip_norm=1.0,
            sampling_rate=work.sampling_rate,
            local_steps=work.steps,
            noise_multiplier=noise_multiplier,
            bits=each,
            colluding=cohort.colluding,
            dropouts=cohort.dropouts,
        )
        try:
            ready = algorithm.fitted(population, dimension)
        except InvalidInput as error:
            yield Bits(each, None, None, math.inf, valid=False, reason=error.problem)
            continue
        grid = ready.grid(population)
        seen = next(each for each in ready.over(work.rounds, population) if each.view == "server")
        (step,) = steps(seen.event)
        noise = noise_of(step)
        assert grid is not None
        assert isinstance(noise, SkellamNoise)
        left = math.sqrt(noise.variance) / noise.l2_sensitivity
        epsilon = accountant.epsilon(seen.event, delta, seen.relation)
        yield Bits(each, grid.scale / math.sqrt(grid.times), left, epsilon, valid=True, reason="")


def cells(found: Bits) -> tuple[str, ...]:
    if found.scale is None or found.noise is None:
        return str(found.bits), "–", "–", "–"
    return str(found.bits), brief(found.scale, 4), brief(found.noise, 4), rounded_up(found.epsilon)


def row(found: Bits) -> dict[str, Any]:
    return {
        "bits": found.bits,
        "scale": found.scale,
        "noise_multiplier": found.noise,
        "epsilon": found.epsilon,
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
