"""Detect torch datasets that share examples: the same dataset object, or subsets of one dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from discreet.errors import InvalidInput
from discreet.lazy_torch import torch

Origin: TypeAlias = tuple[int, int]  # (id of the underlying dataset, index of the item in it)


def check_multiplicity(datasets: Sequence[torch.utils.data.Dataset[Any]], most: int) -> None:
    """Refuse an item that more than `most` clients hold, or that one client holds twice.

    Guarantee: what is refused does overlap. What passes may overlap too, because copies of an example are not detected.
    """
    held: Counter[Origin] = Counter()
    for number, dataset in enumerate(datasets):
        own = Counter(_origins(dataset))
        item, times = max(own.items(), key=lambda entry: entry[1], default=((0, 0), 1))
        if times > 1:
            raise InvalidInput(
                f"Dataset {number} contains item {item[1]} of its underlying dataset {times} times, and a guarantee "
                "for one example is for one copy of it.",
                fix="Let each client hold an example once.",
            )
        held.update(own.keys())
    item, clients = max(held.items(), key=lambda entry: entry[1], default=((0, 0), 1))
    if clients > most:
        raise InvalidInput(
            f"{clients} datasets contain the same example (item {item[1]} of one dataset), and max_multiplicity = "
            f"{most} says that at most {most} {'does' if most == 1 else 'do'}.",
            fix=f"Give each client items of its own, or set max_multiplicity={clients}: ε then counts all of them.",
        )


def _origins(dataset: Any) -> list[Origin]:
    """Return the origin of each item. A dataset without a length counts as one item: it can be read only once."""
    if isinstance(dataset, torch.utils.data.Subset):
        inner = _origins(dataset.dataset)
        return [inner[int(index)] for index in dataset.indices]
    if isinstance(dataset, torch.utils.data.ConcatDataset):
        return [origin for part in dataset.datasets for origin in _origins(part)]
    return [(id(dataset), index) for index in range(len(dataset) if hasattr(dataset, "__len__") else 1)]
