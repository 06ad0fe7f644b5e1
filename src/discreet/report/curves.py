"""Pictures as data: curves, limits, marks and panels, before anything draws them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from discreet.privacy.wording import round_up
from discreet.report.number_format import format_number, format_percent

Item = TypeVar("Item")


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
        errors: The standard error of each point, or none at all.
    """

    name: str
    points: tuple[Point, ...]
    dashed: bool = False
    errors: tuple[float, ...] = ()


class Band(NamedTuple):
    """The area between two lines of the same x."""

    name: str
    low: tuple[Point, ...]
    high: tuple[Point, ...]


class Limit(NamedTuple):
    """A dotted vertical line at one x, where a bound stops holding."""

    name: str
    x: float


class Level(NamedTuple):
    """A dashed horizontal line at a y to compare with."""

    name: str
    y: float


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
        y_label: The label of the y-axis, with its unit. Empty if the title says it.
        curves: The curves, in the order in which they are drawn.
        limits: Where bounds stop holding.
        marks: Highlighted points.
        log_x: Whether the x-axis is logarithmic.
        log_y: Whether the y-axis is logarithmic.
        whole_x: Whether x counts something, so that only whole numbers are labelled.
        bands: Areas behind the curves, the widest first: where they overlap, they are darker.
        levels: Values to compare with.
        percent: Whether y is shown in percent.
        from_zero: Whether the y-axis starts at zero. Values in rows then have a line from zero.
        x_names: The names of some x, where a number says less. Only these are labelled.
        as_rows: Whether each named x is a row of its own, with its y along the horizontal axis.
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
    bands: tuple[Band, ...] = ()
    levels: tuple[Level, ...] = ()
    percent: bool = False
    from_zero: bool = False
    x_names: tuple[tuple[float, str], ...] = ()
    as_rows: bool = False

    @property
    def is_epsilon(self) -> bool:
        """Whether y is an ε: an upper bound, whose numbers are rounded up."""
        return (self.y_label or self.title).startswith("ε")

    def format_x(self, x: float) -> str:
        """Write an x of this panel: its name if it has one."""
        return dict(self.x_names).get(x, format_number(x))

    def format_y(self, y: float) -> str:
        """Write a y of this panel, with four digits, or in percent with one decimal."""
        if self.percent:
            return format_percent(y)
        return round_up(y) if self.is_epsilon and math.isfinite(y) else format_number(y)


@dataclass(frozen=True)
class Picture:
    """Panels that belong together, with notes: one sentence each about how to read them."""

    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()


def curve(name: str, xs: Sequence[float], ys: Sequence[float], *, dashed: bool = False) -> Curve:
    """Return the curve through the points (x, y) of two lists of the same length."""
    return Curve(name, tuple(Point(x, y) for x, y in zip(xs, ys, strict=True)), dashed)


def points_by_x(values: Mapping[int, float]) -> tuple[Point, ...]:
    """Return y by x as points, sorted by x."""
    return tuple(Point(x, values[x]) for x in sorted(values))


def thin_points(points: Sequence[Point], most: int) -> list[Point]:
    """Choose about `most` points that look like all of them: the smallest, the largest and a gap of each stretch."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(2 * len(points) / most)
    chosen = {0, len(points) - 1}
    for start in range(0, len(points), size):
        stretch = range(start, min(start + size, len(points)))
        finite = [index for index in stretch if math.isfinite(points[index].y)]
        gaps = [index for index in stretch if not math.isfinite(points[index].y)]
        chosen |= {select(finite, key=lambda index: points[index].y) for select in (min, max) if finite}
        chosen |= set(gaps[:1])
    return [points[index] for index in sorted(chosen)]


def thin_out(items: list[Item], most: int) -> list[Item]:
    """Choose at most `most` of the items, evenly, including the first and the last."""
    if len(items) <= most:
        return items
    step = (len(items) - 1) / (most - 1)
    return [items[round(index * step)] for index in range(most)]
