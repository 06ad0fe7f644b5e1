"""What the rows of a comparison promise, in words: different promises are told apart wherever they are drawn."""

import math
from collections.abc import Sequence

from discreet.experiment.run_directory.run_files import json_number
from discreet.privacy.wording import compact, join_words, round_up
from discreet.report.comparison_rows import DECLARED, Row

NO_PROMISE = "no promise (ε = ∞)"
DIFFERENT = "The rows keep different promises, as the legend says: a better value alone is not a better method."


def differ_in_promise(rows: Sequence[Row], axis: str = "") -> bool:
    """Return whether rows promise different things, apart from a field that is on an axis."""
    return len({describe_promises([row], axis) for row in rows if row.results}) > 1


def describe_promises(rows: Sequence[Row], axis: str = "") -> str:
    """Describe what rows promise together: `ε ≤ 2, δ = 1e-5 for one example against the server`.

    Args:
        rows: The rows of one curve or of one symbol.
        axis: The path of the field that is on the x-axis, which is left out: `privacy.epsilon`.
    """
    known = [row for row in rows if row.results]
    epsilons = sorted({promised_epsilon(row) for row in known})
    if not epsilons or epsilons == [math.inf]:
        return NO_PROMISE
    words = []
    if axis != "privacy.epsilon":
        mark = f" {DECLARED}" if any(row.foreign_parts for row in known) else ""
        bounds = [round_up(epsilon) if math.isfinite(epsilon) else "∞" for epsilon in epsilons]
        words.append(f"ε ≤ {bounds[0]}{mark}" if len(bounds) == 1 else f"ε from {bounds[0]} to {bounds[-1]}{mark}")
    if axis != "privacy.delta":
        words.append(f"δ = {join_words(_values(known, 'delta'))}")
    promise = ", ".join(words)
    if axis != "privacy.unit":
        promise += f" for one {join_words(_values(known, 'unit'))}"
    if axis != "privacy.against":
        promise += f" against the {join_words(_values(known, 'against'))}"
    return promise.strip()


def promised_epsilon(row: Row) -> float:
    """Return the ε that was promised; without a promise the one that is certified, infinite without any."""
    promised = (json_number(result.get("promised_epsilon")) for result in row.results)
    known = [epsilon for epsilon in promised if epsilon is not None]
    certified = row.epsilon
    if certified is None or math.isinf(certified):
        return math.inf
    return max(known, default=certified)


def _values(rows: Sequence[Row], name: str) -> list[str]:
    """Return the distinct values of a field of the promise, in order of appearance."""
    values = dict.fromkeys(row.common_value(name) for row in rows if row.common_value(name) is not None)
    return [compact(value) if isinstance(value, float) else str(value) for value in values]
