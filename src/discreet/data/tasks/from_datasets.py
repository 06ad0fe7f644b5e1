"""Build a task in Python from one torch Dataset or DataLoader per client."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from discreet.data.federation import Federation
from discreet.data.tasks.data_loaders import indexed_dataset
from discreet.data.tasks.dataset_items import read_items, show_reading
from discreet.data.tasks.dataset_overlap import count_multiplicity, count_trained
from discreet.data.tasks.from_arrays import OtherExamples, build_task
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.part import Count, check_value
from discreet.validation_errors import describe_value
from discreet.words import fill

Source: TypeAlias = "torch.utils.data.Dataset[Any] | torch.utils.data.DataLoader[Any]"


def clients_from_datasets(
    datasets: Sequence[Source],
    *,
    classes: int | None = None,
    test: Source | None = None,
    validation: Source | None = None,
    validation_fraction: float = 0.0,
    public: Source | None = None,
    names: Sequence[str] | None = None,
    max_multiplicity: int | None = None,
    progress: bool | None = None,
    name: str = "datasets",
) -> Task:
    """Build a task from torch datasets or data loaders, one per client.

    Items are pairs (input, target) of numbers or tensors. Each item is read once, by its index, and kept in memory: a
    random augmentation in a dataset is drawn once, and every round trains on the same draw. Of a data loader only its
    dataset is used, since each round draws its own batches.

    Args:
        datasets: One dataset or data loader per client.
        classes: The number of classes, if it is public. None takes it from the targets, and the card says so.
        test: A dataset for evaluation, which no guarantee covers. Items that a client trains on too are warned of.
        validation: A dataset for choosing settings, which no guarantee covers either.
        validation_fraction: The share of each client's examples that is held out for that instead. The same examples
            are drawn each time.
        public: A dataset that belongs to no client. Only the sparsifier `public_top_k` uses it.
        names: One name per client. None numbers the clients.
        max_multiplicity: The largest number of clients that hold the same example. None counts it, by the indices that
            subsets of one dataset share; copies of an example, and datasets that wrap one in their own way, are not
            detected. A number below the count is refused.
        progress: Whether to show a progress bar while items are read. By default in a terminal.
        name: The name of the task in reports.

    Returns:
        A task for `discreet.train`.

    Raises:
        InvalidInput: An item is not a pair of numbers, shapes differ, a dataset is empty or has no indices, a data
            loader draws or joins examples in its own way, two clients have one name, examples are shared by more
            clients than `max_multiplicity` says, or the examples don't fit into memory.

    Example:
        >>> from torch import tensor
        >>> from torch.utils.data import TensorDataset
        >>> first = TensorDataset(tensor([[0.1], [0.9]]), tensor([0, 1]))
        >>> second = TensorDataset(tensor([[0.4]]), tensor([0]))
        >>> clients_from_datasets([first, second], classes=2, names=["a", "b"]).train.sizes
        (2, 1)
    """
    sources = _list_sources(datasets)
    declared = None if max_multiplicity is None else check_value("max_multiplicity", Count, max_multiplicity)
    multiplicity = count_multiplicity(sources, declared)
    client_names = _check_names(names, len(sources))
    if repeated := [each for each, times in Counter(client_names).items() if times > 1]:
        raise InvalidInput(
            f"Two clients have the name {repeated[0]!r}.", fix="Give each client a name of its own, or leave out names."
        )
    others = {
        use: indexed_dataset(one, f"the {use} dataset")
        for use, one in (("test", test), ("validation", validation), ("public", public))
        if one is not None
    }
    for use in ("test", "validation"):
        if use in others and (trained := count_trained(sources, others[use])):
            warnings.warn(
                f"{trained:,} of {len(others[use]):,} {use} examples are also training examples of a client: metrics "
                "on them say little about new examples. Hold out items that no client has.",
                UserWarning,
                stacklevel=2,
            )
    named = {f"dataset {number}": source for number, source in enumerate(sources)}
    with show_reading(progress) as on_progress:
        inputs, targets = read_items(named, on_progress)
        arrays = {use: read_items({f"the {use} dataset": one}, on_progress) for use, one in others.items()}
    train = Federation(inputs, targets, tuple(map(len, sources)), multiplicity)
    held_out = OtherExamples(arrays.get("test"), arrays.get("validation"), validation_fraction, arrays.get("public"))
    overlap = None if declared is not None else _describe_count(multiplicity)
    return build_task(name, train, client_names, classes, held_out, overlap)


def _check_names(names: Any, clients: int) -> tuple[str, ...]:
    """Return one name for each client. None numbers them."""
    if names is None:
        return tuple(f"client {number}" for number in range(clients))
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidInput(f"names must be a list with one name for each client, and got {describe_value(names)}.")
    listed = list(names)
    if len(listed) != clients or not all(isinstance(each, str) for each in listed):
        raise InvalidInput(
            f"names must be texts, one for each of {clients} clients, and got {describe_value(listed)}.",
            fix="Leave names out to number the clients.",
        )
    return tuple(listed)


def _list_sources(datasets: Any) -> list[Any]:
    """Return the dataset of each client."""
    if isinstance(datasets, Mapping):
        raise InvalidInput(
            "datasets must be a list, and got a mapping.", fix="Pass list(datasets.values()), names=list(datasets)."
        )
    is_one = isinstance(datasets, torch.utils.data.Dataset | torch.utils.data.DataLoader)
    if is_one or not isinstance(datasets, Iterable):
        raise InvalidInput(
            f"datasets must be a list with one dataset for each client, and got an object of the class "
            f"{type(datasets).__name__}.",
            fix="Split it, such as with torch.utils.data.random_split, and pass the list.",
        )
    sources = [indexed_dataset(source, f"dataset {number}") for number, source in enumerate(datasets)]
    if not sources:
        raise InvalidInput("A federation needs at least one client, and got no dataset.")
    return sources


def _describe_count(multiplicity: int) -> str:
    """Say on the card in how many clients an example was found."""
    return fill("data.counted_disjoint") if multiplicity == 1 else fill("data.counted_overlap", most=multiplicity)
