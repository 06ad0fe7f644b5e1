"""Curves as data: what a picture shows, before anything draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Point(NamedTuple):
    x: float
    y: float


@dataclass(frozen=True)
class Curve:
    """A line through its points, in their order; one that is only a claim, or beyond where it holds, is dashed.

    A value that is not finite is a gap.
    """

    name: str
    points: tuple[Point, ...]
    dashed: bool = False


@dataclass(frozen=True)
class Limit:
    """A dashed line across the panel at one x: where a bound stops to hold."""

    name: str
    x: float


@dataclass(frozen=True)
class Mark:
    """One point that the eye should find: a best E, a best T."""

    name: str
    at: Point


@dataclass(frozen=True)
class Panel:
    """One pair of axes. `up` and `across` say what is measured, and in which unit."""

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    limits: tuple[Limit, ...] = ()
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    log_y: bool = False
    whole_x: bool = False  # what lies across is counted, so that between two whole numbers nothing is named


@dataclass(frozen=True)
class Picture:
    """Panels that belong together, and what a reader has to know to read them right, a sentence each."""

    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()


def curve(name: str, xs: Sequence[float], ys: Sequence[float], *, dashed: bool = False) -> Curve:
    return Curve(name, tuple(Point(x, y) for x, y in zip(xs, ys, strict=True)), dashed)
