"""Count in how many clients an item of a torch dataset is: the same dataset object, or subsets of one dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from discreet.errors import InvalidInput
from discreet.lazy_torch import torch

Origin: TypeAlias = tuple[int, int]  # (id of the underlying dataset, index of the item in it)


def count_multiplicity(datasets: Sequence[torch.utils.data.Dataset[Any]], declared: int | None) -> int:
    """Return the largest number of clients that hold the same item, or what is declared if that is not less.

    Guarantee: the result is never smaller than the number of clients that share an index of one dataset through torch's
    subsets and joined datasets, and through wrappers that keep a dataset of their own length as `dataset`. Other
    wrappers, and copies of an example, are not detected.

    Raises:
        InvalidInput: More clients share an item than declared, or one client holds an item twice.
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
    if declared is not None and clients > declared:
        raise InvalidInput(
            f"{clients} datasets contain the same example (item {item[1]} of one dataset), and max_multiplicity = "
            f"{declared} says that at most {declared} {'does' if declared == 1 else 'do'}.",
            fix=f"Give each client items of its own, or set max_multiplicity={clients}: ε then counts all of them.",
        )
    return clients if declared is None else declared


def count_trained(datasets: Sequence[torch.utils.data.Dataset[Any]], other: torch.utils.data.Dataset[Any]) -> int:
    """Return how many items of another dataset are also in one of a client, as far as `count_multiplicity` sees."""
    trained = {origin for dataset in datasets for origin in _origins(dataset)}
    return sum(origin in trained for origin in _origins(other))


def _origins(dataset: Any) -> list[Origin]:
    """Return the origin of each item."""
    if isinstance(dataset, torch.utils.data.Subset):
        inner = _origins(dataset.dataset)
        return [inner[int(index)] for index in dataset.indices]
    if isinstance(dataset, torch.utils.data.ConcatDataset):
        return [origin for part in dataset.datasets for origin in _origins(part)]
    wrapped = getattr(dataset, "dataset", None)  # as in a wrapper that transforms each item
    if isinstance(wrapped, torch.utils.data.Dataset) and hasattr(wrapped, "__len__") and len(wrapped) == len(dataset):
        return _origins(wrapped)
    return [(id(dataset), index) for index in range(len(dataset))]
