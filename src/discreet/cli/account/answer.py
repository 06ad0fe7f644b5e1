"""What `discreet account` answers: finds what was left out, asks every accountant, and lays the answer out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.account.question import Question
from discreet.cli.options import parse_unit
from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.privacy.events import NOTHING, Event, Noise, PoissonSampled, Repeated, SampledWithoutReplacement
from discreet.privacy.release import Release, Unit
from discreet.privacy.wording import compact, describe_event, per_thousand, round_down, round_up, sentence

if TYPE_CHECKING:
    from discreet.privacy.accountant import Account
    from discreet.privacy.guarantee import Attack, Guarantee
    from discreet.privacy.second_engine import SecondOpinion


@dataclass(frozen=True)
class Solution:
    """A mechanism with every number known; `found` names the one that was calculated, if one was."""

    step: PoissonSampled | SampledWithoutReplacement
    steps: int
    found: str | None

    @property
    def event(self) -> Event:
        once: Event = self.step.event if self.step.sampling_rate == 1 else self.step
        return Repeated(count=self.steps, event=once) if self.steps else NOTHING


@dataclass(frozen=True)
class Answer:
    """All that is printed, as JSON or as text."""

    question: Question
    settled: Solution
    account: "Account"
    unit: Unit
    attacks: "tuple[Attack, ...]"
    mu: float
    second: "SecondOpinion | None"
    card: "Guarantee | None"

    def data(self) -> dict[str, Any]:
        return _data(self)

    def page(self) -> Iterator[RenderableType]:
        return _page(self)


def solve(question: Question, name: str, noise: float | None, noise_at: Callable[[float], Noise]) -> Answer:
    """Answer what was asked about noise of this kind, whose size is called `name`."""
    from discreet.privacy import accountant, gaussian, guarantee

    unit, relation = parse_unit(question.unit), question.neighbours
    settled = find_missing(question, name, noise, noise_at)
    event, delta, second, card = settled.event, question.delta, None, None
    if question.check or question.card:
        account, second = accountant.account_with_second_engine(event, delta, relation)
    else:
        account = accountant.account(event, delta, relation)
    if question.card:
        release = Release(unit=unit, relation=relation, view=question.view, event=event)
        card = guarantee.Guarantee.certify(release, delta)
    rates = sorted({*guarantee.FALSE_ALARMS, *([question.fpr] if question.fpr else [])})
    attacks = guarantee.best_attacks(event, relation, rates)
    mu = gaussian.equivalent_mu(account.epsilon, delta)
    return Answer(question, settled, account, unit, attacks, mu, second, card)


def find_missing(question: Question, name: str, noise: float | None, noise_at: Callable[[float], Noise]) -> Solution:
    """Find what was left out for the target, if there is one: the noise, else the steps, else the sampling rate."""
    from discreet.privacy import calibration

    target, relation, found = question.target(), question.neighbours, None
    rate = 1.0 if question.rate is None else question.rate
    steps = 1 if question.steps is None else question.steps

    def event(noise: float, rate: float) -> Event:
        return Repeated(count=steps, event=question.sampled(noise_at(noise), rate))

    if noise is None:
        if target is None:
            raise InvalidInput(
                f"--{name.replace('_', '-')} is missing.",
                fix="Give it, or a target to find it for: --epsilon, or --attack-tpr with --fpr.",
            )
        power = 2 if name == "variance" else 1  # searched on the scale of a standard deviation
        noise, found = calibration.calibrate_noise(lambda x: event(x**power, rate), target, relation) ** power, name
    elif target is not None:
        known = noise
        if question.steps is None:
            steps, found = calibration.affordable_rounds(event(known, rate), target, relation), "steps"
        elif question.rate is None:
            rate, found = (
                calibration.calibrate_sampling_rate(lambda rate: event(known, rate), target, relation),
                "sampling_rate",
            )
        else:
            raise InvalidInput(
                "Noise, steps and sampling rate are all given, so the target leaves nothing to find.",
                fix="Leave out the one to find, or leave out the target.",
            )
    return Solution(question.sampled(noise_at(noise), rate), steps, found)


def _data(whole: Answer) -> dict[str, Any]:
    step, account, target = whole.settled.step, whole.account, whole.question.target()
    noise = to_plain(step.event)
    data = {
        "mechanism": noise.pop("kind"),
        "epsilon": account.epsilon,
        "delta": account.delta,
        "relation": account.relation,
        "certified_by": account.certified_by,
        "accountants": account.accountants,
        "notes": account.notes,
        **noise,
        "steps": whole.settled.steps,
        "sampling": "none" if step.sampling_rate == 1 else whole.question.sampling,
        "sampling_rate": step.sampling_rate,
        "found": whole.settled.found,
        "target": to_plain(target) if target else None,
        "tpr": {compact(attack.false_positive_rate): attack.true_positive_rate for attack in whole.attacks},
        "mu": whole.mu,
        "event": to_plain(whole.settled.event),
    }
    if isinstance(step, SampledWithoutReplacement):
        data |= {"cohort": step.cohort, "population": step.population}
    if whole.second:
        data["second_engine"] = _second_engine_data(whole.second)
    if whole.card:
        data["guarantee"] = to_plain(whole.card)
    return data


def _second_engine_data(second: "SecondOpinion") -> dict[str, Any]:
    return {"engine": second.engine, "epsilon": second.epsilon, "reason": second.reason}


def _page(whole: Answer) -> Iterator[RenderableType]:
    account = whole.account
    if whole.settled.found:
        yield _describe_solution(whole)
        yield ""
    yield describe_event(whole.settled.event)
    yield f"neighbours: {account.relation.replace('_', '-')}; δ = {compact(account.delta)}; μ = {round_up(whole.mu)}"
    yield ""
    yield Padding(_accountant_table(whole), (0, 2))
    yield ""
    first, *others = whole.attacks
    yield sentence(
        "Whoever sees the results",
        whole.unit,
        account.relation,
        first.false_positive_rate,
        first.true_positive_rate,
    )
    if first.true_positive_rate < 1:
        yield " ".join(
            f"With {per_thousand(other.false_positive_rate)} false alarms: at most "
            f"{per_thousand(other.true_positive_rate)}."
            for other in others
        )
    if whole.card:
        yield ""
        yield whole.card.as_text()


def _describe_solution(whole: Answer) -> str:
    settled, question = whole.settled, whole.question
    if question.epsilon is not None:
        goal = f"ε ≤ {compact(question.epsilon)}"
    else:
        goal = (
            f"at most {compact(question.attack_tpr or 0)} true positives at {compact(question.fpr or 0.01)} false ones"
        )
    match settled.found:
        case "steps" if not settled.steps:
            return "steps = 0: not even one meets the target. Add noise, or sample fewer units in each."
        case "steps":
            said = f"steps = {settled.steps:,}, the most"
        case "sampling_rate":
            said = f"sampling_rate = {round_down(settled.step.sampling_rate, 5)}, the highest"
        case name:
            said = f"{name} = {round_up(to_plain(settled.step.event)[name], 5)}, the least"
    return f"{said} with {goal}"


def _accountant_table(whole: Answer) -> Table:
    """Tightest first; those without a value last, with the reason."""
    account = whole.account
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
    table.add_column("accountant")
    table.add_column("ε", justify="right")
    table.add_column("", overflow="fold")
    for name, epsilon in sorted(account.accountants.items(), key=lambda item: item[1]):
        reported = name == account.certified_by
        note = "; ".join(filter(None, ["reported" if reported else "", account.notes.get(name, "")]))
        table.add_row(name, round_up(epsilon), note, style="bold" if reported else None)
    if whole.second:
        value = "–" if whole.second.epsilon is None else round_up(whole.second.epsilon)
        table.add_row(whole.second.engine, value, whole.second.reason or "second engine")
    for name in sorted(account.notes.keys() - account.accountants.keys()):
        table.add_row(name, "–", account.notes[name])
    return table
