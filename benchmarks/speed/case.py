"""A case of the benchmark: one piece of work, and the sides that do it, ours and its peers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from discreet.client_layers.precision import GradientPrecision

OURS = "discreet"
COMPILED = "discreet, compiled"  # with the setting `compile`

Size: TypeAlias = Mapping[str, int]


class Setting(NamedTuple):
    """Where and how a case is measured.

    Attributes:
        device: "cpu" or "cuda".
        precision: What both sides compute in.
        size: The numbers that say how much work it is, by their names.
    """

    device: str
    precision: GradientPrecision
    size: Size


@dataclass(frozen=True)
class Contestant:
    """One side, ready to work.

    Attributes:
        run: Does the work once.
        loss: Returns the loss of its model on fixed examples, or another number that all sides must agree on. None if
            there is nothing to compare.
        scale: By what its time is multiplied, since it does only a part of the work.
    """

    run: Callable[[], object]
    loss: Callable[[], float] | None = None
    scale: float = 1.0


Sides: TypeAlias = dict[str, Callable[[], Contestant]]  # by name, ours first; a peer that is not installed is left out


@dataclass(frozen=True)
class Case:
    """One piece of work.

    Attributes:
        name: How `--case` names it.
        title: Its heading on the page.
        work: What is done once, in a sentence with the names of the sizes in braces.
        sizes: How much of it, by device; "tiny" is the size of the tests.
        sides: Builds the sides for a setting.
        precisions: What both sides compute in, by device.
        checked: How often each side works before the losses are compared, and before the clock runs.
        tolerance: How far the progress of a side may be from ours, as a share of ours; the values themselves if
            `is_exact`.
        is_exact: Whether the sides must give the same number, rather than make the same progress.
        goals: The least ratio that is wanted, by device.
        against: How the names of the peers begin that the goals are about; all of them if it is empty.
        most_seconds: How long ours may take at most, by device.
        peers: What the page says of the peers.
    """

    name: str
    title: str
    work: str
    sizes: Mapping[str, Size]
    sides: Callable[[Setting], Sides]
    precisions: Mapping[str, tuple[GradientPrecision, ...]] = field(default_factory=lambda: {"cpu": ("float32",)})
    checked: int = 3
    tolerance: float = 0.15
    is_exact: bool = False
    goals: Mapping[str, float] = field(default_factory=dict)
    against: str = ""
    most_seconds: Mapping[str, float] = field(default_factory=dict)
    peers: str = ""

    def describe(self, size: Size) -> str:
        """Say what is done once at this size."""
        return self.work.format(**size)
