"""Whether torch datasets hold the same examples, as far as they show it: the same objects, or subsets of one."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from torch.utils.data import ConcatDataset, Dataset, Subset

from discreet.errors import InvalidInput

Origin: TypeAlias = tuple[int, int]  # which dataset an item comes from in the end, and its place there


def check_multiplicity(datasets: Sequence[Dataset[Any]], most: int) -> None:
    """Refuse clients of whom more than `most` are seen to hold one item, and one who holds an item twice.

    Guarantee: what passes may still overlap, as copies don't show; what is refused does.
    """
    held: Counter[Origin] = Counter()
    for number, dataset in enumerate(datasets):
        own = Counter(_origins(dataset))
        item, times = max(own.items(), key=lambda each: each[1], default=((0, 0), 1))
        if times > 1:
            raise InvalidInput(
                f"Dataset {number} holds item {item[1]} of the dataset that it is made from {times} times, and a "
                "guarantee for one example is for one copy of it.",
                fix="Let each client hold an example once.",
            )
        held.update(own.keys())
    item, clients = max(held.items(), key=lambda each: each[1], default=((0, 0), 1))
    if clients > most:
        raise InvalidInput(
            f"{clients} of the datasets hold one example (item {item[1]} of the same dataset), and max_multiplicity = "
            f"{most} says that at most {most} {'does' if most == 1 else 'do'}.",
            fix=f"Give each client items of its own, or say max_multiplicity={clients}, for which ε counts them all.",
        )


def _origins(dataset: Any) -> list[Origin]:
    """Where each item comes from. A dataset without a length is one item: it can't be looked into twice."""
    if isinstance(dataset, Subset):
        inner = _origins(dataset.dataset)
        return [inner[int(place)] for place in dataset.indices]
    if isinstance(dataset, ConcatDataset):
        return [origin for each in dataset.datasets for origin in _origins(each)]
    return [(id(dataset), place) for place in range(len(dataset) if hasattr(dataset, "__len__") else 1)]
