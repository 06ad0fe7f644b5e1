"""The verdict on a run: one sentence at the top of its page, and whether it is good news."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from discreet.experiment.run_directory.run_data import Promise, RunData
from discreet.privacy import wording
from discreet.privacy.release import describe_clients
from discreet.privacy.wording import compact, round_up
from discreet.report.guarantee_card import format_bound, format_certified, onlooker_name

RELEASING_PARTS = ("sampling", "trainer", "sparsifier", "mechanism", "aggregation")  # fields of an algorithm


@dataclass(frozen=True)
class Verdict:
    """What the top of the page says.

    Attributes:
        mood: Good if the guarantee holds, bad if it does not, none if nothing was promised.
        sentence: The verdict.
        more: Further sentences: what was spent, warnings, progress.
    """

    mood: Literal["good", "bad", "none"]
    sentence: str
    more: tuple[str, ...] = ()


def judge(run: RunData) -> Verdict:
    """Judge a run. The verdict is good only if a guarantee is certified, keeps the promise, and no seed voids it."""
    verdict, card = _judge_privacy(run), run.main_guarantee
    if verdict.mood == "good" and card is not None and not card.is_certified:
        verdict = Verdict(
            "none",
            f"Not certified: the noise is only declared, by {' and '.join(map(_short_title, card.on_word_of))}.",
            (f"If that is true: {verdict.sentence[0].lower()}{verdict.sentence[1:]}", *verdict.more),
        )
    elif verdict.mood == "good" and (own := _own_kinds(run)):
        verdict = Verdict(
            "bad",
            f"The card hides that its noise is only declared, by {' and '.join(own)}: guarantee.json was changed.",
        )
    warnings = [f"Warning: {wording.DATA_RANGES}"] if run.has_data_ranges else []
    return Verdict(verdict.mood, verdict.sentence, (*verdict.more, *warnings, *_describe_progress(run)))


def _own_kinds(run: RunData) -> list[str]:
    """List the user's own parts that decide what is released, which no certified card can have."""
    kinds = [str(run.value("algorithm", name, "kind")) for name in RELEASING_PARTS]
    return [kind for kind in kinds if ":" in kind]


def _short_title(title: str) -> str:
    """Shorten the digest of a user's own part; the card has all of it."""
    return re.sub(r"(sha256 [0-9a-f]{12})[0-9a-f]{52}", r"\1…", title)


def _judge_privacy(run: RunData) -> Verdict:
    card, promise = run.main_guarantee, run.promise
    if card is None:
        return _judge_uncertified(run)
    if not math.isfinite(card.epsilon):
        return Verdict("none", card.sentence())
    unit, onlooker = wording.unit_name(card.unit), onlooker_name(card.view)
    protected = f"Any one {unit} is protected against {onlooker}, up to {format_certified(card)}."
    if run.is_seeded:
        return Verdict(
            "bad",
            "This run protects nobody: its noise came from a seed, and anyone who knows the seed can remove it.",
            (f"Without a seed it would be certified at {format_certified(card)}.",),
        )
    if run.certified_rounds < len(run.rounds):
        missing = f"It covers {run.certified_rounds:,} rounds, and {len(run.rounds):,} were run."
        return Verdict("bad", f"The guarantee is out of date. {missing}", _describe_spent(run))
    if promise is None:
        return Verdict("good", protected, ("No budget was set.",))
    if not promise.is_about(card):
        other = f"The promise was a different one: {_describe_promise(promise)}. It is not certified."
        return Verdict("bad", protected, (other,))
    about = [other for other in run.guarantees if other.view == card.view and promise.is_about(other)]
    by_client = [other for other in about if other.clients]
    broken = next((other for other in by_client or [card] if not promise.is_kept_by(other)), None)
    if broken is not None:
        whose = f" for {describe_clients(broken.clients)}" if broken.clients else ""
        spent = f"{format_certified(broken)} was spent{whose}"
        return Verdict("bad", f"The promise is broken: {_describe_promise(promise)}, and {spent}.")
    return Verdict("good", protected, (f"That keeps the promise: {_describe_promise(promise)}.",))


def _judge_uncertified(run: RunData) -> Verdict:
    is_unknown = any(name in problem for problem in run.problems for name in ("guarantee.json", ".toml"))
    if "privacy" not in run.experiment and run.identity.get("private") is not True and not is_unknown:
        unlimited = "Nothing limits what the model, or the updates it was trained with, reveal about the data."
        return Verdict("none", "No privacy was promised.", (unlimited,))
    promised = f"The promise was {_describe_promise(run.promise)}. " if run.promise else ""
    why = "The run directory contains none that can be read."
    if not run.is_finished:
        why = "It is written when the run ends."
    return Verdict("bad", f"{promised}There is no certified guarantee. {why}", _describe_spent(run))


def _describe_spent(run: RunData) -> tuple[str, ...]:
    spent = [value for value in run.series("epsilon").values() if math.isfinite(value)]
    return (f"Spent so far, not certified: ε = {round_up(max(spent))}.",) if spent else ()


def _describe_progress(run: RunData) -> tuple[str, ...]:
    done, planned = len(run.rounds), run.planned_rounds
    if planned is None:
        return ()
    if done >= planned:
        return (f"The run is finished: {done:,} of {planned:,} rounds.",)
    return (f"The run is unfinished: {done:,} of {planned:,} rounds are done.",)


def _describe_promise(promise: Promise) -> str:
    at_most = format_bound(compact(promise.epsilon), promise.delta)
    smaller = ", and less for some clients" if len(set(promise.client_epsilons)) > 1 else ""
    return f"at most {at_most} for any one {promise.unit}, against {onlooker_name(promise.against)}{smaller}"
