"""The answer of `discreet account`: find the value that was left out, ask every accountant, and print the result."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.account.question import FPR, Question, SampledStep
from discreet.cli.options import parse_unit, parse_view
from discreet.cli.text_table import text_table
from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.privacy.events import (
    NOTHING,
    Event,
    Noise,
    RandomAllocation,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    TruncatedPoissonSampled,
)
from discreet.privacy.release import Person, Release, Unit
from discreet.privacy.wording import compact, describe_event, per_thousand, round_down, round_up, sentence

if TYPE_CHECKING:
    from discreet.privacy.accountant import Account
    from discreet.privacy.guarantee import Attack, Guarantee
    from discreet.privacy.second_engine import SecondOpinion


NoiseAt: TypeAlias = Callable[[float], Noise | RandomisedResponse]

SCALES: Mapping[str, Callable[[float], float]] = {
    "noise_multiplier": lambda x: x,
    "variance": lambda x: x**2,
    "rho": lambda x: x**-2,
    "random_share": lambda x: x / (1 + x),
}  # what is searched for a target is a scale of the noise: how the option follows from it


@dataclass(frozen=True)
class Solution:
    """A mechanism with all its numbers.

    Attributes:
        question: What was asked.
        step: The event of one step, for one unit.
        steps: The number of steps. 0 if not even one meets the target.
        solved_for: The name of the number that was computed for the target. None if there was no target.
    """

    question: Question
    step: SampledStep
    steps: int
    solved_for: str | None

    @property
    def noise(self) -> Noise | RandomisedResponse:
        """The noise of one step, or its answer."""
        return self.step if isinstance(self.step, RandomisedResponse) else self.step.event

    @property
    def sampling_rate(self) -> float:
        """The probability that one unit takes part in a step."""
        return 1.0 if isinstance(self.step, RandomisedResponse) else self.step.sampling_rate

    @property
    def is_sampled(self) -> bool:
        """Whether not every unit takes part in every step."""
        return self.sampling_rate < 1 or isinstance(self.step, TruncatedPoissonSampled)

    @property
    def event(self) -> Event:
        """All steps as one event; without sampling where every unit takes part."""
        once: Event = self.step if self.is_sampled else self.noise
        return self.question.protected_event(Repeated(count=self.steps, event=once)) if self.steps else NOTHING


@dataclass(frozen=True)
class Answer:
    """Everything that is printed, as JSON or as text."""

    question: Question
    solution: Solution
    account: "Account"
    unit: Unit
    attacks: "tuple[Attack, ...]"
    mu: float
    second: "SecondOpinion | None"
    card: "Guarantee | None"

    def data(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON."""
        step, account, target = self.solution.step, self.account, self.question.target()
        rate = self.solution.sampling_rate
        noise = to_plain(self.solution.noise)
        data = {
            "mechanism": noise.pop("kind"),
            "epsilon": account.epsilon,
            "delta": account.delta,
            "relation": account.relation,
            "certified_by": account.certified_by,
            "accountants": account.accountants,
            "notes": account.notes,
            **noise,
            "steps": self.solution.steps,
            "sampling": self.question.sampling if self.solution.is_sampled else "none",
            "sampling_rate": rate,
            "group_size": self.question.group_rows,
            **({"expected_trials": trials} if (trials := self.question.expected_trials) else {}),
            "found": self.solution.solved_for,
            "target": to_plain(target) if target else None,
            "tpr": {compact(attack.false_positive_rate): attack.true_positive_rate for attack in self.attacks},
            "mu": self.mu,
            "event": to_plain(self.solution.event),
        }
        match step:
            case SampledWithoutReplacement():
                data |= {"cohort": step.cohort, "population": step.population}
            case TruncatedPoissonSampled():
                data |= {"max_batch_size": step.max_batch_size, "population": step.population}
            case RandomAllocation():
                data |= {"bins": step.bins}
        if second := self.second:
            data["second_engine"] = {"engine": second.engine, "epsilon": second.epsilon, "reason": second.reason}
        if self.question.curve:
            data["curve"] = str(self.question.curve)
        if self.card:
            data["guarantee"] = to_plain(self.card)
        return data

    @property
    def _unit_in_words(self) -> Unit:
        """What the words of the answer are about: a person, if several units are protected together."""
        size = self.question.group_rows
        return self.unit if size == 1 or self.unit != "example" else Person(column="person", at_most=size)

    def page(self) -> Iterator[RenderableType]:
        """Yield the answer as text, piece by piece."""
        account = self.account
        if self.solution.solved_for:
            yield _describe_solution(self)
            yield ""
        yield describe_event(self.solution.event)
        yield f"neighbours: {account.relation.replace('_', '-')}; δ = {compact(account.delta)}; μ = {round_up(self.mu)}"
        yield ""
        yield Padding(_accountant_table(self), (0, 2))
        yield ""
        first, *others = self.attacks
        rates = first.false_positive_rate, first.true_positive_rate
        yield sentence("results", self._unit_in_words, account.relation, *rates)
        if first.true_positive_rate < 1:
            yield " ".join(
                f"With {per_thousand(other.false_positive_rate)} false alarms: at most "
                f"{per_thousand(other.true_positive_rate)}."
                for other in others
            )
        if self.question.curve:
            yield f"The curves are in {self.question.curve}."
        if self.card:
            yield ""
            yield self.card.as_text()


