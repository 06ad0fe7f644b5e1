"""Attack one round of an algorithm: search neighbours, play the round on both, and compare with what is claimed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.per_client import client_fields
from discreet.algorithms.population import Population
from discreet.audit.round_tester.claimed_curve import ClaimedCurve
from discreet.audit.round_tester.neighbour_search import NeighbourSearch
from discreet.audit.round_tester.neighbours import UnitRows
from discreet.audit.round_tester.repetition_player import Player, RepetitionPlayer, Sight
from discreet.audit.round_tester.round_test import RoundTest
from discreet.audit.round_tester.toy_task import ToyTask, default_task
from discreet.audit.round_tester.violation_test import run_tests
from discreet.errors import InvalidInput
from discreet.params import count_values
from discreet.privacy.events import Event
from discreet.privacy.groups import person_event
from discreet.privacy.release import Person, Release, Unit, View, parse_view
from discreet.privacy.wording import unit_name
from discreet.randomness.streams import RunKey

FALSE_ALARM = 1e-6
CLIENTS = (4, 8, 16, 32, 64, 128, 256)  # the first number that the algorithm takes is played
HELD = 2  # examples of a client
OPEN_NOISE = 1.0  # the noise multiplier where none is chosen
FEWEST_REPETITIONS = 100


@dataclass(frozen=True)
class Effort:
    """How much is tried.

    Attributes:
        repetitions: Rounds on each data set in the final test of a pair.
        candidates: Pairs of neighbours in the first generation of the search.
        quick_repetitions: Rounds on each data set of such a pair.
        generations: How often the best pairs are changed, with twice the repetitions each time.
        finalists: Pairs in the final test.
    """

    repetitions: int = 100_000
    candidates: int = 64
    quick_repetitions: int = 2000
    generations: int = 2
    finalists: int = 2

    def __post_init__(self) -> None:
        for name in ("repetitions", "quick_repetitions"):
            if getattr(self, name) < FEWEST_REPETITIONS:
                raise InvalidInput(
                    f"{name} must be at least {FEWEST_REPETITIONS}, and got {getattr(self, name)}.",
                    fix="Only many repetitions tell neighbours apart: 100,000 are usual.",
                )


DEFAULT_EFFORT = Effort()


@dataclass
class Keys:
    """Fresh keys: from the operating system, or from a seed for tests that must repeat."""

    seed: int | None = None
    used: int = field(default=0, init=False)

    def new(self) -> RunKey:
        """Return a key that was not used before."""
        self.used += 1
        return RunKey.generate() if self.seed is None else RunKey.from_seed(self.seed * 1_000_003 + self.used)


def attack_round(
    algorithm: Algorithm,
    *,
    population: Population | None = None,
    task: ToyTask | None = None,
    claims: Sequence[Release] | None = None,
    unit: Unit | None = None,
    view: View | None = None,
    delta: float = 1e-5,
    effort: Effort = DEFAULT_EFFORT,
    round: int = 0,
    colluding: int | None = None,
    dropouts: int | None = None,
    seed: int | None = None,
    play_with: Callable[[RepetitionPlayer], Player] | None = None,
) -> list[RoundTest]:
    """Attack one round of an algorithm, and compare what is measured with what is certified.

    The round is played on a toy task, through the algorithm's own `client_step` and `server_step`. Neighbouring data
    sets are searched for, and those that are told apart best are played `effort.repetitions` times each. Observers see
    what the claims' views see, and know the uploads of the clients that are assumed to collude; as many clients drop
    out as the noise was sized for.

    Guarantee: if all claims hold, any result says `violated`, or has a `lower_bound` above the true ε, with a
    probability of at most 1e-6. A claim that is not contradicted is not proved.

    Args:
        algorithm: The algorithm, ours or with parts of a user's own; noise that is open is set to a multiplier of 1.
        population: Public client sizes. None: as few clients as the algorithm takes, four at least.
        task: The toy task. None: one that the algorithm's training takes.
        claims: The releases as they are claimed. None: as the algorithm certifies them.
        unit: Test claims about this unit only. A person is priced from the claims about one example.
        view: Test claims against this view only. None: against every view.
        delta: The δ at which the claimed and the measured ε are stated.
        effort: How much is tried.
        round: Number of the round.
        colluding: Clients whose uploads the observer of a sum knows. None: as many as the noise was sized for.
        dropouts: Clients that deliver nothing. None: as many as the noise was sized for.
        seed: Seed of all randomness. None: fresh from the operating system.
        play_with: Returns what plays the final test instead of the fast player, such as a real engine.

    Returns:
        One result for each claim.

    Raises:
        InvalidInput: Nothing is claimed, or the task has no blank example.

    Example:
        >>> from discreet import pfl
        >>> algorithm = pfl(learning_rate=1.0, clip_norm=1.0, batch_size=2, local_steps=1, noise_multiplier=2.0)
        >>> few = Effort(repetitions=4000, candidates=4, quick_repetitions=500)
        >>> [result.violated for result in attack_round(algorithm, effort=few, seed=1)]
        [False]
    """
    task = default_task(algorithm) if task is None else task
    task.check_blank()
    noisy, dimension = algorithm.with_noise(OPEN_NOISE), count_values(task.params)
    population = smallest_population(noisy, dimension) if population is None else population
    fitted = noisy.for_population(population, dimension)
    releases = fitted.releases(population, round) if claims is None else claims
    claimed = [
        _Claim(*priced, release)
        for release in releases
        if parse_view(view) in (None, release.view)
        for priced in _price(release, unit)
    ]
    if not claimed:
        raise _nothing_to_test(releases, unit, view)
    shares = fitted.mechanism.integer_shares
    planned = (0, 0) if shares is None else (shares.colluding, shares.dropouts)
    attack = _Attack(
        fitted,
        population,
        task,
        delta,
        effort,
        round,
        colluding=planned[0] if colluding is None else colluding,
        dropouts=planned[1] if dropouts is None else dropouts,
        keys=Keys(seed),
        error=FALSE_ALARM / len(claimed),
        play_with=play_with,
    )
    return [attack.test(claim) for claim in claimed]


def _nothing_to_test(releases: Sequence[Release], unit: Unit | None, view: View | None) -> InvalidInput:
    """Return the error that names what was asked for, and what could be tested instead."""
    asked = "" if unit is None else f" for one {unit_name(unit)}"
    asked += "" if view is None else f" against the {view}"
    problem = f"An attack needs a claim to test, and a round of this algorithm certifies nothing{asked}."
    if not releases:
        return InvalidInput(problem, fix="Give it privacy first.")
    known = dict.fromkeys(f"{unit_name(release.unit)} against {release.view}" for release in releases)
    return InvalidInput(problem, fix=f"There is: {', '.join(known)}.")


def smallest_population(algorithm: Algorithm, dimension: int) -> Population:
    """Return the fewest clients that the algorithm takes, each with a few examples.

    Raises:
        InvalidInput: It takes none of the numbers that are tried.
    """
    values = [getattr(part, name) for part in (algorithm.trainer, algorithm.mechanism) for name in client_fields(part)]
    numbers = CLIENTS if not values else (len(values[0]),)
    for clients in numbers:
        population = Population(examples=(HELD,) * clients)
        try:
            algorithm.for_population(population, dimension)
        except InvalidInput:
            if clients == numbers[-1]:
                raise
        else:
            return population
    raise AssertionError("the last number either fits or raises")


class _Claim(NamedTuple):
    unit: Unit
    event: Event
    release: Release


def _price(release: Release, unit: Unit | None) -> Iterator[tuple[Unit, Event]]:
    """Yield the unit and its event, if the release says something about it."""
    if isinstance(unit, Person) and release.unit == "example":
        yield unit, person_event(release.event, unit, separate=release.separate)
    elif unit is None or unit == release.unit:
        yield release.unit, release.event


@dataclass(frozen=True)
class _Attack:
    algorithm: Algorithm
    population: Population
    task: ToyTask
    delta: float
    effort: Effort
    round: int
    colluding: int
    dropouts: int
    keys: Keys
    error: float
    play_with: Callable[[RepetitionPlayer], Player] | None

    def test(self, claim: _Claim) -> RoundTest:
        started, release, effort = time.perf_counter(), claim.release, self.effort
        curve = ClaimedCurve.from_event(claim.event, release.relation, self.delta)
        fast = self._player(release)
        rows = UnitRows(claim.unit, release.relation, self.population, first=self._cohort[0])
        chance = random.Random(self.keys.seed)  # nosec B311 # a search for neighbours, which must repeat
        search = NeighbourSearch(
            self.task,
            fast,
            rows,
            curve,
            self.keys.new,
            chance,
            effort.candidates,
            effort.quick_repetitions,
            effort.generations,
        )
        player = fast if self.play_with is None else self.play_with(fast)
        tested = []
        for pair in search.find(effort.finalists):
            first, second = (
                player.play(data, effort.repetitions, self.keys.new()).cpu().numpy()
                for data in (pair.first(self.task, rows), pair.second(self.task, rows))
            )
            tested += [(test, pair) for test in run_tests(first, second, curve, self.error / effort.finalists)]
        worst, pair = max(tested, key=lambda entry: (entry[0].excess > 0, entry[0].epsilon))
        return RoundTest(
            unit=claim.unit,
            relation=release.relation,
            view=release.view,
            sees=fast.sees,
            claimed_epsilon=curve.epsilon,
            lower_bound=max(test.epsilon for test, _ in tested),
            delta=self.delta,
            claimed_advantage=curve.advantage,
            advantage=max(test.advantage for test, _ in tested),
            violated=any(test.excess > 0 for test, _ in tested),
            confidence=1 - FALSE_ALARM,
            neighbours=pair,
            decided_by=worst.chosen.score.name,
            repetitions=effort.repetitions,
            seconds=time.perf_counter() - started,
        )

    @property
    def _cohort(self) -> tuple[int, ...]:
        """Clients that may join the round: the unit is in the first, the last ones collude, those before drop out."""
        public = self.algorithm.sampling.public_cohort(self.population, self.round)
        return public or tuple(range(self.population.clients))

    def _player(self, release: Release) -> RepetitionPlayer:
        """Return a player whose observer sees what the release's view sees, and knows what colluding clients know."""
        # another client that looks on counts as one of the colluding
        known = max(self.colluding, 1) if release.view == "client" else self.colluding
        last = len(self._cohort) - known
        return RepetitionPlayer(
            self.algorithm,
            self.task.loss,
            self.task.params,
            sees=sight(self.algorithm, release),
            known=() if release.separate else self._cohort[last:],
            dropouts=self._cohort[max(0, last - self.dropouts) : last],
            round=self.round,
        )


def sight(algorithm: Algorithm, release: Release) -> Sight:
    """Return what the release's view sees."""
    if release.separate:
        return "uploads"
    return "sum" if release.view == "server" or algorithm.aggregation.is_secure else "model"
