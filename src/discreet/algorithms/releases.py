"""What rounds of an algorithm reveal, of whom, and to whom.

Of an example it is always what stood in its place, the example or a blank (zero-out), and never that it was there: how
many examples a client holds is public, and divides its sums.
"""

from typing import TYPE_CHECKING

from discreet.algorithms import soundness
from discreet.algorithms.population import Population
from discreet.privacy.events import Event, Noise, Repeated
from discreet.privacy.release import Release, View

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def list_releases(
    algorithm: "Algorithm",
    population: Population,
    rounds: range,
    cohort: tuple[int, ...] | None,
    contributors: int | None = None,
) -> list[Release]:
    """All that these rounds release, of those in the cohort; None: of everyone alike."""
    found = []
    for clients, kind in algorithm.client_groups(population):
        payers = clients if cohort is None else cohort if clients is None else _intersection(clients, cohort)
        if payers != ():
            found += _upload_releases(kind, population, rounds, payers)
    return found + _sum_releases(algorithm, population, rounds, cohort, contributors)


def _upload_releases(
    algorithm: "Algorithm", population: Population, rounds: range, payers: tuple[int, ...] | None
) -> list[Release]:
    """What whoever sees the uploads of clients who are alike learns of each by itself."""
    found = []
    local, alone = (
        algorithm.trainer.training_event(population, rounds),
        algorithm.mechanism.upload_noise(algorithm.grid(population)),
    )
    if local is not None:
        # An example that lies in m clients is touched by each of them.
        event: Event = Repeated(count=population.max_multiplicity, event=local)
        found.append(Release(unit="example", relation="zero_out", view="server", event=event, clients=payers))
    if alone is not None and algorithm.mechanism.unit == "example":
        event = _example_event(algorithm, alone, population, rounds)
        found.append(Release(unit="example", relation="zero_out", view="server", event=event, clients=payers))
    elif alone is not None:
        # Whoever sees an upload by itself knows whose it is, and any other update might have stood there.
        event = _repeat(alone, len(rounds))
        found.append(Release(unit="client", relation="replace", view="server", event=event, clients=payers))
    return found


def _sum_releases(
    algorithm: "Algorithm",
    population: Population,
    rounds: range,
    cohort: tuple[int, ...] | None,
    contributors: int | None,
) -> list[Release]:
    """What whoever sees only sums, or the models made of them, learns; a client knows its own share of noise."""
    if soundness.has_thinned_noise(algorithm):
        return []
    mechanism, grid = algorithm.mechanism, algorithm.grid(population)
    lookers: tuple[tuple[View, int], ...] = (
        ("server" if algorithm.aggregation.is_secure else "public", 0),
        ("client", 1),
    )
    found = []
    for view, known in lookers:
        noise = mechanism.sum_noise(grid, known, contributors)
        if known and not algorithm.aggregation.is_secure and noise == mechanism.sum_noise(grid, 0, contributors):
            continue  # nobody brings a share: whoever takes part knows no more than the public
        if noise is not None and mechanism.unit == "example":
            event = _example_event(algorithm, noise, population, rounds)
            found.append(Release(unit="example", relation="zero_out", view=view, event=event, clients=cohort))
        elif noise is not None:
            found.append(_client_release(algorithm, noise, view, population, rounds, cohort))
    return found


def _client_release(
    algorithm: "Algorithm",
    noise: Noise,
    view: View,
    population: Population,
    rounds: range,
    cohort: tuple[int, ...] | None,
) -> Release:
    relation, seen = algorithm.sampling.relation, algorithm.sampling.amplify(noise, population)
    if view != "public":  # whoever runs the sum, or takes part in it, sees who joins
        seen = noise
    if relation == "add_or_remove" and (view != "public" or not _has_constant_noise(algorithm, population)):
        # Whoever joins brings noise along, which shows: then only what it sends is hidden, not that it came.
        relation, seen = "zero_out", noise
    payers = cohort if seen == noise else None
    return Release(unit="client", relation=relation, view=view, event=_repeat(seen, len(rounds)), clients=payers)


def _has_constant_noise(algorithm: "Algorithm", population: Population) -> bool:
    """Whether the sum has the same noise however many join, and also with one fewer than ever."""
    fewest, most = algorithm.sampling.cohort_bounds(population)
    return algorithm.mechanism.noise_deviation(range(fewest - 1)) == algorithm.mechanism.noise_deviation(range(most))


def _example_event(algorithm: "Algorithm", noise: Noise, population: Population, rounds: range) -> Event:
    event = algorithm.trainer.example_event(noise, population, rounds)
    assert event is not None  # an algorithm whose training bounds no example is refused when it is built
    return event


def _intersection(clients: tuple[int, ...], cohort: tuple[int, ...]) -> tuple[int, ...]:
    joined = set(cohort)
    return tuple(client for client in clients if client in joined)


def _repeat(event: Event, rounds: int) -> Event:
    return event if rounds == 1 else Repeated(count=rounds, event=event)
