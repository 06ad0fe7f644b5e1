"""What a paper claims of an algorithm that runs as published, and why that is not certified."""

import math
from typing import TYPE_CHECKING, NamedTuple

from discreet.algorithms.population import Population
from discreet.algorithms.soundness import has_thinned_noise
from discreet.algorithms.training import DpSgd
from discreet.privacy import gaussian
from discreet.privacy.events import (
    Composed,
    Event,
    PoissonSampled,
    Repeated,
    replace_noise,
    scale_sensitivity,
    step_noise,
    steps,
)
from discreet.privacy.release import Release
from discreet.words import fill

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm

CLIENTS, STEPS, NOISE, FALSE_ALARMS = 10, 2, 4.0, 1e-3  # the numbers of examples/counterexample.py


class PaperClaim(NamedTuple):
    """A release as the paper counts it, where that can be read, and why it is not certified."""

    release: Release
    source: str
    reason: str


def explain_local_state() -> str:
    """Explain why Heikkilä's Theorem 4.6 fails: what it allows any attack, and what an attack on the state achieves."""
    allowed = gaussian.true_positive_rate(math.sqrt(STEPS) / NOISE, FALSE_ALARMS)
    recognised = gaussian.true_positive_rate(math.sqrt(CLIENTS) / NOISE, FALSE_ALARMS)
    return fill(
        "claim.local_state",
        clients=CLIENTS,
        noise=f"{NOISE:g}",
        allowed=f"{1000 * allowed:.1f}",
        alarms=f"{1000 * FALSE_ALARMS:g}",
        recognised=f"{1000 * recognised:.1f}",
    )


def paper_claims(algorithm: "Algorithm", rounds: int, population: Population) -> list[PaperClaim]:
    """List the paper's own releases if the algorithm runs as published; else nothing."""
    if not algorithm.as_published:
        return []
    found = []
    joined, mechanism = algorithm.sampling.rounds_joined(population, rounds), algorithm.mechanism
    alone, noise = mechanism.upload_noise(), mechanism.sum_noise()
    if alone is not None and mechanism.is_local:
        event = Repeated(count=joined, event=alone)
        release = Release(unit="client", relation="add_or_remove", view="server", event=event)
        found.append(PaperClaim(release, fill("claim.by_fu"), fill("claim.half_sensitivity")))
    exposure = algorithm.trainer.for_population(population).exposure(0)
    local = exposure.own_event(range(joined))
    if isinstance(algorithm.trainer, DpSgd) and local is not None:
        whole = _with_scaled_noise(local, math.sqrt(population.clients))
        reason = explain_local_state() if max(exposure.steps) > 1 else fill("claim.in_clear")
        release = Release(unit="example", relation="zero_out", view="server", event=whole)
        found.append(PaperClaim(release, fill("claim.by_heikkila"), reason))
    if noise is not None and has_thinned_noise(algorithm):
        rate = algorithm.sampling.expected_cohort(population) / population.clients
        event = Repeated(count=joined, event=PoissonSampled(sampling_rate=rate, event=noise))
        release = Release(unit="client", relation="add_or_remove", view="public", event=event)
        found.append(PaperClaim(release, fill("claim.by_shi"), str(algorithm.sparsifier.unsound_reason)))
    return found


def _with_scaled_noise(event: Event, factor: float) -> Event:
    """Return the same steps with `factor` times the noise."""
    return Composed(
        events=tuple(
            Repeated(count=count, event=replace_noise(step, scale_sensitivity(step_noise(step), 1 / factor)))
            for step, count in steps(event).items()
        )
    )
