"""Local noise: privacy, utility and bits by the bounds of Kim, Günlü & Schaefer 2021, and by our accountant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from discreet.errors import InvalidInput
from discreet.part import to_plain
from discreet.planning.curves.number_tables import format_whole, number_table
from discreet.planning.theory import kim_client_groups
from discreet.planning.theory.kim_client_groups import Group, GroupRow, JointRow
from discreet.planning.theory.kim_exact_noise import Clipping
from discreet.planning.theory.kim_utility import Learning, Utility
from discreet.privacy.wording import compact, round_down, round_up
from discreet.report.curves import Picture
from discreet.report.number_format import format_count

BOUND_NAMES = {
    "theorem1": "Theorem 1",
    "moments": "moments",
    "ac1": "AC1",
    "ac2": "AC2",
    "exact per_example": "exact, C",
    "exact minibatch": "exact, 2C",
    "exact per_example_mean": "exact, mean",
}
EXACT_PREFIX, EXACT_SUM = "exact ", "exact per_example"
NOTHING = "–"
HEADINGS = ("", "σ²", "true ε,\nC", "and\n2C", "bits,\nprinted", "bits,\ntrue", "condi-\ntions")
SENSITIVITY_NOTE = (
    "C: each example is clipped, so that one moves the sum by C. 2C: the batch's mean is clipped, as in the paper, and "
    "one example moves it by up to 2C. True ε is certified by PLD"
)
APPLIED_NOISE_NOTE = (
    "The paper's clients add max(σ², 1), at which its utility, bits and true ε are computed, or nothing where σ² is "
    "not positive; exact noise is used as it is"
)
CONDITIONS_NOTE = (
    "Conditions are those of Theorem 1. Where they are met a bound still drops O(·) terms and may break its promise: "
    "compare true ε. AC1 has its square restored"
)
BROKEN_NOTE = "* More than the promised ε: the promise is broken"
SUMS_NOTE = (
    "At C, the noise is on a sum of clipped gradients, and clients send that sum divided by the batch: no utility or "
    "bits are shown for the sum, and with --examples one more row has those of what is sent. JSON also has the sum's, "
    "computed as the paper computes its own"
)
BITS_NOTE = (
    "Bits are a differential entropy less d·log2(step), step {step}. The printed bits are below what the noise alone "
    "takes from 2πe·C² weights on; the true bits are an upper bound"
)


@dataclass(frozen=True)
class LdpTradeoff:
    """What each bound says about each group of clients, and about all groups together.

    Attributes:
        step: What is sent is rounded to multiples of this.
        rows: One mapping of bounds for each group.
        joint: One row for each bound, over all groups.
    """

    groups: Sequence[Group]
    learning: Learning
    step: float
    rows: Sequence[Mapping[str, GroupRow]]
    joint: Mapping[str, JointRow]

    @property
    def utility(self) -> Utility:
        """Any of the utilities: whether the proof holds, and why not, doesn't depend on the noise."""
        return next(row.utility for row in self.joint.values() if row.utility is not None)

    @property
    def notes(self) -> list[str]:
        bits = BITS_NOTE.format(step=compact(self.step))
        return [f"{note}." for note in (SENSITIVITY_NOTE, APPLIED_NOISE_NOTE, CONDITIONS_NOTE, SUMS_NOTE, bits)]

    @property
    def keeps_promises(self) -> bool:
        """Whether no noise costs more than the ε it was asked for, however gradients are clipped."""
        pairs = zip(self.groups, self.rows, strict=True)
        return all(all(_kept_claims(row, group).values()) for group, rows in pairs for row in rows.values())

    def data(self) -> dict[str, Any]:
        """Return `bounds` for one group; or `groups`, each with its bounds, and `joint` for all of them."""
        learning = to_plain(self.learning)
        common = {
            "clip": learning.pop("clip_norm"),
            **learning,
            "delta": self.groups[0].promise.delta,
            "step": self.step,
            "unit": "example",
            "relation": "zero_out",
            "utility_proof": {"valid": self.utility.valid, "reason": self.utility.reason},
            "notes": self.notes,
        }
        if len(self.groups) == 1:
            rows = {
                name: _describe_row(row, self.groups[0]) | _describe_utility(self.joint[name])
                for name, row in self.rows[0].items()
            }
            return {"bounds": _nest_exact(rows), **_describe_group(self.groups[0]), **common}
        groups = [
            {
                **_describe_group(group),
                "bounds": _nest_exact({name: _describe_row(row, group) for name, row in rows.items()}),
            }
            for group, rows in zip(self.groups, self.rows, strict=True)
        ]
        joint = _nest_exact({name: _describe_joint(row) for name, row in self.joint.items()})
        return {"groups": groups, "joint": joint, **common}

    def page(self) -> Iterator[RenderableType]:
        yield (
            f"SGD with local noise (Kim, Günlü & Schaefer 2021): {format_count(self.learning.rounds, 'rounds')}, "
            f"{format_count(self.learning.dimension, 'weights')}, δ = {compact(self.groups[0].promise.delta)}."
        )
        has_groups = len(self.groups) > 1
        for place, (group, rows) in enumerate(zip(self.groups, self.rows, strict=True), start=1):
            yield ""
            yield f"Group {place}: {_summarize_group(group)}." if has_groups else f"{_summarize_group(group)}."
            joint = {} if has_groups else self.joint
            cells = (_cells(name, row, group, joint) for name, row in rows.items())
            yield number_table([*HEADINGS, "utility"] if joint else HEADINGS, cells, names=1, wrap=False)
            yield from (f"  {BOUND_NAMES[name]}: {row.reason}." for name, row in rows.items() if row.reason)
        if has_groups:
            yield ""
            yield "All together:"
            cells = (_joint_cells(name, row) for name, row in self.joint.items())
            yield number_table(("", "σ² of the average", "conditions", "utility"), cells, names=1, wrap=False)
        yield ""
        if not self.keeps_promises:
            yield f"{BROKEN_NOTE}."
        if self.utility.reason:
            yield f"Utility is not proved here: {self.utility.reason}."
        yield from self.notes

    def picture(self) -> Picture:
        if len(self.groups) > 1:
            raise InvalidInput("A picture shows clients with the same numbers only.", fix="Give one --group, or none.")
        from discreet.planning.curves.ldp_picture import draw_ldp

        return draw_ldp(self.groups[0], self.learning, self.step)


