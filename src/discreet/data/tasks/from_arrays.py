"""Clients from what a Python user has at hand: arrays, or one torch Dataset a client."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from discreet.data.federation import Federation
from discreet.data.tables.table import is_missing
from discreet.data.tasks.dataset_overlap import check_multiplicity
from discreet.data.tasks.task import Kind, Task
from discreet.errors import InvalidInput
from discreet.part import Count, from_plain

AS_GIVEN = "Inputs and targets are used as they were given: what prepared them is outside of every guarantee here."


def clients_from_arrays(
    inputs: Any,
    targets: Any,
    *,
    clients: Sequence[Any] | np.ndarray[Any, Any] | Tensor | None = None,
    sizes: Sequence[int] | None = None,
    classes: int | None = None,
    test: tuple[Any, Any] | None = None,
    public: tuple[Any, Any] | None = None,
    max_multiplicity: int = 1,
    name: str = "arrays",
) -> Task:
    """A task from arrays or tensors: `clients` says whose each example is, or `sizes` how many in a row are whose.

    Whole-number targets are class labels, others are numbers to be predicted. `classes` is how many there are, by
    public knowledge; without it, it is taken from the data, and the card says so. `max_multiplicity` is in how many
    clients one example may lie: only the data's owner knows, and the card says so, too. `public` are inputs and targets
    that are nobody's, which only `public_top_k` looks at.
    """
    if (clients is None) == (sizes is None):
        raise InvalidInput("Clients need either clients= (one name an example) or sizes= (examples in a row).")
    all_inputs, all_targets = _as_pair("inputs", inputs, targets)
    if clients is not None:
        names, counts, order = _group_by_client(clients, len(all_inputs))
        all_inputs, all_targets = all_inputs[order], all_targets[order]
    else:
        counts = tuple(int(size) for size in sizes or ())
        names = tuple(f"client {number}" for number in range(len(counts)))
    most = from_plain(Count, max_multiplicity)
    return _build_task(name, Federation(all_inputs, all_targets, counts, most), names, classes, test, public)


def clients_from_datasets(
    datasets: Sequence[Dataset[Any]],
    *,
    classes: int | None = None,
    test: Dataset[Any] | None = None,
    public: Dataset[Any] | None = None,
    names: Sequence[str] | None = None,
    max_multiplicity: int = 1,
    name: str = "datasets",
) -> Task:
    """A task from torch datasets, one a client, whose items are (input, target).

    `max_multiplicity` is in how many clients one example may lie. A dataset that is given twice, or two subsets of
    one with items in common, are refused where that is more; what lies in two datasets, only their owner knows.
    `public` is a dataset that is nobody's, which only `public_top_k` looks at.
    """
    if not datasets:
        raise InvalidInput("A federation needs at least one client, and got no dataset.")
    check_multiplicity(datasets, most := from_plain(Count, max_multiplicity))
    called = tuple(names) if names is not None else tuple(f"client {number}" for number in range(len(datasets)))
    parts = [_stack_items(dataset, f"dataset {number}") for number, dataset in enumerate(datasets)]
    shapes = [tuple(inputs.shape[1:]) for inputs, _ in parts]
    if other := [number for number, shape in enumerate(shapes) if shape != shapes[0]]:
        raise InvalidInput(
            f"Inputs must have one shape, and dataset 0 has {shapes[0]}, dataset {other[0]} {shapes[other[0]]}."
        )
    sizes = tuple(len(inputs) for inputs, _ in parts)
    flat = torch.cat([inputs for inputs, _ in parts]), torch.cat([targets for _, targets in parts])
    held = _stack_items(test, "the test dataset") if test is not None else None
    nobodys = _stack_items(public, "the public dataset") if public is not None else None
    return _build_task(name, Federation(*flat, sizes, most), called, classes, held, nobodys)


def describe_multiplicity(most: int) -> str:
    """What the card must say of a number of clients that only the owner of the data can know."""
    clients = "two clients" if most == 1 else f"more than {most} clients"
    return f"That no example lies in {clients} was declared by the data's owner; nobody checked."


def _build_task(
    name: str,
    train: Federation,
    names: tuple[str, ...],
    classes: int | None,
    test: tuple[Any, Any] | None,
    public: tuple[Any, Any] | None,
) -> Task:
    kind: Kind = "regression" if train.targets.is_floating_point() else "classification"
    not_covered: tuple[str, ...] = ()
    if classes is None and kind == "regression":
        classes = train.targets.shape[1] if train.targets.dim() > 1 else 1
    elif classes is None:
        classes = int(train.targets.max()) + 1
        not_covered = (f"The number of classes ({classes}) was taken from the data; say classes={classes} if public.",)
    if test is None:
        inputs, targets = train.inputs[:0], train.targets[:0]
    else:
        inputs, targets = _as_tensor("test inputs", test[0]), _as_tensor("test targets", test[1])
    facts = (AS_GIVEN, describe_multiplicity(train.max_multiplicity))
    return Task(name, train, inputs, targets, kind, classes, names, facts, not_covered, _public_examples(public))


def _public_examples(public: tuple[Any, Any] | None) -> Federation | None:
    if public is None:
        return None
    inputs, targets = _as_pair("public inputs", *public)
    return Federation(inputs, targets, (len(targets),))


def _as_pair(which: str, inputs: Any, targets: Any) -> tuple[Tensor, Tensor]:
    """As tensors that count the same examples."""
    all_inputs, all_targets = _as_tensor(which, inputs), _as_tensor(f"targets of the {which}", targets)
    if all_inputs.dim() == 0 or all_targets.dim() == 0 or len(all_inputs) != len(all_targets):
        raise InvalidInput(
            f"The {which} and their targets must count the same examples, and have the shapes "
            f"{tuple(all_inputs.shape)} and {tuple(all_targets.shape)}."
        )
    return all_inputs, all_targets


def _group_by_client(clients: Any, examples: int) -> tuple[tuple[str, ...], tuple[int, ...], Tensor]:
    """Their names in order, how many examples each has, and the order that puts a client's examples together."""
    own = clients.tolist() if isinstance(clients, Tensor | np.ndarray) else list(clients)
    if len(own) != examples:
        raise InvalidInput(f"clients= must name one client an example: {examples} examples, {len(own)} names.")
    if nameless := [place for place, client in enumerate(own) if is_missing(str(client))]:
        raise InvalidInput(
            f"clients= must name a client for each example, and got {own[nameless[0]]!r} for example {nameless[0]}.",
            fix="Name the client, or leave the example out.",
        )
    try:
        known = sorted(set(own))
    except TypeError:
        raise InvalidInput("clients= must be all text or all numbers.") from None
    rank = {client: number for number, client in enumerate(known)}
    ranks = torch.tensor([rank[client] for client in own])
    sizes = tuple(torch.bincount(ranks, minlength=len(known)).tolist())
    return tuple(map(str, known)), sizes, ranks.argsort(stable=True)


