"""The verdict on a run: one sentence at the top of its page, and whether it is good news."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from discreet.experiment.run_directory.run_data import Promise, RunData
from discreet.privacy import wording
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import describe_clients
from discreet.privacy.wording import compact, join_names, round_up
from discreet.report.guarantee_card import describe_onlooker, format_bound, format_certified
from discreet.words import fill

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
    """Judge a run.

    The verdict is good only if a guarantee is certified, keeps the promise, no seed voids it, δ is small enough, and
    the ledger is the one that the card names.
    """
    verdict, card = _judge_privacy(run), run.main_guarantee
    if verdict.mood == "good" and card is not None and not card.is_certified:
        parts = join_names([shorten_digest(title) for title in card.on_word_of])
        if_true = fill(f"verdict.if_true.{wording.unit_name(card.unit)}", **_protection(card))
        verdict = Verdict("none", fill("verdict.not_certified", parts=parts), (if_true, *verdict.more))
    elif verdict.mood == "good" and (own := _own_kinds(run)):
        verdict = Verdict("bad", fill("verdict.hidden_declaration", parts=join_names(own)))
    elif verdict.mood == "good" and run.delta_warning is not None:
        warning = fill("verdict.warning", sentence=run.delta_warning)
        verdict = Verdict("bad", warning, (verdict.sentence, *verdict.more))
    if (broken := ledger_warning(run)) is not None:
        verdict = Verdict("bad", broken, (verdict.sentence, *verdict.more))
    return Verdict(verdict.mood, verdict.sentence, (*verdict.more, *_warnings(run), *_describe_progress(run)))


def standing_guarantee(run: RunData) -> Guarantee | None:
    """Return the guarantee that the run is about, if its numbers hold for the model as it is.

    None if nothing was certified or ε is infinite; if the noise came from a seed; if rounds were run that the card
    doesn't count; or if the card hides that its noise is only declared.
    """
    card = run.main_guarantee
    if card is None or not math.isfinite(card.epsilon) or run.is_seeded or run.certified_rounds < len(run.rounds):
        return None
    return None if card.is_certified and _own_kinds(run) else card


def ledger_warning(run: RunData) -> str | None:
    """Warn that the ledger was changed, is missing, or is not the one that the card names. None if all is well."""
    fault = run.ledger_fault
    return None if fault is None else fill("verdict.warning", sentence=fill(f"verdict.ledger_{fault}"))


def _warnings(run: RunData) -> tuple[str, ...]:
    if not run.has_data_ranges:
        return ()
    return (fill("verdict.warning", sentence=fill("not_covered.ranges_warning")),)


def _own_kinds(run: RunData) -> list[str]:
    """List the user's own parts that decide what is released, which no certified card can have."""
    kinds = [str(run.value("algorithm", name, "kind")) for name in RELEASING_PARTS]
    return [kind for kind in kinds if ":" in kind]


def shorten_digest(text: str) -> str:
    """Shorten the digests of a user's own parts; the card has all of them."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1…", text)


def _judge_privacy(run: RunData) -> Verdict:
    card, promise = run.main_guarantee, run.promise
    if card is None:
        return _judge_uncertified(run)
    if not math.isfinite(card.epsilon):
        return Verdict("none", card.sentence())
    protected = fill(f"verdict.protected.{wording.unit_name(card.unit)}", **_protection(card))
    if run.is_seeded:
        return Verdict("bad", fill("verdict.seeded"), (fill("verdict.without_seed", bound=format_certified(card)),))
    if run.certified_rounds < len(run.rounds):
        counts = {"certified": f"{run.certified_rounds:,}", "run": f"{len(run.rounds):,}"}
        return Verdict("bad", fill("verdict.out_of_date", **counts), _describe_spent(run))
    if promise is None:
        return Verdict("good", protected, (fill("verdict.no_budget"),))
    promised = _describe_promise(promise)
    if not promise.is_about(card):
        return Verdict("bad", protected, (fill("verdict.other_promise", promise=promised),))
    about = [other for other in run.guarantees if other.view == card.view and promise.is_about(other)]
    by_client = [other for other in about if other.clients]
    broken = next((other for other in by_client or [card] if not promise.is_kept_by(other)), None)
    if broken is not None:
        return Verdict("bad", _describe_breach(promised, broken))
    return Verdict("good", protected, (fill("verdict.kept", promise=promised),))


def _protection(card: Guarantee) -> dict[str, str]:
    return {"against": describe_onlooker(card.view), "bound": format_certified(card)}


def _describe_breach(promised: str, broken: Guarantee) -> str:
    bound = format_certified(broken)
    if not broken.clients:
        return fill("verdict.broken", promise=promised, bound=bound)
    return fill("verdict.broken_for", promise=promised, bound=bound, clients=describe_clients(broken.clients))


def _judge_uncertified(run: RunData) -> Verdict:
    is_unknown = any(name in problem for problem in run.problems for name in ("guarantee.json", ".toml"))
    if "privacy" not in run.experiment and run.identity.get("private") is not True and not is_unknown:
        return Verdict("none", fill("verdict.nothing_promised"), (fill("verdict.unlimited"),))
    promised = [fill("verdict.promised", promise=_describe_promise(run.promise))] if run.promise else []
    why = fill("verdict.unreadable" if run.is_finished else "verdict.unwritten")
    return Verdict("bad", " ".join([*promised, fill("verdict.uncertified"), why]), _describe_spent(run))


def _describe_spent(run: RunData) -> tuple[str, ...]:
    spent = [value for value in run.series("epsilon").values() if math.isfinite(value)]
    return (fill("verdict.spent", epsilon=round_up(max(spent))),) if spent else ()


def _describe_progress(run: RunData) -> tuple[str, ...]:
    done, planned = len(run.rounds), run.planned_rounds
    if planned is None:
        return ()
    rounds = {"done": f"{done:,}", "planned": f"{planned:,}"}
    return (fill("verdict.finished" if done >= planned else "verdict.unfinished", **rounds),)


def _describe_promise(promise: Promise) -> str:
    """Say what was promised. The unit comes from a file, and may be a word that is not known here."""
    bound, against = format_bound(compact(promise.epsilon), promise.delta), describe_onlooker(promise.against)
    if promise.unit in ("example", "person", "client"):
        promised = fill(f"promise.{promise.unit}", bound=bound, against=against)
    else:
        promised = fill("promise.other", bound=bound, unit=promise.unit, against=against)
    return fill("promise.less_for_some", promise=promised) if len(set(promise.client_epsilons)) > 1 else promised
