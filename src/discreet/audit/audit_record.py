"""The result of an audit as a record, and the file of a run directory that keeps it. It loads no torch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from discreet.durable_files import write_durably
from discreet.errors import DiscreetError, InvalidInput
from discreet.experiment.run_directory.run_files import AUDIT, RunFiles
from discreet.part import Count, Flag, Index, NonNegative, Probability, from_plain, part, to_plain
from discreet.privacy.guarantee import Epsilon
from discreet.privacy.release import Relation, Unit, View
from discreet.privacy.wording import compact, round_up, unit_name
from discreet.words import fill


@part
class CurvePoint:
    """A point (ε, δ) of a privacy curve."""

    epsilon: Epsilon
    delta: Probability


@part
class AuditRecord:
    """A lower bound on ε that an attack measured, beside the upper bound that is certified.

    Attributes:
        lower_bound: With probability `confidence` or more, no guarantee below this ε can be true at `delta`.
        confidence: The probability that the bound holds, if what `assumes` says is true.
        delta: The δ of both bounds.
        certified_epsilon: The ε on the card.
        estimator: Name of the estimator.
        canaries: Number of canaries.
        present: Number of canaries that were present, each by a fair coin.
        runs: Number of trainings.
        rounds: Number of rounds of each.
        unit: What a canary stands for.
        view: Who attacks.
        relation: How a present canary and an absent one differ.
        data: Beside what the canaries were: stand-in data, or the clients' own.
        assumes: What the bound rests on; empty if it rests on the coins alone.
        measured: Points that were measured.
        certified: Points of the certified curve.
        details: Numbers of the estimator, by name.
        seconds: Duration of the trainings and of the estimate, without loading the program, the data and the page.
        seeded: Whether the audit's coins and noise came from a seed.
        code: Stamp of the code that made it.
        sees_sum: Whether the server sees only the sum of a secure aggregation.
    """

    lower_bound: Epsilon
    confidence: Probability
    delta: Probability
    certified_epsilon: Epsilon
    estimator: str
    canaries: Count
    present: Index
    runs: Count
    rounds: Count
    unit: Unit
    view: View
    relation: Relation
    data: Literal["stand-in", "clients"] = "stand-in"
    assumes: str = ""
    measured: tuple[CurvePoint, ...] = ()
    certified: tuple[CurvePoint, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    seconds: NonNegative = 0.0
    seeded: Flag = False
    code: str = ""
    sees_sum: Flag = False

    @property
    def is_alarm(self) -> bool:
        """Whether the measured bound contradicts the certified one."""
        return self.lower_bound > self.certified_epsilon

    @property
    def is_far_below(self) -> bool:
        """Whether the measured bound is below half of the certified one."""
        return self.lower_bound < self.certified_epsilon / 2

    @property
    def is_public(self) -> bool:
        """Whether it depends on no client's data, so that anyone may see it."""
        return self.data == "stand-in"

    @property
    def sentence(self) -> str:
        """What was measured, in one sentence for cards and pages."""
        return fill(
            f"audit.{'alarm' if self.is_alarm else 'measured'}.{unit_name(self.unit)}",
            lower=f"{math.floor(self.lower_bound * 100) / 100:.2f}",  # a lower bound is rounded down
            certified=round_up(self.certified_epsilon),
            delta=compact(self.delta),
            confidence=describe_confidence(self.confidence),
        )


def describe_confidence(confidence: float) -> str:
    """Return a confidence in percent, with the digits that tell it from 100 %."""
    return f"{confidence * 100:.8g} %"


def parse_audits(listed: Iterable[Any]) -> list[AuditRecord]:
    """Return the audits of a list that a file holds; what is no audit is left out."""
    found = []
    for each in listed:
        with suppress(DiscreetError):  # of another version
            found.append(from_plain(AuditRecord, each))
    return found


def read_audits(run_dir: Path) -> list[AuditRecord]:
    """Return the audits of a run, the newest last. A damaged file has none; a report says that it is damaged."""
    listed = (RunFiles(run_dir).json(AUDIT) or {}).get("audits")
    return parse_audits(listed if isinstance(listed, list) else ())


def add_audit(run_dir: Path, record: AuditRecord) -> Path:
    """Add an audit to a run, whole or not at all. Earlier ones stay: what they measured remains true.

    Returns:
        The file that was written.

    Raises:
        InvalidInput: The file of earlier audits is damaged.
    """
    content = json.dumps({"audits": [*stored_audits(run_dir), to_plain(record)]}, indent=2, ensure_ascii=False) + "\n"
    write_durably(run_dir / AUDIT, content.encode())
    return run_dir / AUDIT


def stored_audits(run_dir: Path) -> list[Any]:
    """Return the audits that a run keeps as plain data, those of another version too.

    Raises:
        InvalidInput: There is a file that can't be read, so that writing it again would lose what it holds.
    """
    path = run_dir / AUDIT
    if not path.exists():
        return []
    listed = (RunFiles(run_dir).json(AUDIT) or {}).get("audits")
    if not isinstance(listed, list):
        raise InvalidInput(
            f"{path} must be JSON with a list of the audits of this run, and it is damaged.",
            fix=f"Nothing was changed. Repair it, or keep it under another name: mv {path} {path}.damaged",
        )
    return listed


def strongest_audits(records: Iterable[AuditRecord]) -> list[AuditRecord]:
    """Return for each unit, observer and kind of data every alarm, or else the audit with the largest lower bound."""
    groups: dict[tuple[str, str, str], list[AuditRecord]] = {}
    for record in records:
        groups.setdefault((unit_name(record.unit), record.view, record.data), []).append(record)
    shown = []
    for group in groups.values():
        alarms = [record for record in group if record.is_alarm]
        shown += alarms or [max(group, key=lambda record: record.lower_bound)]
    return shown
