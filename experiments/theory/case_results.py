"""What was measured in each case over its seeds, beside what Theorem 3 says of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from discreet.experiment.comparison.comparison_results import Result
from discreet.planning.theory import fu_best_iterations
from experiments.common.means import Mean, is_clear, mean, paired_difference
from experiments.theory.cases import SEEDS, Case


@dataclass(frozen=True)
class CaseResults:
    """All results by their keys; every case of the page has every seed."""

    found: Mapping[str, Result]

    def results(self, case: Case) -> list[Result]:
        return [self.found[case.key(seed)] for seed in range(SEEDS)]

    def errors(self, case: Case) -> dict[int, float]:
        """‖θ_T − θ*‖² by seed."""
        return {seed: each["error"] for seed, each in enumerate(self.results(case))}

    def error(self, case: Case) -> Mean:
        return mean(list(self.errors(case).values()))

    def slack(self, case: Case) -> float:
        """How many times the measured mean Theorem 3's bound is: below 1 it would be no bound."""
        return case.bound.total / self.error(case).value

    def steepest(self, case: Case) -> float:
        """At least the least G that Assumption 3 holds with: the root of the mean square of each run's largest."""
        return math.sqrt(mean([each["steepest"] ** 2 for each in self.results(case)]).value)

    def cut(self, case: Case) -> float:
        """The share of gradients that the clip cut where a round began."""
        return mean([each["cut"] for each in self.results(case)]).value

    def meets_assumptions(self, case: Case) -> bool:
        """Whether gradients were as Theorem 3 takes them: of norm at most G, and never cut."""
        return self.steepest(case) <= case.setting.constants.gradient_bound and self.cut(case) == 0


@dataclass(frozen=True)
class Sweep:
    """One sweep over E: what Theorem 3 would choose, and what was best."""

    measured: CaseResults
    cases: Sequence[Case]

    @property
    def first(self) -> Case:
        return self.cases[0]

    @property
    def best(self) -> Case:
        return min(self.cases, key=lambda case: self.measured.error(case).value)

    @property
    def at_the_end(self) -> bool:
        """Whether the best is the largest E that whole turns allow, so that a larger one might be better still."""
        return self.best == self.cases[-1]

    @property
    def ratio(self) -> float:
        """The measured best E over the bound's; at least that much where the best is at the end."""
        return self.best.local / self.bound_choice.local

    @property
    def bound_choice(self) -> Case:
        """By the whole bound's minimum."""
        at = fu_best_iterations.best_local(self.first.setting, self.first.total).value
        return next(case for case in self.cases if case.local == at)

    @property
    def close(self) -> list[int]:
        """Each E that is not clearly worse than the best, by a two-sided t test at 5 %, seed by seed."""
        least = self.measured.errors(self.best)
        return [case.local for case in self.cases if not is_clear(paired_difference(least, self.measured.errors(case)))]

    @property
    def printed_local(self) -> float:
        """E by Theorem 5 as it is printed."""
        return fu_best_iterations.printed_best_local(self.first.setting, self.first.total).value

    @property
    def advised_case(self) -> Case:
        """That, or the nearest E that whole turns allow."""
        return min(self.cases, key=lambda case: abs(math.log(case.local / self.printed_local)))

    @property
    def is_cut(self) -> bool:
        """Whether Theorem 5's E is more than whole turns allow."""
        return self.printed_local > self.cases[-1].local

    def price(self, followed: Case) -> float:
        """How many times the least error it costs to choose this E."""
        return self.measured.error(followed).value / self.measured.error(self.best).value


@dataclass(frozen=True)
class Longer:
    """One sweep over T at one E."""

    measured: CaseResults
    cases: Sequence[Case]

    @property
    def best(self) -> Case:
        return min(self.cases, key=lambda case: self.measured.error(case).value)

    @property
    def bound_choice(self) -> Case:
        """Where the bound is least, of the T that were run."""
        return min(self.cases, key=lambda case: case.bound.total)

    @property
    def bound_total(self) -> float:
        """Where the bound is least, of all T that whole turns allow."""
        return fu_best_iterations.best_total(self.cases[0].setting, self.cases[0].local).value

    @property
    def rise(self) -> Mean:
        """From the best T to the longest, as the logarithm of how many times."""
        logs = [{seed: math.log(each) for seed, each in self.measured.errors(case).items()} for case in self.ends]
        return paired_difference(*logs)

    @property
    def ends(self) -> tuple[Case, Case]:
        return self.best, self.cases[-1]
