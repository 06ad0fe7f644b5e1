"""Two data sets that differ in one unit, made of a few examples of a toy task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from discreet.algorithms.population import Population
from discreet.audit.round_tester.repetition_player import Data
from discreet.audit.round_tester.toy_task import ToyTask
from discreet.data.federation import Federation
from discreet.privacy.release import Person, Relation, Unit
from discreet.privacy.wording import compact

Example: TypeAlias = tuple[tuple[float, ...], float]  # input and target


@dataclass(frozen=True)
class UnitRows:
    """Which rows of the federation belong to the unit that two neighbours differ in.

    Attributes:
        unit: The unit.
        relation: How neighbours differ.
        population: Public client sizes.
        first: The first client that the unit is in.
    """

    unit: Unit
    relation: Relation
    population: Population
    first: int = 0

    @property
    def clients(self) -> tuple[int, ...]:
        """The clients that hold rows of the unit."""
        if isinstance(self.unit, Person):
            count = self.unit.clients_at_most
        else:
            count = self.population.max_multiplicity if self.unit == "example" else 1
        return tuple(range(self.first, min(self.first + count, self.population.clients)))

    def rows(self, client: int) -> int:
        """Return how many rows of a client, its first ones, are the unit's."""
        held = self.population.examples[client]
        if client not in self.clients:
            return 0
        if isinstance(self.unit, Person):
            return min(self.unit.at_most, held)
        return 1 if self.unit == "example" else held


@dataclass(frozen=True)
class Neighbours:
    """A pair of data sets, before it is known which clients and rows they have.

    Attributes:
        unit: The example that all rows of the unit are in one data set.
        other: The example that they are in the other; a blank, except where units are replaced.
        rest: The example that the other rows of the unit's clients are.
        elsewhere: The example that all rows of other clients are.
    """

    unit: Example
    other: Example
    rest: Example
    elsewhere: Example

    def first(self, task: ToyTask, rows: UnitRows) -> Data:
        """Return the data set with the unit."""
        return Data(self._federation(task, rows, self.unit))

    def second(self, task: ToyTask, rows: UnitRows) -> Data:
        """Return the data set without it."""
        absent = frozenset(rows.clients) if rows.unit == "client" and rows.relation == "add_or_remove" else frozenset()
        return Data(self._federation(task, rows, self.other), absent)

    def _federation(self, task: ToyTask, rows: UnitRows, unit: Example) -> Federation:
        examples: list[Example] = []
        for client, held in enumerate(rows.population.examples):
            own = rows.rows(client)
            filler = self.rest if client in rows.clients else self.elsewhere
            examples += [unit] * own + [filler] * (held - own)
        inputs, targets = task.tensors(examples)
        return Federation(inputs, targets, rows.population.examples, rows.population.max_multiplicity)

    def describe(self) -> str:
        """Describe the pair in one line."""
        return (
            f"unit {_describe(self.unit)} or {_describe(self.other)}; other rows of its client {_describe(self.rest)}; "
            f"other clients {_describe(self.elsewhere)}"
        )


def blank(task: ToyTask) -> Example:
    """Return the example that stands for one that is left out."""
    return (0.0,) * task.input_size, task.targets[0]


def _describe(example: Example) -> str:
    values, target = example
    if not any(values):
        return "blank"
    numbers = ", ".join(compact(value + 0.0, 3) for value in values)  # adding 0 makes -0 a 0
    return f"x = ({numbers}), y = {compact(target + 0.0)}"