def _stack_items(dataset: Any, which: str) -> tuple[Tensor, Tensor]:
    try:
        items = [dataset[i] for i in range(len(dataset))] if hasattr(dataset, "__len__") else list(dataset)
        pairs = [(torch.as_tensor(one), torch.as_tensor(target)) for one, target in items]
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"The items of {which} must be (input, target) with numbers in both: {error}.",
            fix="Turn images into tensors by the dataset's own transform.",
        ) from None
    if not pairs:
        raise InvalidInput(f"Every client needs an example, and {which} has none.", fix="Leave it out.")
    if len({(one.shape, target.shape) for one, target in pairs}) > 1:
        raise InvalidInput(f"The items of {which} differ in shape.", fix="Crop or pad them to one shape.")
    inputs, targets = (torch.stack(list(each)) for each in zip(*pairs, strict=True))
    return _as_tensor("inputs", inputs), _as_tensor("targets", targets)


def _as_tensor(which: str, values: Any) -> Tensor:
    """Floating-point numbers in single precision, whole numbers as int64, on the host, in memory of our own."""
    try:
        found = values.detach() if isinstance(values, Tensor) else torch.tensor(np.asarray(values))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The {which} must be one array of numbers: {error}.") from None
    if found.is_complex():
        raise InvalidInput(f"The {which} are complex numbers.", fix="Give real and imaginary parts as two numbers.")
    return found.to("cpu", torch.float32 if found.is_floating_point() else torch.int64, copy=True)
