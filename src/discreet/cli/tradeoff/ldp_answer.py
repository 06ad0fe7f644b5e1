"""What `discreet tradeoff ldp` answers, as JSON and as a page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.output import PIPE_WIDTH
from discreet.cli.tradeoff.sweep_rows import counted
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_down, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.kim_client_groups import Group, GroupRow, JointRow
    from discreet.planning.theory.kim_exact_noise import Clipping
    from discreet.planning.theory.kim_utility import Learning, Utility
    from discreet.report.curves import Picture

NAMES = {
    "theorem1": "Theorem 1",
    "moments": "moments",
    "ac1": "AC1",
    "ac2": "AC2",
    "exact per_example": "exact, C",
    "exact minibatch": "exact, 2C",
    "exact per_example_mean": "exact, mean",
}
EXACT, OF_A_SUM = "exact ", "exact per_example"
NOTHING = "–"
SENSITIVITIES = (
    "C: each example is clipped, so that one moves the sum by C. 2C: the batch's mean is clipped, as in the paper, and "
    "one example moves that by up to 2C. True ε is certified by PLD"
)
HANDED_OUT = (
    "The paper hands out max(σ², 1), at which its utility, bits and true ε are read, or nothing where σ² is not "
    "positive; exact noise is taken as it is"
)
CONDITIONS = (
    "Conditions are Theorem 1's. Where they are met a bound still drops O(·) terms, and its promise may not be kept: "
    "true ε says. AC1 has its square back"
)
BROKEN = "* More than the ε that is promised: the promise is not kept"
SUMS = (
    "At C, noise lies on a sum of clipped gradients, and what is sent is that over the batch: no utility or bits are "
    "shown of the sum, and with --examples a row more has those of what is sent. JSON has the sum's too, taken as the "
    "paper takes its own"
)
BITS = (
    "Bits are a differential entropy less d·log2(step), step {step}. Printed is below what the noise alone takes from "
    "2πe·C² weights on; true is at most"
)


@dataclass(frozen=True)
class Answer:
    """What was asked, and what each way to count says of each group of clients, and of all together."""

    groups: "Sequence[Group]"
    learning: "Learning"
    step: float
    rows: "Sequence[Mapping[str, GroupRow]]"
    joint: "Mapping[str, JointRow]"

    @property
    def utility(self) -> "Utility":
        """Any of them: where the proof holds, and why not, does not depend on the noise."""
        return next(found.utility for found in self.joint.values() if found.utility is not None)

    @property
    def notes(self) -> list[str]:
        bits = BITS.format(step=compact(self.step))
        return [f"{each}." for each in (SENSITIVITIES, HANDED_OUT, CONDITIONS, SUMS, bits)]

    @property
    def kept(self) -> bool:
        """Whether no noise costs more than it was asked for, however gradients are clipped."""
        pairs = zip(self.groups, self.rows, strict=True)
        return all(all(_claims(row, group).values()) for group, rows in pairs for row in rows.values())

    def data(self) -> dict[str, Any]:
        """`bounds` of clients who are alike; or `groups`, with the bounds of each, and `joint`, of all."""
        learning = to_plain(self.learning)
        asked = {"clip": learning.pop("clip_norm"), **learning, "delta": self.groups[0].promise.delta}
        common = {
            **asked,
            "step": self.step,
            "unit": "example",
            "relation": "zero_out",
            "utility_proof": {"valid": self.utility.valid, "reason": self.utility.reason},
            "notes": self.notes,
        }
        if len(self.groups) == 1:
            found = {name: _row(row, self.groups[0]) | _learned(self.joint[name]) for name, row in self.rows[0].items()}
            return {"bounds": _nested(found), **_group(self.groups[0]), **common}
        each = [
            {**_group(group), "bounds": _nested({name: _row(row, group) for name, row in rows.items()})}
            for group, rows in zip(self.groups, self.rows, strict=True)
        ]
        return {"groups": each, "joint": _nested({name: _joint(found) for name, found in self.joint.items()}), **common}

    def page(self) -> Iterator[RenderableType]:
        yield (
            f"SGD with local noise (paper 001): {counted(self.learning.rounds, 'round')}, "
            f"{counted(self.learning.dimension, 'weight')}, δ = {compact(self.groups[0].promise.delta)}."
        )
        several = len(self.groups) > 1
        for place, (group, rows) in enumerate(zip(self.groups, self.rows, strict=True), start=1):
            yield ""
            yield f"Group {place}: {_told(group)}." if several else f"{_told(group)}."
            yield _table(rows, group, {} if several else self.joint)
            yield from (f"  {NAMES[name]}: {row.reason}." for name, row in rows.items() if row.reason)
        if several:
            yield ""
            yield "All together:"
            yield _grid(("σ² of the average", "conditions", "utility"), map(_summed, self.joint.items()))
        yield ""
        if not self.kept:
            yield f"{BROKEN}."
        if self.utility.reason:
            yield f"Utility is not proved here: {self.utility.reason}."
        yield from self.notes

    def picture(self) -> "Picture":
        from discreet.cli.tradeoff.ldp_picture import picture

        return picture(self.groups[0], self.learning, self.step)


def _told(group: "Group") -> str:
    promise = group.promise
    examples = f" with {counted(group.examples, 'example')} each" if group.examples else ""
    drawn = f"sampling at {compact(promise.sampling_rate)}, promised ε = {compact(promise.epsilon)}"
    return f"{counted(group.clients, 'client')}{examples}, {drawn}"


def _table(rows: "Mapping[str, GroupRow]", group: "Group", joint: "Mapping[str, JointRow]") -> RenderableType:
    headings = ["σ²", "true ε,\nC", "and\n2C", "bits,\nprinted", "bits,\ntrue", "condi-\ntions"]
    lines = (_line(name, row, group, joint) for name, row in rows.items())
    return _grid([*headings, "utility"] if joint else headings, lines)


def _line(name: str, row: "GroupRow", group: "Group", joint: "Mapping[str, JointRow]") -> Iterable[str]:
    yield NAMES[name]
    yield compact(row.noise_variance, 5) if row.domain else round_up(row.noise_variance)
    claims = _claims(row, group)
    for clipping in ("per_example", "minibatch"):
        yield _true(row.certified[clipping], kept=claims[clipping]) if clipping in row.certified else NOTHING
    sent = row.bits if name != OF_A_SUM else None
    yield from map(_whole, (sent.printed, sent.corrected)) if sent else (NOTHING, NOTHING)
    yield _met(name, valid=row.valid)
    if joint:
        yield _useful(name, joint[name])


def _summed(named: "tuple[str, JointRow]") -> Sequence[str]:
    name, found = named
    variance = NOTHING if found.noise_variance is None else round_up(found.noise_variance)
    return NAMES[name], variance, _met(name, valid=found.valid), _useful(name, found)


def _claims(row: "GroupRow", group: "Group") -> "dict[Clipping, bool]":
    """Whether its noise keeps the promise, by how gradients are clipped."""
    return {clipping: each <= group.promise.epsilon for clipping, each in row.certified.items()}


def _true(epsilon: float, *, kept: bool) -> str:
    return f"{round_up(epsilon)}{'' if kept else '*'}"


def _whole(bits: float) -> str:
    """All digits of what is short, four of what is long: no column is wider than nine."""
    return f"{bits:,.0f}" if abs(bits) < 1e6 else compact(bits, 4)


def _useful(name: str, found: "JointRow") -> str:
    return NOTHING if found.utility is None or name == OF_A_SUM else round_down(found.utility.printed)


def _grid(headings: Sequence[str], lines: Iterable[Iterable[str]]) -> Padding:
    """A table whose first column is names; columns move together where numbers are long, and break none of them."""
    rows = [("", *headings), *map(tuple, lines)]
    widths = [max(len(part) for row in rows for part in row[place].split("\n")) for place in range(len(rows[0]))]
    gap = 2 if sum(widths) + 2 * len(widths) <= PIPE_WIDTH else 1
    made = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False)
    for place, heading in enumerate(rows[0]):
        made.add_column(heading, justify="right" if place else "left", vertical="bottom", no_wrap=True)
    for row in rows[1:]:
        made.add_row(*row)
    return Padding(made, (0, 0, 0, 2))


def _met(name: str, *, valid: bool) -> str:
    """Exact noise has no conditions."""
    return "none" if name.startswith(EXACT) else "met" if valid else "broken"


def _group(group: "Group") -> dict[str, Any]:
    promise = group.promise
    return {
        "clients": group.clients,
        "sampling_rate": promise.sampling_rate,
        "examples": group.examples,
        "epsilon": promise.epsilon,
    }


def _row(row: "GroupRow", group: "Group") -> dict[str, Any]:
    found = {
        "noise_variance": row.noise_variance,
        "handed_out": row.handed_out,
        "forms": dict(row.forms),
        "rate_bits": row.bits and {**row.bits._asdict(), "printed_holds": row.bits.printed_holds},
        "true_epsilon": dict(row.certified) or None,
        "claim_holds": _claims(row, group) or None,
        "valid": row.valid,
        "reason": row.reason,
    }
    return found if row.domain is None else found | {"domain": row.domain._asdict()}


def _joint(found: "JointRow") -> dict[str, Any]:
    return {
        "noise_variance": found.noise_variance,
        **_learned(found),
        "valid": found.valid,
        "reason": found.reason,
    }


def _learned(found: "JointRow") -> dict[str, Any]:
    printed, proved = (found.utility.printed, found.utility.proved) if found.utility else (None, None)
    return {"utility": printed, "utility_proved": proved}


def _nested(found: Mapping[str, Any]) -> dict[str, Any]:
    """`exact per_example` as `exact`: `per_example`."""
    exact = {name.removeprefix(EXACT): each for name, each in found.items() if name.startswith(EXACT)}
    return {name: each for name, each in found.items() if not name.startswith(EXACT)} | {"exact": exact}
