"""The space of a search: random points, all points of a small space, and a point as settings of a file."""

import itertools
import json
import math
import random
from collections.abc import Mapping
from typing import Any, TypeAlias

from discreet.experiment.configuration.tune_table import Choices, Dimension, Interval

Point: TypeAlias = dict[str, Any]  # a value for each searched field
Space: TypeAlias = Mapping[str, Dimension]


def format_settings(point: Point) -> tuple[str, ...]:
    """Write a point as settings that `--set` takes, such as `algorithm.learning_rate=0.3`."""
    return tuple(f"{name}={_format_value(value)}" for name, value in point.items())


def draw_candidates(space: Space, count: int, source: random.Random) -> list[Point]:
    """Return the points that a random search draws its trials from, each once: all of a small space, else `count`."""
    if (size := count_points(space)) is not None and size <= count:
        return list_points(space)
    drawn = (tuple(sorted(draw_point(space, source).items())) for _ in range(count))
    return [dict(point) for point in dict.fromkeys(drawn)]


def draw_point(space: Space, source: random.Random) -> Point:
    """Draw a point of the space uniformly, on a logarithmic scale where one is asked for."""
    return {name: _draw_value(dimension, source) for name, dimension in space.items()}


def count_points(space: Space) -> int | None:
    """Return the number of points of the space. None if it is infinite."""
    sizes = [_count_values(dimension) for dimension in space.values()]
    return None if any(size is None for size in sizes) else math.prod(size for size in sizes if size is not None)


def list_points(space: Space) -> list[Point]:
    """List all points of a finite space."""
    values = [_list_values(dimension) for dimension in space.values()]
    return [dict(zip(space, chosen, strict=True)) for chosen in itertools.product(*values)]


def list_edges(space: Space) -> list[Point]:
    """List points of the space that hold every choice and both ends of every interval, at least once."""
    edges = {name: each.choices if isinstance(each, Choices) else [each.low, each.high] for name, each in space.items()}
    first = {name: values[0] for name, values in edges.items()}
    return [first, *(first | {name: value} for name, values in edges.items() for value in values[1:])]


def _format_value(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str | bool) else repr(value)


def _draw_value(dimension: Dimension, source: random.Random) -> Any:
    if isinstance(dimension, Choices):
        return source.choice(dimension.choices)
    # a whole number is drawn by rounding down from an interval that is one longer
    high = dimension.high + 1 if dimension.is_whole else dimension.high
    if dimension.log:
        value = math.exp(source.uniform(math.log(dimension.low), math.log(high)))
    else:
        value = source.uniform(dimension.low, high)
    value = math.floor(value) if dimension.is_whole else value
    return min(max(value, dimension.low), dimension.high)


def _count_values(dimension: Dimension) -> int | None:
    if isinstance(dimension, Choices):
        return len(dimension.choices)
    return int(dimension.high - dimension.low + 1) if dimension.is_whole else None


def _list_values(dimension: Dimension) -> list[Any]:
    if isinstance(dimension, Choices):
        return list(dimension.choices)
    assert isinstance(dimension, Interval)
    return list(range(int(dimension.low), int(dimension.high) + 1))
