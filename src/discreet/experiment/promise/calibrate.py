"""From the promise to the noise: `calibrate_noise` is the one way.

1. `Algorithm.for_population` fills in the numbers that follow from the public client sizes.
2. `client_groups` (promise.py) groups the clients for whom the same is promised and done.
3. `_calibrate_moments` finds the noise of the sum by which numbers are standardised, if any are.
4. `promise_event` (promise.py) composes the planned rounds into the one event that the promise is about.
5. `privacy.calibration` finds the least noise with which that event costs at most the promised ε; or, where the noise
   is given, `affordable_rounds` (run_spending.py) checks that the promise pays for every round.
"""

from collections.abc import Sequence
from dataclasses import replace

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.standardisation import is_worthwhile
from discreet.errors import BudgetRefused, InvalidInput
from discreet.experiment.promise.promise import ClientGroup, Privacy, PromiseEvent, client_groups, promise_event
from discreet.experiment.promise.run_spending import affordable_rounds, group_epsilon
from discreet.privacy import calibration
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.release import Unit, View, describe_clients
from discreet.privacy.wording import compact

MOMENTS_SHARE = 0.25  # of the promised ε, that moments may spend alone: noise adds up by squares, so training loses 4 %


def calibrate_noise(
    algorithm: Algorithm,
    privacy: Privacy | None,
    rounds: int,
    population: Population,
    dimension: int | None = None,
    near: float = 1.0,
) -> Algorithm:
    """Return the algorithm with all its numbers, the noise among them.

    Noise that is open is computed from the promise. Noise that is given is checked against the promise.

    Args:
        algorithm: The algorithm as the user wrote it.
        privacy: The promise. None for a run without privacy.
        rounds: Number of rounds that the promise must cover, beside the sum of moments of a standardisation.
        population: The public client sizes.
        dimension: Number of trained parameters, on which integer noise depends.
        near: A guess of the open noise; a good one saves time.

    Raises:
        InvalidInput: The noise is open and nothing is promised, or the promise says nothing about the open noise.
        BudgetRefused: The noise that is given spends more than was promised.
    """
    algorithm = _calibrate_moments(algorithm.for_population(population, dimension), privacy, rounds, population)
    if privacy is None:
        if has_open_noise(algorithm):
            raise InvalidInput(
                "The algorithm's noise is open, and nothing is promised that it could be computed from.",
                fix="Promise something, by a [privacy] table with unit, against, epsilon and delta, or in Python by "
                "privacy=discreet.Privacy(...); or give noise_multiplier.",
            )
        return algorithm
    groups = client_groups(algorithm, privacy, population)
    if has_open_noise(algorithm):
        noises = [_least_noise(group, rounds, population, near) for group in groups]
        return _set_noise(algorithm, groups, noises, population).for_population(population)
    _check_given_noise(groups, rounds, population)
    return algorithm


def has_open_noise(algorithm: Algorithm) -> bool:
    """Whether some noise is still to be computed from the promise."""
    return algorithm.with_noise(1.0) != algorithm


def _calibrate_moments(algorithm: Algorithm, privacy: Privacy | None, rounds: int, population: Population) -> Algorithm:
    """Return the algorithm with the noise of its moments, or without a standardisation where it can't be had.

    It can't be had if the parts of the algorithm can't sum moments or protect less in that sum, if nothing is promised
    from which the noise could be computed, if that noise would hide the spreads, or if noise that is given for training
    leaves nothing for it. No data is read.
    """
    wanted, without = algorithm.standardisation, replace(algorithm, standardisation=None)
    moments = algorithm.for_moments(population)
    if wanted is None or moments is None:
        return without
    if has_open_noise(moments):
        if privacy is None:
            return without
        smallest = min(privacy.epsilon) if isinstance(privacy.epsilon, tuple) else privacy.epsilon
        group = ClientGroup(None, moments, replace(privacy, epsilon=MOMENTS_SHARE * smallest))
        try:
            noise = _least_noise(group, 1, population)
        except InvalidInput:  # the moments say nothing about what is promised
            return without
        algorithm = replace(algorithm, standardisation=replace(wanted, noise_multiplier=noise))
    if not is_worthwhile(algorithm, population) or _promised_kinds(algorithm, population) != _promised_kinds(
        without, population
    ):
        return without
    if privacy is not None and not has_open_noise(algorithm):
        groups = client_groups(algorithm, privacy, population)
        if any(affordable_rounds(group, rounds, population) < rounds for group in groups):
            return without
    return algorithm


def _promised_kinds(algorithm: Algorithm, population: Population) -> set[tuple[Unit, View]]:
    """Return about which units something is promised in the first round, and against whom, once there is noise."""
    noisy = algorithm.with_noise(1.0).for_population(population)
    return {(release.unit, release.view) for release in noisy.releases(population, 0)}


def _least_noise(group: ClientGroup, rounds: int, population: Population, near: float = 1.0) -> float:
    """Return the least noise that keeps the promise for these clients."""
    privacy = group.privacy
    assert privacy is not None

    def event_at(noise: float) -> PromiseEvent:
        return promise_event(privacy, group.algorithm.with_noise(noise), rounds, population)

    first = event_at(1.0)
    if event_at(2.0).event == first.event:
        raise InvalidInput(
            "The promise is kept, or not, by noise that is given, and says nothing of the noise that is open.",
            fix="Give every noise_multiplier, or leave the one open that the promise is about.",
        )
    target = EpsilonTarget(epsilon=privacy.largest_epsilon, delta=privacy.delta)
    return calibration.calibrate_noise(lambda noise: event_at(noise).event, target, first.relation, near)


def _set_noise(
    algorithm: Algorithm, groups: Sequence[ClientGroup], noises: Sequence[float], population: Population
) -> Algorithm:
    """Return the algorithm with the noise of each group: one number for all clients, or one for each."""
    if len(groups) == 1:
        return algorithm.with_noise(noises[0])
    own = {client: noise for group, noise in zip(groups, noises, strict=True) for client in group.clients or ()}
    return algorithm.with_noise(tuple(own[client] for client in range(population.clients)))


def _check_given_noise(groups: Sequence[ClientGroup], rounds: int, population: Population) -> None:
    """Refuse noise with which some clients can't pay for one round, or no client can pay for all rounds."""
    counts = [affordable_rounds(group, rounds, population) for group in groups]
    for count in (min(counts), max(counts)):
        if count == 0 or max(counts) < rounds:
            raise _unaffordable(groups[counts.index(count)], count, rounds, population)


def _unaffordable(group: ClientGroup, affordable: int, rounds: int, population: Population) -> BudgetRefused:
    assert group.privacy is not None
    epsilon = group_epsilon(group, rounds, population) or 0.0
    whose = "that is given" if group.clients is None else f"given for {describe_clients(group.clients)}"
    return BudgetRefused(
        f"The noise {whose} spends epsilon {compact(epsilon, 4)} over {rounds} rounds at delta "
        f"{compact(group.privacy.delta)}, and {compact(group.privacy.largest_epsilon)} is promised, which affords "
        f"{affordable} rounds.",
        fix="Leave noise_multiplier out, and it is computed from the promise; or promise more.",
    )
