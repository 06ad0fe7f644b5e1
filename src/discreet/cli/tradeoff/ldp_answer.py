"""What `discreet tradeoff ldp` answers, as JSON and as a page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.output import PIPE_WIDTH
from discreet.part import plain
from discreet.privacy.wording import brief, rounded_down, rounded_up

if TYPE_CHECKING:
    from discreet.report.curves import Picture
    from discreet.theory.noisy_sgd import Group, Joint, Row
    from discreet.theory.utility import Learning, Utility

NAMES = {
    "theorem1": "Theorem 1",
    "moments": "moments",
    "ac1": "AC1",
    "ac2": "AC2",
    "exact per_example": "exact, C",
    "exact minibatch": "exact, 2C",
    "exact per_example_mean": "exact, mean",
}
NOTHING = "–"
SENSITIVITIES = (
    "C: each example is clipped, so that one moves the sum by C. 2C: the batch's mean is clipped, as in the paper, and "
    "one example moves that by up to 2C. True ε is certified by PLD"
)
HANDED_OUT = (
    "The paper hands out max(σ², 1), at which its utility, bits and true ε are read, or nothing where σ² is not "
    "positive; exact noise is taken as it is"
)
HOLDS = "A bound of the paper holds where its conditions do; it drops O(·) terms even so. AC1 has its square back"
SUMS = (
    "At C, noise lies on a sum, and utility and bits take it as the paper takes its own; with a number of examples, a "
    "row more has it over the expected batch, as it is sent"
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
    rows: "Sequence[Mapping[str, Row]]"
    joint: "Mapping[str, Joint]"

    @property
    def utility(self) -> "Utility":
        """Any of them: where the proof holds, and why not, does not depend on the noise."""
        return next(found.utility for found in self.joint.values() if found.utility is not None)

    @property
    def notes(self) -> list[str]:
        return [f"{each}." for each in (SENSITIVITIES, HANDED_OUT, HOLDS, SUMS, BITS.format(step=brief(self.step)))]

    def data(self) -> dict[str, Any]:
        """`bounds` of clients who are alike; or `groups`, with the bounds of each, and `joint`, of all."""
        learning = plain(self.learning)
        asked = {"clip": learning.pop("clip_norm"), **learning, "delta": self.groups[0].promise.delta}
        common = {
            **asked,
            "step": self.step,
            "unit": "example",
            "relation": "add_or_remove",
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
            f"SGD with local noise (paper 001): {self.learning.rounds:,} rounds, {self.learning.dimension:,} weights, "
            f"δ = {brief(self.groups[0].promise.delta)}."
        )
        several = len(self.groups) > 1
        for place, (group, rows) in enumerate(zip(self.groups, self.rows, strict=True), start=1):
            yield ""
            yield f"Group {place}: {_told(group)}." if several else f"{_told(group)}."
            yield _table(rows, {} if several else self.joint)
            yield from (f"  {NAMES[name]}: {row.reason}." for name, row in rows.items() if row.reason)
        if several:
            yield ""
            yield "All together:"
            yield _grid(("σ² of the average", "holds", "utility"), map(_summed, self.joint.items()))
        yield ""
        if self.utility.reason:
            yield f"Utility is not proved here: {self.utility.reason}."
        yield from self.notes

    def picture(self) -> "Picture":
        from discreet.cli.tradeoff.ldp_picture import picture

        return picture(self.groups[0], self.learning, self.step)


def _told(group: "Group") -> str:
    promise, plural = group.promise, "s" if group.clients > 1 else ""
    examples = f" with {group.examples:,} examples each" if group.examples else ""
    drawn = f"sampling at {brief(promise.sampling_rate)}, promised ε = {brief(promise.epsilon)}"
    return f"{group.clients:,} client{plural}{examples}, {drawn}"


def _table(rows: "Mapping[str, Row]", joint: "Mapping[str, Joint]") -> RenderableType:
    headings = ["σ²", "true ε,\nC", "and\n2C", "bits,\nprinted", "bits,\ntrue", "holds"]
    return _grid([*headings, "utility"] if joint else headings, (_line(name, row, joint) for name, row in rows.items()))


def _line(name: str, row: "Row", joint: "Mapping[str, Joint]") -> Iterable[str]:
    yield NAMES[name]
    yield brief(row.noise_variance, 5) if row.domain else rounded_up(row.noise_variance)
    for clipping in ("per_example", "minibatch"):
        yield rounded_up(row.certified[clipping]) if clipping in row.certified else NOTHING
    yield from map(_whole, (row.bits.printed, row.bits.corrected)) if row.bits else (NOTHING, NOTHING)
    yield _yes(row.valid)
    if joint:
        yield _useful(joint[name])


def _summed(named: "tuple[str, Joint]") -> Sequence[str]:
    name, found = named
    variance = NOTHING if found.noise_variance is None else rounded_up(found.noise_variance)
    return NAMES[name], variance, _yes(found.valid), _useful(found)


def _whole(bits: float) -> str:
    """All digits of what is short, four of what is long: no column is wider than nine."""
    return f"{bits:,.0f}" if abs(bits) < 1e6 else brief(bits, 4)


def _useful(found: "Joint") -> str:
    return NOTHING if found.utility is None else rounded_down(found.utility.printed)


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


def _yes(valid: bool) -> str:
    return "yes" if valid else "no"


def _group(group: "Group") -> dict[str, Any]:
    promise = group.promise
    return {
        "clients": group.clients,
        "sampling_rate": promise.sampling_rate,
        "examples": group.examples,
        "epsilon": promise.epsilon,
    }


def _row(row: "Row", group: "Group") -> dict[str, Any]:
    found = {
        "noise_variance": row.noise_variance,
        "handed_out": row.handed_out,
        "forms": dict(row.forms),
        "rate_bits": row.bits and {**row.bits._asdict(), "printed_holds": row.bits.printed_holds},
        "true_epsilon": dict(row.certified) or None,
        "claim_holds": {clipping: each <= group.promise.epsilon for clipping, each in row.certified.items()} or None,
        "valid": row.valid,
        "reason": row.reason,
    }
    return found if row.domain is None else found | {"domain": row.domain._asdict()}


def _joint(found: "Joint") -> dict[str, Any]:
    return {
        "noise_variance": found.noise_variance,
        **_learned(found),
        "valid": found.valid,
        "reason": found.reason,
    }


def _learned(found: "Joint") -> dict[str, Any]:
    printed, proved = (found.utility.printed, found.utility.proved) if found.utility else (None, None)
    return {"utility": printed, "utility_proved": proved}


def _nested(found: Mapping[str, Any]) -> dict[str, Any]:
    """`exact per_example` as `exact`: `per_example`."""
    exact = {name.removeprefix("exact "): each for name, each in found.items() if name.startswith("exact ")}
    return {name: each for name, each in found.items() if not name.startswith("exact ")} | {"exact": exact}
