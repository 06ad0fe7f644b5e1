"""The brief of a run: what somebody needs who decides whether its model may be used, in few sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from discreet.experiment.run_directory.run_data import RunData
from discreet.privacy import wording
from discreet.privacy.card_lines import Line, Source, main_checks, one_unit_line
from discreet.privacy.guarantee import Attack, Guarantee
from discreet.privacy.release import describe_clients
from discreet.report import charts
from discreet.report.guarantee_card import describe_onlooker, format_certified, remove_numbers
from discreet.report.public_paths import hide_run_folders
from discreet.report.verdict import Verdict, judge, ledger_warning, shorten_digest, standing_guarantee
from discreet.words import fill

MOST_LINES, MOST_LETTERS = 6, 600  # of what is not covered: as much as fits on the page
MOST_OTHERS = 2
UNPROTECTED: tuple[Source, ...] = ("owner", "machine", "project")


@dataclass(frozen=True)
class Brief:
    """What the one page says.

    Attributes:
        heading: The run, its task and its recipe.
        verdict: What the top of the full report says too.
        warnings: That files of the run could not be read or trusted.
        guarantee: The guarantee that the run is about, if its numbers hold for the model.
        protected: Who is protected, and what of them is hidden.
        onlooker: From whom.
        strength: How well: the attack sentence, and the numbers.
        data: Which data.
        period: Which period.
        quality: How good the model is. Empty in public.
        checks: The three things that somebody must check: each has one line for everyone who must check it.
        notes: Sentences to read with the assumptions.
        not_covered: What the guarantee does not cover.
        others: Further guarantees of the run.
    """

    heading: str
    verdict: Verdict
    warnings: tuple[str, ...]
    guarantee: Guarantee | None
    protected: tuple[str, ...]
    onlooker: tuple[str, ...]
    strength: tuple[str, ...]
    data: str
    period: tuple[str, ...]
    quality: str
    checks: tuple[tuple[Line, ...], ...]
    notes: tuple[str, ...]
    not_covered: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def attacks(self) -> tuple[Attack, ...]:
        """What the best possible attack achieves, if the guarantee holds."""
        return () if self.guarantee is None else self.guarantee.attacks

    def to_plain(self) -> dict[str, Any]:
        """Return the brief as plain data, for one JSON object."""
        card = self.guarantee
        return {
            "verdict": [self.verdict.sentence, *self.verdict.more],
            "mood": self.verdict.mood,
            "warnings": list(self.warnings),
            "certified": card is not None and card.is_certified,
            "epsilon": None if card is None else card.epsilon,
            "delta": None if card is None else card.delta,
            "protected": list(self.protected),
            "onlooker": list(self.onlooker),
            "strength": list(self.strength),
            "attacks": [
                {"false_positive_rate": each.false_positive_rate, "true_positive_rate": each.true_positive_rate}
                for each in self.attacks
            ],
            "data": self.data,
            "period": list(self.period),
            "checks": [
                {"who": line.source, "assumption": str(line), "number": number}
                for number, lines in enumerate(self.checks, start=1)
                for line in lines
            ],
            "not_covered": list(self.not_covered),
            "others": list(self.others),
        }


def write_brief(run: RunData, *, public: bool = False) -> Brief:
    """Write the brief of a run. In public it has no number that the guarantee does not cover, and no folder."""
    run = hide_run_folders(run) if public else run
    verdict, card = judge(run), standing_guarantee(run)
    parts = {"name": run.name, "task": _task_name(run)}
    heading = fill("brief.run_with", recipe=run.recipe, **parts) if run.recipe else fill("brief.run", **parts)
    protected: tuple[str, ...] = (fill("brief.nobody"),)
    onlooker: tuple[str, ...] = (fill("brief.from_nobody"),)
    strength: tuple[str, ...] = (fill("brief.no_bound"),)
    if card is not None:
        protected = (
            *([] if card.is_certified else [fill("brief.if_declared")]),
            _describe_protected(card, run),
            wording.describe_relation(card.relation, card.unit),
        )
        onlooker = (fill(f"view.{card.view}"), *([fill("brief.simulated")] if _is_on_one_machine(card, run) else []))
        strength = (shorten_digest(card.sentence()), _describe_bound(card))
    return Brief(
        heading=heading,
        verdict=verdict,
        warnings=tuple(_list_warnings(run)),
        guarantee=card,
        protected=protected,
        onlooker=onlooker,
        strength=strength,
        data=_describe_data(run),
        period=(fill("brief.collected"), *_describe_training(run)),
        quality="" if public else _describe_quality(run),
        checks=_list_checks(card, run),
        notes=tuple(_list_notes(card)),
        not_covered=tuple(_list_exclusions(card, public=public)),
        others=tuple(_describe_others(card, run)),
    )


def _list_warnings(run: RunData) -> Iterator[str]:
    """Yield that files could not be read, or that the ledger no longer shows what the card says."""
    if run.problems:
        yield fill("brief.unreadable", count=len(run.problems))
    if (warning := ledger_warning(run)) is not None:
        yield warning


def _task_name(run: RunData) -> str:
    name = run.value("task", "name") or run.value("task", "kind")
    return name if isinstance(name, str) else run.name


def _describe_protected(card: Guarantee, run: RunData) -> str:
    """Describe the unit: of any client, if this is the largest ε of guarantees that differ only in their clients."""
    alike = [other for other in run.guarantees if (other.unit, other.view) == (card.unit, card.view)]
    is_largest = len(alike) > 1 and all(card.epsilon >= other.epsilon for other in alike)
    return wording.describe_unit(card.unit, card.view, None if is_largest else card.clients)


def _describe_bound(card: Guarantee) -> str:
    bound = format_certified(card)
    return fill("brief.in_numbers" if card.is_certified else "brief.declared_numbers", bound=bound)


def _is_on_one_machine(card: Guarantee, run: RunData) -> bool:
    """Whether one machine played every client; a card of an earlier version leaves it to the engine."""
    return "machine" in card.assumption_sources or run.value("engine", "kind") != "flower"


def _describe_data(run: RunData) -> str:
    path, client, label = (run.value("task", name) for name in ("path", "client", "label"))
    if all(isinstance(value, str) for value in (path, client, label)):
        return fill("brief.table", file=PurePath(path).name, client=repr(client), label=repr(label))
    return fill("brief.task", task=_task_name(run))


def _describe_training(run: RunData) -> Iterator[str]:
    """Yield when the model was trained, and for how many rounds; both are public."""
    started, rounds = run.environment.get("started"), f"{len(run.rounds):,}"
    is_one = len(run.rounds) == 1
    if isinstance(started, str):
        day = started[:16].replace("T", " ")
        yield fill("brief.trained_one_round" if is_one else "brief.trained", started=day, rounds=rounds)
    else:
        yield fill("brief.rounds_only_one_round" if is_one else "brief.rounds_only", rounds=rounds)


def _describe_quality(run: RunData) -> str:
    for name, series in run.metrics().items():
        last = max(series)
        return fill(
            "brief.uncovered_metric_one_round" if last == 1 else "brief.uncovered_metric",
            metric=name,
            value=charts.format_metric(name, series[last]),
            rounds=f"{last:,}",
        )
    return ""


def _list_checks(card: Guarantee | None, run: RunData) -> tuple[tuple[Line, ...], ...]:
    """List the three things to check: about the data, about the noise, and about everything else."""
    if card is None:
        return tuple((Line(fill(f"brief.unprotected.{source}"), source),) for source in UNPROTECTED)
    noise = fill("assumes.fresh_noise_but_share" if card.view == "client" else "assumes.fresh_noise")
    usual = (
        one_unit_line(card.unit),
        Line(noise, "clients" if card.view == "server" else "server"),
        Line(fill("assumes.counted_by_ledger" if run.identity.get("ledger") else "assumes.this_run"), "project"),
    )
    found = main_checks(card.assumptions, card.assumption_sources)
    return tuple(tuple(map(_shorten, lines or (other,))) for lines, other in zip(found, usual, strict=True))


def _shorten(line: Line) -> Line:
    return Line(shorten_digest(line), line.source)


def _list_notes(card: Guarantee | None) -> Iterator[str]:
    if card is None:
        return
    if not card.assumption_sources:
        yield fill("brief.earlier_card")
    yield fill("brief.more_assumptions", count=len(card.assumptions))


def _list_exclusions(card: Guarantee | None, *, public: bool) -> Iterator[str]:
    """Yield what is not covered: what holds for every such guarantee first, then other runs and numbers of this one."""
    if card is None:
        return
    sources = card.exclusion_sources or ("method",) * len(card.not_covered)
    order: dict[str, int] = {"method": 0, "program": 2}
    ranked = sorted(zip(card.not_covered, sources, strict=True), key=lambda each: order.get(each[1], 1))
    shown, letters = 0, 0
    for sentence, _ in ranked:
        if shown < MOST_LINES and letters + len(sentence) <= MOST_LETTERS:
            shown, letters = shown + 1, letters + len(sentence)
            yield remove_numbers(sentence) if public else sentence
    if shown < len(ranked):
        yield fill("brief.more_not_covered", count=len(ranked) - shown)


def _describe_others(card: Guarantee | None, run: RunData) -> Iterator[str]:
    """Yield the other guarantees of the run, each with its unit, its onlooker and its ε."""
    if card is None:
        return
    others = [other for other in run.guarantees if other is not card]
    for other in others[:MOST_OTHERS]:
        unit = wording.unit_name(other.unit)
        parts = {
            "heading": fill(f"heading.{unit}", against=describe_onlooker(other.view)),
            "bound": format_certified(other),
        }
        if other.clients:
            stated = fill("brief.other_clients", clients=describe_clients(other.clients), **parts)
        else:
            stated = fill("brief.other", **parts)
        yield stated if other.is_certified else fill("brief.other_declared", stated=stated)
    if len(others) > MOST_OTHERS:
        yield fill("brief.more_others", count=len(others) - MOST_OTHERS)
