"""docs/results/speed.md, from the measurements that are kept."""

from collections.abc import Iterable, Iterator, Mapping

import results

from speed.case import COMPILED, OURS, Case
from speed.measurements import Entry, Key, SideTimes

OUR_SIDES = (OURS, COMPILED)
INTRODUCTION = (
    "Written by `python -m benchmarks --write` from [speed.json](speed.json). Ours and its peers do the same work on "
    "the same data with the same network, and take turns in one process, so that both meet the same machine. Before "
    "the clock runs, every side does the same work once more, and the losses are compared: a side that skips work is "
    "refused. A ratio is a side's median time over ours, and quartiles are those over turns. Ours is also measured "
    "with the setting `compile`, and counts by the faster of both; the first round shows what compiling takes. The "
    "inputs are synthetic: no side's time depends on what they show."
)
NOTES = (
    "- **Precision** is that of both sides. On a GPU the peers follow torch's own switches for *tf32*, and autocast "
    "for *bf16*; ours follows its setting `precision`. Where a side can't compute in a precision, its row is missing.",
    "- **Noise** is drawn and added by all sides, but small (a noise multiplier of 1e-6), so that losses can be "
    "compared.",
    "- **Memory** is the most that a side held at once on the GPU, beyond what was there before it.",
)


def render_page(entries: Mapping[Key, Entry], cases: Mapping[str, Case]) -> str:
    """Return the page: the goals, then one section for each case that was measured."""
    known = [entry for entry in entries.values() if entry.case in cases]
    lines = ["# How fast it is", "", INTRODUCTION, "", *NOTES, "", "## Goals", "", *_goals(known, cases)]
    for case in cases.values():
        if mine := [entry for entry in known if entry.case == case.name]:
            lines += ["", f"## {case.title}", "", *_section(case, mine)]
    if left := [f"`{case.name}`" for case in cases.values() if all(entry.case != case.name for entry in known)]:
        lines += ["", "## Not measured yet", "", f"{', '.join(left)}."]
    return "\n".join([*lines, ""])


def _goals(entries: Iterable[Entry], cases: Mapping[str, Case]) -> Iterator[str]:
    yield (
        "Each ratio is the fastest peer's time over ours, both in the same precision; where several were measured, "
        "also that of the fastest of each side."
    )
    yield from ("", "| | beside | precision | measured | goal | |", "|---|---|---|---:|---:|---|")
    for case in cases.values():
        for device in results.DEVICES:
            found = [entry for entry in entries if (entry.case, entry.device) == (case.name, device)]
            what = f"{case.title}: on {results.DEVICES[device]}"
            if device in case.goals:
                yield from _ratio_goals(f"| {what} | {case.against or 'all peers'}", case, case.goals[device], found)
            if device in case.most_seconds:
                yield from _time_goals(f"| {what} | –", case.most_seconds[device], found)


def _ratio_goals(start: str, case: Case, goal: float, entries: list[Entry]) -> Iterator[str]:
    pairs = {entry.precision: pair for entry in entries if (pair := _fastest(entry, case.against)) is not None}
    ratios = {precision: peer / ours for precision, (ours, peer) in pairs.items()}
    if len(pairs) > 1:
        ratios["fastest of each"] = min(peer for _, peer in pairs.values()) / min(ours for ours, _ in pairs.values())
    if not ratios:
        yield f"{start} | – | – | ≥ {goal:g}× | not measured |"
    for precision, ratio in ratios.items():
        yield f"{start} | {precision} | {ratio:.3g}× | ≥ {goal:g}× | {results.verdict(ratio >= goal)} |"


def _time_goals(start: str, goal: float, entries: list[Entry]) -> Iterator[str]:
    times = {entry.precision: side.median for entry in entries if (side := _our_side(entry)) is not None}
    if not times:
        yield f"{start} | – | – | ≤ {_time(goal)} | not measured |"
    for precision, seconds in times.items():
        yield f"{start} | {precision} | {_time(seconds)} | ≤ {_time(goal)} | {results.verdict(seconds <= goal)} |"


def _fastest(entry: Entry, against: str) -> tuple[float, float] | None:
    """Return our median and that of the fastest of these peers. None if one of them was not measured."""
    mine, peers = _our_side(entry), [each for each in entry.sides if each.name not in OUR_SIDES and each.seconds]
    medians = [peer.median for peer in peers if peer.name.startswith(against)]
    return None if mine is None or not medians else (mine.median, min(medians))


def _our_side(entry: Entry) -> SideTimes | None:
    """Return the faster of our sides; None if none was measured."""
    mine = [side for side in entry.sides if side.name in OUR_SIDES and side.seconds]
    return min(mine, key=lambda side: side.median, default=None)


def _section(case: Case, entries: list[Entry]) -> Iterator[str]:
    if case.peers:
        yield from (case.peers, "")
    for number, entry in enumerate(entries):
        yield from [""] * bool(number)
        work = case.describe(entry.size) if entry.size else ""
        yield f"**On {results.DEVICES[entry.device]}, {entry.precision}.** {work}".rstrip()
        yield from ("", "| | precision | median | quartiles | ratio | first round | loss: before → after | memory |")
        yield "|---|---|---:|---:|---:|---:|---:|---:|"
        mine = _our_side(entry)
        for side in entry.sides:
            if side.seconds:
                yield _row(side, mine)
        yield from ("", _provenance(entry))


def _row(side: SideTimes, mine: SideTimes | None) -> str:
    quartiles = side.quartiles
    spread = "–" if quartiles is None else f"{_time(quartiles[0])} to {_time(quartiles[1])}"
    ratio = "–" if mine is None else f"{side.median / mine.median:.2f}"
    losses = "–" if side.losses is None else " → ".join(f"{loss:.4g}" for loss in side.losses)
    memory = "–" if side.memory is None else f"{side.memory / 1e9:.2f} GB"
    scaled = "" if side.scale == 1 else f" (× {side.scale:g})"
    first = "–" if side.first is None else _time(side.first)
    cells = [f"{side.name}{scaled}", side.precision, _time(side.median), spread, ratio, first, losses, memory]
    return f"| {' | '.join(cells)} |"


def _provenance(entry: Entry) -> str:
    turns = min((len(side.seconds) for side in entry.sides), default=0)
    parts = [results.provenance(entry.machine, entry.versions)]
    if turns and not entry.note:
        parts.append(f"{turns} turns" + ("" if turns >= entry.turns else f" of {entry.turns}: unfinished") + ".")
    parts += [f"Measured on {entry.date}."] * bool(entry.date)
    parts += [] if entry.load is None else [f"Load {entry.load:.1f}."]
    return " ".join([*parts, *([entry.note] if entry.note else [])])


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
