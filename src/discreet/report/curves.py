"""Pictures as data: curves, limits, marks and panels, before anything draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Point(NamedTuple):
    """One value of a curve."""

    x: float
    y: float


class Curve(NamedTuple):
    """A line through its points, in their order; a value that is not finite is a gap.

    Attributes:
        name: Its name in the legend. Curves of one name share colour and symbol.
        points: Its points.
        dashed: Whether it is only a claim, or outside the range where it holds.
    """

    name: str
    points: tuple[Point, ...]
    dashed: bool = False


class Limit(NamedTuple):
    """A dashed vertical line at one x, where a bound stops holding."""

    name: str
    x: float


class Mark(NamedTuple):
    """A highlighted point, such as the best number of epochs."""

    name: str
    point: Point


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its curves.

    Attributes:
        title: Its title.
        x_label: The label of the x-axis, with its unit.
        y_label: The label of the y-axis, with its unit.
        curves: The curves, in the order in which they are drawn.
        limits: Where bounds stop holding.
        marks: Highlighted points.
        log_x: Whether the x-axis is logarithmic.
        log_y: Whether the y-axis is logarithmic.
        whole_x: Whether x counts something, so that only whole numbers are labelled.
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False


@dataclass(frozen=True)
class Picture:
    """Panels that belong together, with notes: one sentence each about how to read them."""

    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()


def curve(name: str, xs: Sequence[float], ys: Sequence[float], *, dashed: bool = False) -> Curve:
    """Return the curve through the points (x, y) of two lists of the same length."""
    return Curve(name, tuple(Point(x, y) for x, y in zip(xs, ys, strict=True)), dashed)
