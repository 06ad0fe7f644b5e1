"""Panels of curves over one sweep: each curve reads one number from every row."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from discreet.report.curves import Panel, curve

Row = TypeVar("Row")


def sweep_panel(
    title: str,
    axes: tuple[str, str],
    rows: Sequence[Row],
    x: Callable[[Row], float],
    curves: Mapping[str, Callable[[Row], float]],
    *,
    dashed: Sequence[str] = (),
    **options: Any,
) -> Panel:
    """Draw several numbers of the same rows against one of them.

    Args:
        axes: The labels of the x-axis and the y-axis, with units.
        x: Reads the position of a row on the horizontal axis.
        curves: Reads the height of each curve, by the curve's name.
        dashed: The curves that are only claims.
        options: Further fields of the panel: `limits`, `marks`, `log_x`, `log_y`, `whole_x`.
    """
    positions = [x(row) for row in rows]
    lines = (
        curve(name, positions, [height(row) for row in rows], dashed=name in dashed) for name, height in curves.items()
    )
    return Panel(title, *axes, tuple(lines), **options)


def geometric_steps(low: float, high: float, points: int) -> list[float]:
    """Return points from `low` to `high`, evenly spaced on a logarithmic scale."""
    return [float(low * (high / low) ** (place / (points - 1))) for place in range(points)]
