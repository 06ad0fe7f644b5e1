"""Build a task in Python from arrays or tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from discreet.data.federation import Federation
from discreet.data.tables.table import is_missing
from discreet.data.tasks.array_conversion import as_pair, named_pair, refuse_lists_of_arrays
from discreet.data.tasks.task import Kind, Task
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.part import Count, Index, Share, check_value, from_plain
from discreet.privacy.card_lines import Line
from discreet.validation_errors import describe_value
from discreet.words import fill


def clients_from_arrays(
    inputs: Any,
    targets: Any,
    *,
    clients: Sequence[Any] | np.ndarray[Any, Any] | Tensor | None = None,
    sizes: Sequence[int] | np.ndarray[Any, Any] | Tensor | None = None,
    classes: int | None = None,
    test: tuple[Any, Any] | None = None,
    validation: tuple[Any, Any] | None = None,
    validation_fraction: float = 0.0,
    public: tuple[Any, Any] | None = None,
    max_multiplicity: int = 1,
    name: str = "arrays",
) -> Task:
    """Build a task from arrays or tensors. Pass either `clients` or `sizes`.

    Args:
        inputs: One input per example, in the first dimension.
        targets: One target per example. Whole numbers are class labels; other numbers are predicted as numbers.
        clients: The client of each example, as text or a number. Clients are ordered by these names.
        sizes: The number of examples of each client, if the examples are in the order of the clients.
        classes: The number of classes, if it is public. None takes it from the targets, and the card says so.
        test: Inputs and targets for evaluation, which no guarantee covers.
        validation: Inputs and targets for choosing settings, which no guarantee covers either.
        validation_fraction: The share of each client's examples that is held out for that instead. The same examples
            are drawn each time.
        public: Inputs and targets that belong to no client. Only the sparsifier `public_top_k` uses them.
        max_multiplicity: The largest number of clients that hold the same example. Only the data's owner can know it,
            and the card says so.
        name: The name of the task in reports.

    Returns:
        A task for `discreet.train`.

    Raises:
        InvalidInput: The arrays don't fit each other, a client has no example, or a value is NaN or infinite.

    Example:
        >>> task = clients_from_arrays([[0.1], [0.4], [0.9]], [0, 0, 1], clients=["a", "b", "a"], classes=2)
        >>> task.client_names, task.train.sizes
        (('a', 'b'), (2, 1))
    """
    if (clients is None) == (sizes is None):
        raise InvalidInput("Pass either clients= (one name per example) or sizes= (examples per client).")
    refuse_lists_of_arrays(inputs)
    all_inputs, all_targets = as_pair("inputs", inputs, targets)
    if clients is not None:
        names, counts, order = _group_by_client(clients, len(all_inputs))
        all_inputs, all_targets = all_inputs[order], all_targets[order]
    else:
        counts = _check_sizes(sizes)
        names = tuple(f"client {number}" for number in range(len(counts)))
    multiplicity = check_value("max_multiplicity", Count, max_multiplicity)
    others = OtherExamples(test, validation, validation_fraction, public)
    return build_task(name, Federation(all_inputs, all_targets, counts, multiplicity), names, classes, others)


class OtherExamples(NamedTuple):
    """Examples that no client trains on, as pairs of inputs and targets, and the share of a client to hold out."""

    test: tuple[Any, Any] | None
    validation: tuple[Any, Any] | None
    validation_fraction: float
    public: tuple[Any, Any] | None


def build_task(
    name: str,
    train: Federation,
    names: tuple[str, ...],
    classes: int | None,
    others: OtherExamples,
    overlap: str | None = None,
) -> Task:
    """Build a task from the clients' examples and others.

    Args:
        name: The name of the task in reports.
        train: The clients' examples.
        names: One name per client.
        classes: The number of classes. None takes it from the targets, and the card says so.
        others: The examples that no client trains on.
        overlap: How many clients hold the same example, for the card. None if that was declared.
    """
    if classes is not None:
        classes = _check_classes(classes)
    kind: Kind = "regression" if train.targets.is_floating_point() else "classification"
    not_covered: tuple[str, ...] = ()
    if classes is None and kind == "regression":
        classes = train.targets.shape[1] if train.targets.dim() > 1 else 1
    elif classes is None:
        classes = int(train.targets.max()) + 1
        not_covered = (fill("not_covered.class_count", classes=classes),)
    test, validation = others.test, others.validation
    fraction: float = check_value("validation_fraction", Share, others.validation_fraction)
    if validation is not None and fraction:
        raise InvalidInput("Validation examples are either passed in or a share of each client's examples, not both.")
    facts: list[str] = [Line(fill("data.as_given"), "owner"), *([overlap] if overlap else [])]
    if validation is not None:
        facts.append(fill("data.validation_given"))
    inputs, targets = (train.inputs[:0], train.targets[:0]) if test is None else named_pair("test", test)
    task = Task(
        name=name,
        train=train,
        test_inputs=inputs,
        test_targets=targets,
        kind=kind,
        classes=classes,
        client_names=names,
        facts=tuple(facts),
        not_covered=not_covered,
        validation=None if validation is None else named_pair("validation", validation),
        public=_public_examples(others.public),
    )
    return task.hold_out_validation(fraction, torch.Generator().manual_seed(0))


def _public_examples(public: tuple[Any, Any] | None) -> Federation | None:
    if public is None:
        return None
    inputs, targets = named_pair("public", public)
    return Federation(inputs, targets, (len(targets),))


def _check_sizes(sizes: Any) -> tuple[int, ...]:
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise InvalidInput(
            f"sizes= must be a list with the number of examples of each client, and got {describe_value(sizes)}.",
            fix="Write sizes=[...], or name the client of each example by clients=.",
        )
    listed = tuple(sizes.tolist() if isinstance(sizes, torch.Tensor | np.ndarray) else sizes)
    try:
        checked: tuple[int, ...] = from_plain(tuple[Index, ...], listed)
    except InvalidInput:  # one by one takes ten times as long, and says which number is wrong
        return tuple(check_value("sizes=", Index, size) for size in listed)
    return checked


def _check_classes(classes: Any) -> int:
    if isinstance(classes, list | tuple):
        raise InvalidInput(
            f"classes must be the number of classes, and got a list of {len(classes)}.", fix=f"Write {len(classes)}."
        )
    number: int = check_value("classes", Count, classes)
    return number


def _group_by_client(clients: Any, examples: int) -> tuple[tuple[str, ...], tuple[int, ...], Tensor]:
    """Return the clients' names in order, their sizes, and the order of examples that puts each client's together."""
    if isinstance(clients, str) or not isinstance(clients, Iterable):
        raise InvalidInput(
            f"clients= must be a list that names the client of each example, and got {describe_value(clients)}.",
            fix="For clients of equal size, write sizes=[...].",
        )
    owners = clients.tolist() if isinstance(clients, torch.Tensor | np.ndarray) else list(clients)
    if len(owners) != examples:
        raise InvalidInput(
            f"clients= must name one client per example, and got {len(owners)} names for {examples} examples."
        )
    if nameless := [index for index, client in enumerate(owners) if is_missing(str(client))]:
        raise InvalidInput(
            f"clients= must name a client for each example, and got {owners[nameless[0]]!r} for example {nameless[0]}.",
            fix="Name the client, or leave the example out.",
        )
    try:
        names = sorted(set(owners))
    except TypeError:
        raise InvalidInput("clients= must be all text or all numbers.") from None
    rank = {client: number for number, client in enumerate(names)}
    ranks = torch.tensor([rank[client] for client in owners])
    sizes = tuple(torch.bincount(ranks, minlength=len(names)).tolist())
    return tuple(map(str, names)), sizes, ranks.argsort(stable=True)
