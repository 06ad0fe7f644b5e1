"""The odds that sums of integers fail, in lines of the card: over the rounds of a run, or all trials of a search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from discreet.algorithms.failure_odds import FailureOdds, find_failure_odds
from discreet.experiment.terms import Terms
from discreet.privacy.card_lines import Line
from discreet.privacy.wording import compact, round_up
from discreet.secure_sums.secagg.degree import Degree
from discreet.words import fill


@dataclass(frozen=True)
class SumOdds:
    """How likely the sums of one run fail.

    Attributes:
        rounds: Number of rounds.
        sums: Number of rounds that the odds count: the sum that standardises columns counts for at most two.
        graph: The random graph on which clients share masks. None if every client shares masks with every other.
        failures: The odds of a wrap-around and of inexact draws. None for sums of real numbers.
    """

    rounds: int
    sums: int
    graph: Degree | None
    failures: FailureOdds | None

    @property
    def graph_chance(self) -> float:
        """The probability that in some round the graph doesn't hide a client: each may have a session of its own."""
        return (
            0.0 if self.graph is None or self.graph.assumptions is None else self.sums * self.graph.assumptions.chance
        )


@dataclass(frozen=True)
class TrialNumber:
    """How many trials a search has: exactly, or on average if their number is secret."""

    trials: float
    is_secret: bool


def find_sum_odds(terms: Terms, counted: int) -> SumOdds:
    """Return the odds over the first `counted` rounds of a run."""
    sums = counted if terms.algorithm.standardisation is None else counted + 2
    graph = None
    if terms.algorithm.aggregation.is_secure and terms.algorithm.mechanism.integer_shares is not None:
        degree = terms.settings.engine.mask_degree(terms.algorithm, terms.population)
        graph = None if degree is None or degree.assumptions is None else degree
    return SumOdds(counted, sums, graph, find_failure_odds(terms.algorithm, terms.population, sums))


def run_odds(terms: Terms, counted: int) -> list[Line]:
    """Describe the odds over the first `counted` rounds of a run. Empty for sums of real numbers."""
    return [Line(sentence, "method") for sentence in _describe_run(find_sum_odds(terms, counted))]


def search_odds(trials: Sequence[Terms], number: TrialNumber) -> list[Line]:
    """Describe the odds over all trials of a search. Empty if no trial sums integers.

    Guarantee: the number of trials times the odds p of the worst of `trials` bounds the probability that any trial
    fails, by the union bound. For a secret number K its mean counts: Σ_i P[K ≥ i]·p = E[K]·p, since K is drawn before
    the trials and independently of them. So much may come to δ: given that no trial fails, K has the same kind of
    distribution with a smaller mean (1−γ becomes (1−γ)(1−p), a Poisson mean λ becomes λ(1−p)), which costs no more.

    Args:
        trials: All trials that were played or, if which these were is secret, that could have been.
        number: How many trials there are.
    """
    found = [find_sum_odds(terms, terms.rounds) for terms in trials]
    return [Line(sentence, "method") for sentence in _describe_search(found, number)]


def _describe_run(odds: SumOdds) -> Iterator[str]:
    rounds = f"{odds.rounds:,}"
    if odds.graph is not None:
        chance = round_up(odds.graph_chance, 2)
        yield fill("assumes.mask_graph", rounds=rounds, probability=chance, **_graph_words(odds.graph))
    if odds.failures is not None:
        chance = round_up(odds.failures.wraparound, 2)
        words = {"rounds": rounds, "bits": str(odds.failures.ring_bits), "probability": chance}
        if odds.sums > odds.rounds:
            is_one = odds.rounds == 1
            yield fill(
                "assumes.wraparound_standardised_one_round" if is_one else "assumes.wraparound_standardised", **words
            )
        else:
            yield fill("assumes.wraparound_one_round" if odds.rounds == 1 else "assumes.wraparound", **words)
        if odds.failures.inexact_draws is not None:
            yield fill("assumes.poisson_draws", probability=round_up(odds.failures.inexact_draws, 2))


def _describe_search(found: Sequence[SumOdds], number: TrialNumber) -> Iterator[str]:
    group, trials = ("odds_of_secret_trials" if number.is_secret else "odds_of_trials"), compact(number.trials)
    sparse = max(found, key=lambda odds: odds.graph_chance)
    if sparse.graph is not None:
        chance = _all_trials(number, [sparse.graph_chance])
        words = _graph_words(sparse.graph)
        yield fill(f"assumes.{group}.mask_graph", trials=trials, probability=chance, **words)
    failures = [odds.failures for odds in found if odds.failures is not None]
    if failures:
        chance = _all_trials(number, [each.wraparound for each in failures])
        yield fill(f"assumes.{group}.wraparound", trials=trials, probability=chance)
    if draws := [each.inexact_draws for each in failures if each.inexact_draws is not None]:
        chance = _all_trials(number, draws)
        yield fill(f"assumes.{group}.poisson_draws", trials=trials, probability=chance)


def _all_trials(number: TrialNumber, odds: Sequence[float]) -> str:
    return round_up(min(1.0, number.trials * max(odds)), 2)


def _graph_words(graph: Degree) -> dict[str, str]:
    assert graph.assumptions is not None
    return {
        "neighbours": str(graph.neighbours),
        "colluding": f"{graph.assumptions.colluding:.0%}",
        "leaving": f"{graph.assumptions.leaving:.0%}",
        "bits": f"{graph.assumptions.security_bits:g}",
    }
