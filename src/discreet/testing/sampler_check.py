"""The contract of a sampler as a check: its cohorts, and whether they are drawn at the rate that is priced.

Every statistical test refuses a sound sampler with a probability of at most 1e-6: the rate of each client by an exact
binomial tail, divided by the number of clients; means and variances by 6 standard errors, where counts are large.
"""

import math

import torch
from torch import Tensor

from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Sampling
from discreet.privacy.events import GaussianNoise, PoissonSampled, SampledWithoutReplacement
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.testing.part_failure import report_errors, require
from discreet.testing.wrapped_part import wrap_part
from discreet.words import fill

DRAWS = 2000
MOST_COINS = 2**22  # clients times draws
ERRORS, FALSE_ALARM = 6.0, 1e-6
ENOUGH_COUNTS = 500  # below, a sum of coins is too skewed for 6 standard errors
NOISE = GaussianNoise(noise_multiplier=1.0)
GENERATOR = "Draw from `generator` alone, which is fresh for each round and run."


def check_sampler(sampler: Sampling, clients: int = 20) -> list[str]:
    """Check that a sampler keeps its contract: valid cohorts, drawn as `amplify` prices them.

    Args:
        sampler: The sampler, ours or a user's own.
        clients: Number of clients to draw from.

    Returns:
        What was tried and measured, in sentences.

    Raises:
        PartFailed: The sampler doesn't keep its contract. The message says what was seen.

    Example:
        >>> from discreet.algorithms.sampling import Poisson
        >>> check_sampler(Poisson(rate=0.3))[0]
        'Drew 2,000 cohorts of 20 clients: sorted, distinct, within bounds, and the same for the same generator.'
    """
    return try_sampler(wrap_part(Sampling, sampler), Population(examples=(8,) * clients))


