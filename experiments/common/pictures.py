"""Curves through means with standard errors. The same numbers give the same bytes each time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

from experiments.common.means import mean

matplotlib.use("svg")
from matplotlib import pyplot


def figure(panels: int = 1, rows: int = 1) -> tuple[Any, list[Any]]:
    """Return a picture with this number of panels in each row, and its axes, row by row."""
    width = 6.4 if panels == 1 else 4.6 * panels
    picture, axes = pyplot.subplots(rows, panels, figsize=(width, 3.6 * rows), squeeze=False)
    return picture, list(axes.flat)


def line(axes: Any, by: Mapping[Any, Sequence[float]], label: str, **style: Any) -> None:
    """Draw a line through the means at each place."""
    means = {at: mean(values) for at, values in by.items()}
    errors = [each.error or 0 for each in means.values()]
    heights = [each.value for each in means.values()]
    axes.errorbar(list(means), heights, errors, marker="o", capsize=3, label=label, **style)


def label_axes(axes: Any, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def logarithmic(axes: Any) -> None:
    """Put the horizontal axis on a logarithmic scale, with a tick at each place."""
    places = sorted({float(x) for line in axes.get_lines() for x in line.get_xdata()})
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.minorticks_off()


def make_room_below(axes: Any, share: float = 0.4, place: str = "lower right") -> None:
    """Lower the vertical axis by a share of its length, and put the legend there."""
    low, high = axes.get_ylim()
    axes.set_ylim(low - share * (high - low), high)
    axes.legend(fontsize=7, loc=place)


def save_picture(picture: Any, path: Path, title: str) -> str:
    """Write the picture to a file, and return the line of Markdown that shows it."""
    picture.tight_layout()
    with matplotlib.rc_context({"svg.hashsalt": "discreet"}):  # the same names within a picture each time
        picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)
    return f"![{title}, with standard errors]({path.name})"