def compute_ldp_tradeoff(groups: Sequence[Group], learning: Learning, step: float) -> LdpTradeoff:
    """Evaluate every bound of the paper, and our exact noise, for these groups of clients."""
    return LdpTradeoff(groups, learning, step, *kim_client_groups.evaluate_groups(groups, learning, step))


def _summarize_group(group: Group) -> str:
    promise = group.promise
    examples = f" with {format_count(group.examples, 'examples')} each" if group.examples else ""
    promised = f"sampling rate {compact(promise.sampling_rate)}, promised ε = {compact(promise.epsilon)}"
    return f"{format_count(group.clients, 'clients')}{examples}, {promised}"


def _cells(name: str, row: GroupRow, group: Group, joint: Mapping[str, JointRow]) -> Iterable[str]:
    yield BOUND_NAMES[name]
    yield compact(row.noise_variance, 5) if row.domain else round_up(row.noise_variance)
    for clipping in ("per_example", "minibatch"):
        epsilon = row.certified_epsilons.get(clipping)
        broken = epsilon is not None and epsilon > group.promise.epsilon
        yield NOTHING if epsilon is None else f"{round_up(epsilon)}{'*' if broken else ''}"
    bits = row.bits if name != EXACT_SUM else None
    yield from (format_whole(count, 4) for count in (bits.printed, bits.corrected)) if bits else (NOTHING, NOTHING)
    yield _describe_conditions(name, valid=row.valid)
    if joint:
        yield _utility_cell(name, joint[name])


def _joint_cells(name: str, row: JointRow) -> tuple[str, ...]:
    variance = NOTHING if row.noise_variance is None else round_up(row.noise_variance)
    return BOUND_NAMES[name], variance, _describe_conditions(name, valid=row.valid), _utility_cell(name, row)


def _kept_claims(row: GroupRow, group: Group) -> dict[Clipping, bool]:
    """Return whether the noise keeps the promise, for each way to clip gradients."""
    return {clipping: epsilon <= group.promise.epsilon for clipping, epsilon in row.certified_epsilons.items()}


def _utility_cell(name: str, row: JointRow) -> str:
    return NOTHING if row.utility is None or name == EXACT_SUM else round_down(row.utility.printed_bound)


def _describe_conditions(name: str, *, valid: bool) -> str:
    return "none" if name.startswith(EXACT_PREFIX) else "met" if valid else "broken"


def _describe_group(group: Group) -> dict[str, Any]:
    promise = group.promise
    return {
        "clients": group.clients,
        "sampling_rate": promise.sampling_rate,
        "examples": group.examples,
        "epsilon": promise.epsilon,
    }


def _describe_row(row: GroupRow, group: Group) -> dict[str, Any]:
    described = {
        "noise_variance": row.noise_variance,
        "handed_out": row.applied_variance,
        "forms": dict(row.forms),
        "rate_bits": row.bits and {**row.bits._asdict(), "printed_holds": row.bits.printed_holds},
        "true_epsilon": dict(row.certified_epsilons) or None,
        "claim_holds": _kept_claims(row, group) or None,
        "valid": row.valid,
        "reason": row.reason,
    }
    return described if row.domain is None else described | {"domain": row.domain._asdict()}


def _describe_joint(row: JointRow) -> dict[str, Any]:
    return {
        "noise_variance": row.noise_variance,
        **_describe_utility(row),
        "valid": row.valid,
        "reason": row.reason,
    }


def _describe_utility(row: JointRow) -> dict[str, Any]:
    printed, proved = (row.utility.printed_bound, row.utility.proved_bound) if row.utility else (None, None)
    return {"utility": printed, "utility_proved": proved}


def _nest_exact(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Turn `exact per_example` into `exact`: `per_example`."""
    exact = {name.removeprefix(EXACT_PREFIX): row for name, row in rows.items() if name.startswith(EXACT_PREFIX)}
    return {name: row for name, row in rows.items() if not name.startswith(EXACT_PREFIX)} | {"exact": exact}
