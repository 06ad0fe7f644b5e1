"""The search for neighbours that a round tells apart best: many candidates with few repetitions, then changed copies
of the best ones with more."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from discreet.audit.round_tester.claimed_curve import Array, ClaimedCurve
from discreet.audit.round_tester.neighbours import Example, Neighbours, UnitRows, blank
from discreet.audit.round_tester.repetition_player import Data, RepetitionPlayer
from discreet.audit.round_tester.toy_task import ToyTask
from discreet.audit.round_tester.violation_test import compare_quickly
from discreet.randomness.streams import RunKey

PARENTS = 4
CHILDREN = 5  # of each of the best
GROWTH = 2  # of the repetitions from one generation to the next


@dataclass
class NeighbourSearch:
    """Looks for neighbours; every repetition uses fresh noise.

    Attributes:
        task: The task that examples are made for.
        player: Plays the rounds.
        rows: Which rows the unit has.
        curve: The claim that scores are measured against.
        new_key: Returns a fresh key.
        chance: Draws candidates.
        candidates: Number of pairs in the first generation.
        repetitions: Repetitions of a pair in the first generation.
        generations: How often the best pairs are changed.
    """

    task: ToyTask
    player: RepetitionPlayer
    rows: UnitRows
    curve: ClaimedCurve
    new_key: Callable[[], RunKey]
    chance: random.Random
    candidates: int = 96
    repetitions: int = 2000
    generations: int = 2
    _samples: dict[tuple[object, int], Array] = field(default_factory=dict, init=False, repr=False)

    def find(self, finalists: int) -> list[Neighbours]:
        """Return the best pairs, the best one first."""
        repetitions = self.repetitions
        scored = self._score(self.first_generation(), repetitions)
        for _ in range(self.generations):
            repetitions *= GROWTH
            parents = [pair for _, pair in scored[:PARENTS]]
            children = dict.fromkeys(self._change(pair) for pair in parents for _ in range(CHILDREN))
            scored = self._score(list(dict.fromkeys([*parents, *children])), repetitions)
        return [pair for _, pair in scored[:finalists]]

    def first_generation(self) -> list[Neighbours]:
        """Return simple pairs: first those whose other rows are blank, then others at random."""
        nothing = blank(self.task)
        units = self._examples(self.task.magnitudes[:2])
        fillers = self._examples(self.task.magnitudes[:1])
        if self.rows.relation == "replace":
            opposite = {unit: _opposite(unit) for unit in units}
            plain = [Neighbours(unit, opposite[unit], nothing, nothing) for unit in units]
            plain += [Neighbours(unit, other, nothing, nothing) for unit, other in itertools.pairwise(units)]
        else:
            plain = [Neighbours(unit, nothing, nothing, nothing) for unit in units]
        place = "elsewhere" if self.rows.unit == "client" else "rest"  # a client has no other rows than its own
        mixed = [replace(pair, **{place: filler}) for pair, filler in itertools.product(plain, fillers)]
        self.chance.shuffle(plain)
        self.chance.shuffle(mixed)
        half = self.candidates // 2 if mixed else self.candidates
        return (plain[: max(half, self.candidates - len(mixed))] + mixed)[: self.candidates]

    def _examples(self, magnitudes: tuple[float, ...]) -> list[Example]:
        return [
            (tuple(magnitude * value for value in direction), target)
            for direction in _directions(self.task.input_size)
            for magnitude in magnitudes
            for target in self.task.targets
        ]

    def _change(self, pair: Neighbours) -> Neighbours:
        """Return the pair with one of its examples changed."""
        names = ["unit", "rest", "elsewhere"] + (["other"] if self.rows.relation == "replace" else [])
        name = self.chance.choice(names)
        return replace(pair, **{name: self._change_example(getattr(pair, name))})

    def _change_example(self, example: Example) -> Example:
        values, target = example
        if not any(values) or self.chance.random() < 0.2:
            return self.chance.choice([*self._examples(self.task.magnitudes), blank(self.task)])
        kind = self.chance.randrange(3)
        if kind == 0:
            factor = self.chance.choice((0.1, 0.5, 0.8, 1.25, 2.0, 10.0))
            return tuple(factor * value for value in values), target
        if kind == 1:
            return values, self.chance.choice(self.task.targets)
        size = math.hypot(*values)
        turned = [value + 0.3 * size * self.chance.gauss(0, 1) for value in values]
        return tuple(value * size / (math.hypot(*turned) or 1.0) for value in turned), target

    def _score(self, pairs: list[Neighbours], repetitions: int) -> list[tuple[float, Neighbours]]:
        scored = [
            (
                compare_quickly(
                    self._sample(pair.first(self.task, self.rows), ("first", pair), repetitions),
                    self._sample(
                        pair.second(self.task, self.rows), (pair.other, pair.rest, pair.elsewhere), repetitions
                    ),
                    self.curve,
                ),
                pair,
            )
            for pair in pairs
        ]
        return sorted(scored, key=lambda entry: -entry[0])

    def _sample(self, data: Data, name: object, repetitions: int) -> Array:
        """Play the round on a data set, once for all pairs that share it."""
        key = (name, repetitions)
        if key not in self._samples:
            self._samples[key] = self.player.play(data, repetitions, self.new_key()).cpu().numpy()
        return self._samples[key]


def _directions(size: int) -> list[tuple[float, ...]]:
    """Return both directions of every axis and of the diagonals of two axes."""
    axes = [tuple(sign * float(place == axis) for place in range(size)) for axis in range(size) for sign in (1, -1)]
    diagonals = []
    for left, right in itertools.combinations(range(size), 2):
        for sign in (1, -1):
            row = [0.0] * size
            row[left], row[right] = math.sqrt(0.5), sign * math.sqrt(0.5)
            diagonals.append(tuple(row))
    return axes + diagonals


def _opposite(example: Example) -> Example:
    values, target = example
    return tuple(-value for value in values), target
