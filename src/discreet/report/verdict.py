"""The run in one sentence, and whether that sentence is good news."""

import math
from dataclasses import dataclass
from typing import Literal

from discreet.privacy import wording
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import describe_clients
from discreet.privacy.wording import compact, round_up
from discreet.report.guarantee_card import format_bound, format_certified
from discreet.report.run_data import Promise, RunData


@dataclass(frozen=True)
class Verdict:
    mood: Literal["good", "bad", "none"]
    sentence: str
    more: tuple[str, ...] = ()


def judge(story: RunData) -> Verdict:
    """What the run may say of itself. It is only good when something is certified, kept, and not seeded away."""
    verdict = _privacy(story)
    return Verdict(verdict.mood, verdict.sentence, (*verdict.more, *_warnings(story), *_progress(story)))


def _warnings(story: RunData) -> tuple[str, ...]:
    """What a reader of the promise must know beside it."""
    return (f"Warning: {wording.DATA_RANGES}",) if story.has_data_ranges else ()


def _privacy(story: RunData) -> Verdict:
    card, promise = story.main_guarantee, story.promise
    if card is None:
        return _uncertified(story)
    if not math.isfinite(card.epsilon):
        return Verdict("none", card.sentence())
    unit = wording.unit_name(card.unit)
    protected = f"Any one {unit} is protected against {_onlooker(card)}, up to {format_certified(card)}."
    if story.is_seeded:
        return Verdict(
            "bad",
            "This run protects nobody: its noise came from a seed, and whoever knows the seed can take it off.",
            (f"Without a seed it would be certified at {format_certified(card)}.",),
        )
    if story.certified_rounds < len(story.rounds):
        missing = f"It speaks of {story.certified_rounds:,} rounds, and {len(story.rounds):,} were made."
        return Verdict("bad", f"The guarantee is out of date. {missing}", _spent(story))
    if promise is None:
        return Verdict("good", protected, ("No budget was set.",))
    if not promise.is_about(card):
        about = f"The promise was another: {_describe_promise(promise)}. It is not certified."
        return Verdict("bad", protected, (about,))
    own = [each for each in story.guarantees if each.clients and each.view == card.view and promise.is_about(each)]
    broken = next((each for each in own or [card] if not promise.is_kept_by(each)), None)
    if broken is not None:
        whose = f" for {describe_clients(broken.clients)}" if broken.clients else ""
        return Verdict(
            "bad",
            f"The promise is broken: {_describe_promise(promise)}, and {format_certified(broken)} was spent{whose}.",
        )
    return Verdict("good", protected, (f"That keeps the promise: {_describe_promise(promise)}.",))


def _uncertified(story: RunData) -> Verdict:
    unsure = any(name in said for said in story.problems for name in ("guarantee.json", ".toml"))
    if "privacy" not in story.experiment and story.identity.get("private") is not True and not unsure:
        return Verdict(
            "none",
            "No privacy was promised.",
            ("Nothing limits what the model, or the updates it was made from, reveal about the data.",),
        )
    asked = f"Promised was {_describe_promise(story.promise)}. " if story.promise else ""
    why = "It is written when the run ends." if not story.is_finished else "There is none to read in the run directory."
    return Verdict("bad", f"{asked}There is no certified guarantee. {why}", _spent(story))


def _spent(story: RunData) -> tuple[str, ...]:
    spent = [value for value in story.series("epsilon").values() if math.isfinite(value)]
    return (f"Spent so far, not certified: ε = {round_up(max(spent))}.",) if spent else ()


def _progress(story: RunData) -> tuple[str, ...]:
    done, planned = len(story.rounds), story.planned_rounds
    if planned is None:
        return ()
    if done >= planned:
        return (f"The run is finished: {done:,} of {planned:,} rounds.",)
    return (f"The run is unfinished: {done:,} of {planned:,} rounds are done.",)


def _describe_promise(promise: Promise) -> str:
    at_most = format_bound(compact(promise.epsilon), promise.delta)
    own = ", and for some clients less" if len(set(promise.client_epsilons)) > 1 else ""
    return f"at most {at_most} for any one {promise.unit}, against {_onlooker_name(promise.against)}{own}"


def _onlooker(card: Guarantee) -> str:
    return _onlooker_name(card.view)


def _onlooker_name(view: str) -> str:
    return {"client": "another client"}.get(view, f"the {view}")
