"""What rounds of an algorithm reveal, about which unit, and to whom.

For an example the relation is always zero-out: the example or a blank in its place. How many examples a client holds is
public, because that number divides its sums.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from discreet.algorithms import soundness
from discreet.algorithms.declarations import undeclared_parts
from discreet.algorithms.population import Population
from discreet.privacy.events import Composed, Event, Noise, Repeated, repeat_event
from discreet.privacy.release import Relation, Release, View

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm

RELATIONS: tuple[Relation, ...] = ("add_or_remove", "zero_out", "replace")  # what holds for one holds for the next


def list_releases(
    algorithm: "Algorithm",
    population: Population,
    rounds: range,
    cohort: tuple[int, ...] | None,
    contributors: int | None = None,
) -> list[Release]:
    """List all releases of these rounds: none if a user's own part declares nothing of what it releases.

    The first round includes the sum of moments before it, if inputs are standardised.

    Args:
        algorithm: The algorithm that runs.
        population: Public client sizes.
        rounds: The rounds.
        cohort: The clients that the releases concern. None: all.
        contributors: Clients that contributed a noise share. None assumes the planned minimum.
    """
    if undeclared_parts(algorithm):
        return []
    uploads = []
    for clients, group_algorithm in algorithm.client_groups(population):
        payers = clients if cohort is None else cohort if clients is None else _intersection(clients, cohort)
        if payers != ():
            uploads += _upload_releases(group_algorithm, population, rounds, payers)
    releases = uploads + _sum_releases(algorithm, population, rounds, cohort, contributors)
    if algorithm.standardisation is None or rounds.start > 0:
        return releases
    moments = algorithm.for_moments(population)
    before = [] if moments is None else list_releases(moments, population, range(1), None)
    return [joined for release in releases if (joined := _join_moments(release, before)) is not None]


def _join_moments(release: Release, moments: list[Release]) -> Release | None:
    """Compose a release of the first round with that of the moments; None if the moments promise nothing like it.

    A bound on the norm of what a unit adds prices its replacement too, so relations may be stronger in the moments.
    """
    weaker = {"add_or_remove": RELATIONS, "zero_out": RELATIONS[1:], "replace": RELATIONS[2:]}
    for before in moments:
        if (before.unit, before.view) == (release.unit, release.view) and release.relation in weaker[before.relation]:
            # if one of both is a sum, both count as sums, which costs no less
            together = release.separate and before.separate
            return replace(release, event=Composed(events=(before.event, release.event)), separate=together)
    return None


def _upload_releases(
    algorithm: "Algorithm", population: Population, rounds: range, payers: tuple[int, ...] | None
) -> list[Release]:
    """List what the uploads of clients with equal settings reveal about each of them."""
    releases = []
    upload = partial(Release, view="server", clients=payers, separate=True)
    exposure = algorithm.trainer.for_population(population).exposure(rounds.start)
    local, alone = exposure.own_event(rounds), algorithm.mechanism.upload_noise(algorithm.grid(population))
    if local is not None:
        # An example that m clients hold is used by each of them.
        event: Event = Repeated(count=population.max_multiplicity, event=local)
        releases.append(upload(unit="example", relation="zero_out", event=event))
    if alone is not None and algorithm.mechanism.unit == "example":
        event = exposure.example_event(alone, rounds)
        releases.append(upload(unit="example", relation="zero_out", event=event))
    elif alone is not None:
        # The server knows whose upload it is, so what is hidden is which update it holds: the relation is replace.
        releases.append(upload(unit="client", relation="replace", event=repeat_event(alone, len(rounds))))
    return releases


def _sum_releases(
    algorithm: "Algorithm",
    population: Population,
    rounds: range,
    cohort: tuple[int, ...] | None,
    contributors: int | None,
) -> list[Release]:
    """List what sums, and the models made from them, reveal. Another client knows its own noise share."""
    if soundness.has_thinned_noise(algorithm):
        return []
    mechanism, grid = algorithm.mechanism, algorithm.grid(population)
    observers: tuple[tuple[View, int], ...] = (
        ("server" if algorithm.aggregation.is_secure else "public", 0),
        ("client", 1),
    )
    releases = []
    for view, known in observers:
        noise = mechanism.sum_noise(grid, known, contributors)
        if known and not algorithm.aggregation.is_secure and noise == mechanism.sum_noise(grid, 0, contributors):
            continue  # clients bring no shares: another client knows no more than the public
        if noise is not None and mechanism.unit == "example":
            event = algorithm.trainer.for_population(population).exposure(rounds.start).example_event(noise, rounds)
            releases.append(Release(unit="example", relation="zero_out", view=view, event=event, clients=cohort))
        elif noise is not None:
            releases.append(_client_release(algorithm, noise, view, population, rounds, cohort))
    return releases


def _client_release(
    algorithm: "Algorithm",
    noise: Noise,
    view: View,
    population: Population,
    rounds: range,
    cohort: tuple[int, ...] | None,
) -> Release:
    relation: Relation = algorithm.sampling.relation
    seen = algorithm.sampling.amplify(noise, population)
    if view != "public":  # the server, and every member of a sum, sees who joins
        seen = noise
    if relation == "add_or_remove" and (view != "public" or not _has_constant_noise(algorithm, population)):
        # A joining client brings noise, which shows that it joined: only what it sends is hidden.
        relation, seen = "zero_out", noise
    payers = cohort if seen == noise else None
    return Release(unit="client", relation=relation, view=view, event=repeat_event(seen, len(rounds)), clients=payers)


def _has_constant_noise(algorithm: "Algorithm", population: Population) -> bool:
    """Return whether the sum has the same noise however many clients join, and with one fewer than the fewest."""
    fewest, most = algorithm.sampling.cohort_bounds(population)
    least, greatest = (algorithm.mechanism.noise_deviation(range(number)) for number in (fewest - 1, most))
    return least is not None and least == greatest


def _intersection(clients: tuple[int, ...], cohort: tuple[int, ...]) -> tuple[int, ...]:
    joined = set(cohort)
    return tuple(client for client in clients if client in joined)