def solve(question: Question, name: str, noise: float | None, noise_at: NoiseAt) -> Answer:
    """Answer a question about one kind of noise.

    Args:
        question: The options that all mechanisms share.
        name: The option that gives the size of the noise, such as "noise_multiplier".
        noise: Its value. None to find it for the target.
        noise_at: Returns the noise of a given size.
    """
    from discreet.privacy import accountant, gaussian, guarantee

    unit, relation = parse_unit(question.unit), question.neighbours
    solution = find_missing(question, name, noise, noise_at)
    event, delta, second, card = solution.event, question.delta, None, None
    if question.check or question.card:
        account, second = accountant.account_with_second_engine(event, delta, relation)
    else:
        account = accountant.account(event, delta, relation)
    if question.card:
        release = Release(unit=unit, relation=relation, view=parse_view(question.view), event=event)
        card = guarantee.Guarantee.certify(release, delta)
    rates = sorted({*guarantee.FALSE_ALARMS, *([question.fpr] if question.fpr else [])})
    attacks = guarantee.best_attacks(event, relation, rates)
    mu = gaussian.equivalent_mu(account.epsilon, delta)
    return Answer(question, solution, account, unit, attacks, mu, second, card)


def find_missing(question: Question, name: str, noise: float | None, noise_at: NoiseAt) -> Solution:
    """Find the number that was left out: the noise, or else the steps, or else the sampling rate.

    Without a target nothing is found, and the noise must be given.
    """
    from discreet.privacy import calibration

    target, relation, solved_for = question.target(), question.neighbours, None
    rate = 1.0 if question.rate is None else question.rate
    steps = 1 if question.steps is None else question.steps

    def event(noise: float, rate: float) -> Event:
        return question.protected_event(Repeated(count=steps, event=question.sampled_event(noise_at(noise), rate)))

    if noise is None:
        if target is None:
            raise InvalidInput(
                f"--{name.replace('_', '-')} is missing.",
                fix="Add it, or a target for which to find it: --epsilon, or --attack-tpr with --fpr.",
            )
        scale = SCALES[name]  # search for a standard deviation, not for its square
        noise = scale(calibration.calibrate_noise(lambda x: event(scale(x), rate), target, relation))
        solved_for = name
    elif target is not None:
        known = noise
        if question.steps is None:
            steps, solved_for = calibration.affordable_rounds(event(known, rate), target, relation), "steps"
        elif question.rate is None:
            rate, solved_for = (
                calibration.calibrate_sampling_rate(lambda rate: event(known, rate), target, relation),
                "sampling_rate",
            )
        else:
            raise InvalidInput(
                "The noise, --steps and --sampling-rate are all given, so there is nothing to find for the target.",
                fix="Leave out the number to find, or the target.",
            )
    return Solution(question, question.sampled_event(noise_at(noise), rate), steps, solved_for)


def _describe_solution(answer: Answer) -> str:
    solution, question = answer.solution, answer.question
    if question.epsilon is not None:
        target = f"ε ≤ {compact(question.epsilon)}"
    else:
        fpr = compact(question.fpr or FPR)
        target = f"a true positive rate ≤ {compact(question.attack_tpr or 0)} at a false positive rate of {fpr}"
    match solution.solved_for:
        case "steps" if not solution.steps:
            return "steps = 0: not even one step meets the target. Add noise, or lower the sampling rate."
        case "steps":
            answer_text = f"steps = {solution.steps:,}, the most"
        case "sampling_rate":
            answer_text = f"sampling_rate = {round_down(solution.sampling_rate, 5)}, the highest"
        case "rho":
            answer_text = f"rho = {round_down(to_plain(solution.noise)['rho'], 5)}, the largest"
        case name:
            answer_text = f"{name} = {round_up(to_plain(solution.noise)[name], 5)}, the smallest"
    return f"{answer_text} with {target}"


def _accountant_table(answer: Answer) -> Table:
    """List the accountants by epsilon, the tightest first; those without a value last, with the reason."""
    account = answer.account
    table = text_table("accountant", "ε", "", right=("ε",))
    for name, epsilon in sorted(account.accountants.items(), key=lambda item: item[1]):
        is_reported = name == account.certified_by
        note = "; ".join(filter(None, ["reported" if is_reported else "", account.notes.get(name, "")]))
        table.add_row(name, round_up(epsilon), note, style="bold" if is_reported else None)
    if answer.second:
        value = "–" if answer.second.epsilon is None else round_up(answer.second.epsilon)
        table.add_row(answer.second.engine, value, answer.second.reason or "second engine")
    for name in sorted(account.notes.keys() - account.accountants.keys()):
        table.add_row(name, "–", account.notes[name])
    return table
