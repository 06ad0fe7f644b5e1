"""Read the items of torch datasets into two tensors, with an estimate of the memory and a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from discreet.data.tasks.array_conversion import as_tensor
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch

OnItem: TypeAlias = Callable[[str, int, int], None]  # (what is read, items done, items in all)
STEP = 256  # items between two updates of the bar


def read_items(datasets: Mapping[str, Any], on_progress: OnItem) -> tuple[Tensor, Tensor]:
    """Read every item of the datasets once, in their order, and return all inputs and all targets.

    Args:
        datasets: The datasets by their names, which messages use.
        on_progress: Is called now and then.

    Raises:
        InvalidInput: A dataset is empty, an item is not like the first one, or the items don't fit into memory.
    """
    for which, dataset in datasets.items():
        if not len(dataset):
            raise InvalidInput(f"Every client needs an example, and {which} has none.", fix="Leave it out.")
    total = sum(map(len, datasets.values()))
    first, inputs, targets = None, torch.empty(0), torch.empty(0)
    done = 0
    for which, dataset in datasets.items():
        for index in range(len(dataset)):
            pair = _read_pair(dataset, index, which)
            if first is None:
                first = _Kind(which, *pair)
                what = first.describe_reading(total)
                inputs, targets = first.allocate(total)
            first.check(which, index, *pair)
            inputs[done], targets[done] = pair
            done += 1
            if done % STEP == 0 or done == total:
                on_progress(what, done, total)
    return inputs, targets


class _Kind:
    """Shape and type of the first item, which all others must have."""

    def __init__(self, which: str, one: Tensor, target: Tensor) -> None:
        self.which, self.pair = which, (one, target)
        self.bytes = sum(part.numel() * part.element_size() for part in self.pair)

    def describe_reading(self, total: int) -> str:
        return f"reading {total:,} examples (about {_format_bytes(total * self.bytes)})"

    def allocate(self, total: int) -> tuple[Tensor, Tensor]:
        """Return two tensors for all items, unless they would not fit into memory."""
        needed, free = total * self.bytes, _free_memory()
        if free is not None and needed > free:
            raise InvalidInput(
                f"{total:,} examples like the first one need about {_format_bytes(needed)} of memory, and "
                f"{_format_bytes(free)} is free.",
                fix="Make the inputs smaller in the datasets' transforms, or pass fewer examples.",
            )
        one, target = (part.new_empty((total, *part.shape)) for part in self.pair)
        return one, target

    def check(self, which: str, index: int, one: Tensor, target: Tensor) -> None:
        for what, part, first in (("inputs", one, self.pair[0]), ("targets", target, self.pair[1])):
            if part.shape != first.shape:
                raise InvalidInput(
                    f"The {what} differ in shape: the first one of {self.which} has {tuple(first.shape)}, and number "
                    f"{index} of {which} has {tuple(part.shape)}.",
                    fix="Crop or pad them to one shape.",
                )
            if part.dtype != first.dtype:
                kinds = {True: "a decimal number", False: "a whole number"}
                raise InvalidInput(
                    f"The {what} differ in type: the first one of {self.which} is {kinds[first.is_floating_point()]}, "
                    f"and number {index} of {which} is {kinds[part.is_floating_point()]}.",
                    fix="Give all of them one type in the datasets.",
                )


def _read_pair(dataset: Any, index: int, which: str) -> tuple[Tensor, Tensor]:
    """Read one item, as tensors of the types that tasks have."""
    item = dataset[index]
    is_pair = not isinstance(item, Mapping | str) and isinstance(item, Sized) and len(item) == 2
    if not is_pair:
        raise InvalidInput(
            f"The items of {which} must be pairs (input, target), and item {index} is {_describe_item(item)}.",
            fix="Return `input, target` from the dataset's __getitem__.",
        )
    try:
        one, target = (
            as_tensor("item", part if isinstance(part, torch.Tensor) else torch.as_tensor(part)) for part in item
        )
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"The items of {which} must be pairs (input, target) with numbers in both: {error}.",
            fix="Turn images into tensors with the dataset's transform.",
        ) from None
    return one, target


def _describe_item(item: Any) -> str:
    kind = f"of the class {type(item).__name__}"
    return f"{kind} with {len(item)} values" if isinstance(item, tuple | list | Mapping) else kind


@contextmanager
def show_reading(wanted: bool | None) -> Iterator[OnItem]:
    """Show a bar while items are read; by default in a terminal, where it disappears at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (wanted or (wanted is None and console.is_terminal)):
        yield lambda what, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn(compact=True))
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task("")
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def _free_memory() -> int | None:
    """Return the bytes that the kernel calls available. None where it doesn't say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _format_bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1000:.1f} kB"
