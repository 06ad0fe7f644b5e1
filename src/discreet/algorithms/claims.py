"""What a paper says of an algorithm that is run as published, and why it is not certified."""

from typing import TYPE_CHECKING, NamedTuple

from discreet.algorithms.soundness import breaks_the_sum
from discreet.mechanisms import LocalNoise
from discreet.population import Population
from discreet.privacy.events import PoissonSampled, Repeated
from discreet.privacy.release import Release

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm

HALF = (
    "its sensitivity is the bound on one update's norm, and two updates of that norm may lie twice as far apart; what "
    "is certified counts that"
)


class Stated(NamedTuple):
    """A release as the paper prices it."""

    release: Release
    source: str
    reason: str


def stated(algorithm: "Algorithm", rounds: int, population: Population) -> list[Stated]:
    """The paper's own reading, where an algorithm is run as published."""
    if not algorithm.as_published:
        return []
    found = []
    joined, mechanism = algorithm.sampling.rounds_joined(population, rounds), algorithm.mechanism
    alone, noise = mechanism.own_noise(), mechanism.noise()
    if alone is not None and isinstance(mechanism, LocalNoise):
        event = Repeated(count=joined, event=alone)
        release = Release(unit="client", relation="add_or_remove", view="server", event=event)
        found.append(Stated(release, "as paper 003 counts", HALF))
    if noise is not None and breaks_the_sum(algorithm):
        rate = algorithm.sampling.expected_cohort(population) / population.clients
        event = Repeated(count=joined, event=PoissonSampled(sampling_rate=rate, event=noise))
        release = Release(unit="client", relation="add_or_remove", view="public", event=event)
        found.append(Stated(release, "as paper 004 counts", str(algorithm.sparsifier.unsound)))
    return found
