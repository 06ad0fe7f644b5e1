"""A loaded task: the clients' examples, the held-out examples, and what the card must say about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from discreet.algorithms.standardisation import Standardisation
from discreet.data.federation import Federation, is_finite
from discreet.data.tables.column_kinds import Values
from discreet.data.tables.table_columns import TableColumns
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, torch
from discreet.privacy.release import Person
from discreet.words import fill

Kind: TypeAlias = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Task:
    """A task that was checked: shapes agree, labels are in range, and no number is NaN or infinite.

    Evaluation on the test or validation examples is never covered by a guarantee.

    Attributes:
        train: The clients' examples.
        classes: Number of classes; for a regression, number of outputs.
        client_names: One name per client, in the order of `train.sizes`.
        facts: Sentences for the card: how inputs are scaled, and what is public.
        not_covered: Sentences for the card about what the guarantee does not cover, such as a fitted scaler.
        validation: Inputs and targets for choosing settings, which nobody trains on. None if none are held out.
        public: Examples that no client holds and no guarantee covers, as a federation of one client.
        ranges_from_data: Whether columns are scaled by ranges that were taken from the data.
        person: If set, no person has more than its `at_most` rows in a client, or rows in more than `clients_at_most`.
        rows_left_out: Number of rows that were left out for that. This number is private.
        standardisation: Which numbers are to be standardised by a noisy sum before training. None for none.
        is_dealt: Whether this program dealt the examples to the clients, and so knows how many hold the same one.
        columns: The columns of a table, by which new rows are encoded. None if the data is no table.
    """

    name: str
    train: Federation
    test_inputs: Tensor
    test_targets: Tensor
    kind: Kind
    classes: int
    client_names: tuple[str, ...]
    facts: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    validation: tuple[Tensor, Tensor] | None = None
    public: Federation | None = None
    ranges_from_data: bool = False
    person: Person | None = None
    rows_left_out: int = 0
    standardisation: Standardisation | None = None
    columns: TableColumns | None = None
    is_dealt: bool = False

    def __post_init__(self) -> None:
        if len(self.client_names) != len(self.train.sizes):
            raise InvalidInput(f"{len(self.train.sizes)} clients need as many names, and got {len(self.client_names)}.")
        self._check_targets("training", self.train.targets)
        self._check_examples("test", self.test_inputs, self.test_targets)
        if self.validation is not None:
            self._check_examples("validation", *self.validation)
        if self.public is not None:
            self._check_examples("public", self.public.inputs, self.public.targets)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input, without the dimension of examples."""
        return tuple(self.train.inputs.shape[1:])

    def hold_out_validation(self, fraction: float, generator: torch.Generator) -> Task:
        """Return a copy in which a share of each client's training examples is held out for choosing settings.

        Clients are smaller by that much, and their sizes are what is accounted for. A share of 0 changes nothing.

        Raises:
            InvalidInput: Clients share examples, or all are too small to hold one out.
        """
        if not fraction:
            return self
        train = self.train
        if train.max_multiplicity > 1:
            raise InvalidInput(
                f"Up to {train.max_multiplicity} clients hold the same example, so one client would train on what "
                "another holds out for validation.",
                fix="Leave out validation_fraction, or give clients examples of their own.",
            )
        kept, held_out = split_held_out(train.sizes, fraction, generator)
        if not len(held_out):
            raise InvalidInput(
                f"A validation_fraction of {fraction} holds out no example: the largest client has "
                f"{max(train.sizes)} to train on.",
                fix="Raise it, or leave it out.",
            )
        return replace(
            self,
            train=replace(
                train,
                sizes=tuple(training_size(size, fraction) for size in train.sizes),
                order=kept if train.order is None else train.order[kept],
            ),
            validation=train.examples_at(held_out),
            facts=(*self.facts, describe_validation(fraction)),
        )

    def _check_examples(self, which: str, inputs: Tensor, targets: Tensor) -> None:
        if len(inputs) != len(targets):
            raise InvalidInput(f"{len(inputs)} {which} inputs can't go with {len(targets)} {which} targets.")
        if (shape := tuple(inputs.shape[1:])) != self.input_shape:
            raise InvalidInput(
                f"A {which} input has the shape {shape}, and a training input {self.input_shape}.",
                fix="Prepare both alike.",
            )
        if not is_finite(inputs):
            raise InvalidInput(f"The {which} inputs contain NaN or infinity.", fix="Fill or drop those examples first.")
        self._check_targets(which, targets)

    def _check_targets(self, which: str, targets: Tensor) -> None:
        if self.kind == "regression":
            if not targets.is_floating_point():
                raise InvalidInput(f"The {which} targets of a regression must be floating-point numbers.")
            if not bool(torch.isfinite(targets).all()):
                raise InvalidInput(f"The {which} targets contain NaN or infinity.", fix="Fill or drop those examples.")
            return
        if targets.dtype != torch.int64:
            raise InvalidInput(
                f"The {which} labels of a classification must be whole numbers (int64), and are {targets.dtype}."
            )
        if targets.numel() and int(targets.max()) < 0:
            raise InvalidInput(
                f"Labels must be 0 or more, and the {which} labels are negative, between {int(targets.min())} and "
                f"{int(targets.max())}.",
                fix="Number the classes from 0.",
            )
        if targets.numel() and (int(targets.min()) < 0 or int(targets.max()) >= self.classes):
            raise InvalidInput(
                f"Labels must be between 0 and {self.classes - 1} for {self.classes} classes, and the {which} labels "
                f"are between {int(targets.min())} and {int(targets.max())}.",
                fix="Number the classes from 0, or give the right number of classes.",
            )


def blank_task(columns: TableColumns) -> Task:
    """Return a task of these columns with one blank row, from which a network of the right shape can be built."""
    is_class = isinstance(columns.target, Values)
    targets = torch.zeros(1, dtype=torch.int64 if is_class else torch.float32)
    inputs = torch.zeros(1, columns.width)
    kind: Kind = "classification" if is_class else "regression"
    return Task("table", Federation(inputs, targets, (1,)), inputs[:0], targets[:0], kind, columns.target.width, ("",))


def describe_validation(fraction: float) -> str:
    """Say on the card which examples are held out for choosing settings."""
    return fill("data.validation", share=f"{fraction:.0%}")


def split_held_out(sizes: tuple[int, ...], fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Hold out a share of each client's examples at random. Test and validation examples are both drawn here.

    Every client keeps at least one example to train on.

    Returns:
        The positions of the training examples and of the held-out examples, both in the order of the clients.
    """
    train, test, start = [], [], 0
    for size in sizes:
        order = start + torch.randperm(size, generator=generator)
        kept = training_size(size, fraction)
        train.append(order[:kept].sort().values)
        test.append(order[kept:].sort().values)
        start += size
    return torch.cat(train), torch.cat(test)


def training_size(size: int, *fractions: float) -> int:
    """Return how many of `size` examples are left for training when each share of what is left is held out in turn."""
    for fraction in fractions:
        size -= int(size * fraction)
    return size