def try_sampler(sampler: Sampling, population: Population) -> list[str]:
    """Try a sampler on these clients, in as many draws as take little time.

    Raises:
        PartFailed: The sampler doesn't keep its contract.
    """
    with report_errors("The sampler"):
        draws = max(100, min(DRAWS, MOST_COINS // population.clients))
        joined = _draw_cohorts(sampler, population, draws)
        _check_sizes(sampler, population, joined)
        _check_participation(sampler, population, joined)
        valid = fill("trial.cohorts", draws=f"{draws:,}", clients=f"{population.clients:,}")
        return [valid, _check_price(sampler, population, joined)]


def _draw_cohorts(sampler: Sampling, population: Population, draws: int) -> Tensor:
    """Return who joined each round, and refuse cohorts that are not valid or not repeatable."""
    joined = torch.zeros(draws, population.clients, dtype=torch.bool)
    repeats = 0
    for round in range(draws):
        cohort = _sample(sampler, population, round, seed=0)
        valid = cohort == sorted(set(cohort)) and all(0 <= client < population.clients for client in cohort)
        require(
            valid, f"A cohort must list clients 0 to {population.clients - 1} in ascending order, and got {cohort}."
        )
        if round < 50:
            same = cohort == _sample(sampler, population, round, seed=0)
            require(same, "The same generator gave two cohorts in one round.", GENERATOR)
            public = sampler.public_cohort(population, round)
            require(
                public is None or list(public) == cohort,
                f"`public_cohort` says {public} for round {round}, and `sample` drew {cohort}.",
            )
            repeats += cohort == _sample(sampler, population, round, seed=1)
        joined[round, cohort] = True
    amplified = sampler.amplify(NOISE, population)
    if amplified != NOISE and not bool(joined.all()):
        require(
            repeats < 50,
            "Two runs with different keys draw the same cohorts, and a draw is priced as secret.",
            GENERATOR,
        )
    return joined


def _sample(sampler: Sampling, population: Population, round: int, seed: int) -> list[int]:
    return list(sampler.sample(population, round, RunKey.from_seed(seed).generator(Purpose.SAMPLING, round)))


def _check_sizes(sampler: Sampling, population: Population, joined: Tensor) -> None:
    sizes, (fewest, most) = joined.sum(dim=1), sampler.cohort_bounds(population)
    require(
        fewest <= int(sizes.min()) and int(sizes.max()) <= most,
        f"Cohorts had {int(sizes.min())} to {int(sizes.max())} clients, and `cohort_bounds` says {fewest} to {most}.",
    )
    expected, mean, draws = sampler.expected_cohort(population), float(sizes.double().mean()), len(sizes)
    variance = max(float(sizes.double().var()), expected) if int(sizes.min()) < int(sizes.max()) else 0.0
    slack = ERRORS * math.sqrt(variance / draws) + (10 / draws if variance or fewest < most else 1e-9)
    require(
        abs(mean - expected) <= slack,
        f"A cohort has {mean:.4g} clients on average, and `expected_cohort` says {expected:.4g}.",
        "Return the expected size, which divides the sum.",
    )


def _check_participation(sampler: Sampling, population: Population, joined: Tensor) -> None:
    for rounds in (1, 3, 10, 33):
        most, declared = int(joined[:rounds].sum(dim=0).max()), sampler.rounds_joined(population, rounds)
        require(
            most <= declared,
            f"A client joined {most} of {rounds} rounds, and `rounds_joined` says at most {declared}.",
        )


def _check_price(sampler: Sampling, population: Population, joined: Tensor) -> str:
    """Refuse a draw that takes some client more often, or less independently, than `amplify` prices."""
    event, clients = sampler.amplify(NOISE, population), population.clients
    if event == NOISE:
        return fill("trial.unpriced_draw")
    if isinstance(event, PoissonSampled):
        rate = event.sampling_rate
        overlap = clients * rate**2, clients * rate**2 * (1 - rate**2)
    elif isinstance(event, SampledWithoutReplacement):
        require(
            bool((joined.sum(dim=1) == event.cohort).all()) and event.population == clients,
            f"The draw is priced as exactly {event.cohort} of {event.population} clients, and had "
            f"{int(joined.sum(dim=1).min())} to {int(joined.sum(dim=1).max())} of {clients}.",
        )
        require(
            sampler.relation == "replace", f"A draw of a fixed size hides a replaced client, not {sampler.relation}."
        )
        rate = event.sampling_rate
        spread = event.cohort * rate * (1 - rate) * (clients - event.cohort) / max(1, clients - 1)
        overlap = event.cohort * rate, spread
    else:
        require(False, f"`amplify` must return the noise itself or a sampled event of it, and got {event.kind}.")
        raise AssertionError("unreachable")
    require(event.event == NOISE, "`amplify` must return an event with the noise that it was asked for.")
    _check_rates(joined, rate)
    if isinstance(event, PoissonSampled):
        _check_spread(joined, rate)
    _check_overlap(joined, *overlap)
    return fill("trial.sampling_rate", rate=f"{rate:.4g}", largest=f"{_largest_share(joined):.4g}")


def _largest_share(joined: Tensor) -> float:
    return float(joined.double().mean(dim=0).max())


def _check_rates(joined: Tensor, rate: float) -> None:
    draws, clients = joined.shape
    counts = joined.sum(dim=0)
    client = int(counts.argmax())
    count = int(counts[client])
    require(
        rate == 1 or _binomial_tail(count, draws, rate) >= FALSE_ALARM / clients,
        f"Client {client} joined {count:,} of {draws:,} rounds, and the draw is priced at a rate of {rate:.4g}.",
        "Draw every client at the declared rate, or declare a higher one.",
    )


def _binomial_tail(count: int, draws: int, rate: float) -> float:
    """Return the probability that at least `count` of `draws` independent coins of this rate show heads."""
    log_odds = math.log(rate) - math.log1p(-rate)
    none = draws * math.log1p(-rate) + math.lgamma(draws + 1)
    return math.fsum(
        math.exp(none + heads * log_odds - math.lgamma(heads + 1) - math.lgamma(draws - heads + 1))
        for heads in range(count, draws + 1)
    )


def _check_spread(joined: Tensor, rate: float) -> None:
    """Refuse cohort sizes that vary more or less than those of independent coins."""
    draws, clients = joined.shape
    variance = clients * rate * (1 - rate)
    if draws * variance < ENOUGH_COUNTS:
        return
    measured = float(joined.sum(dim=1).double().var())
    kurtosis = 3 + (1 - 6 * rate * (1 - rate)) / variance
    allowed = ERRORS * variance * math.sqrt((kurtosis - 1) / draws)
    require(
        abs(measured - variance) <= allowed,
        f"Cohort sizes have a variance of {measured:.4g}, and independent draws at the declared rate would have "
        f"{variance:.4g}.",
        "Draw each client by a coin of its own.",
    )


def _check_overlap(joined: Tensor, mean: float, variance: float) -> None:
    """Refuse cohorts that share more or fewer clients with the cohort before than fresh draws do."""
    pairs = len(joined) // 2
    if pairs * mean < ENOUGH_COUNTS or variance == 0:
        return
    shared = float((joined[0 : 2 * pairs : 2] & joined[1 : 2 * pairs : 2]).sum(dim=1).double().mean())
    require(
        abs(shared - mean) <= ERRORS * math.sqrt(variance / pairs),
        f"Two successive cohorts share {shared:.4g} clients on average, and fresh draws would share {mean:.4g}.",
        GENERATOR,
    )
