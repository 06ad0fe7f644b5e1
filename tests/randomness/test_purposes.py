"""Streams are named by purposes: no two users share one, and a name draws the same numbers in all versions."""

import ast
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import InvalidInput
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows, RunKey, Streams
from tests.federations import CPU, cross_entropy, federation, linear

ROOT = Path(__file__).parents[2]
KEY, SECRET = RunKey.from_seed(7), RunKey(bytes(range(32)))
DATA = federation(7, 3)


@dataclass(frozen=True)
class WatchedRows:
    """Rows that record which calls open each stream: streams of one name draw the same numbers."""

    rows: Rows
    name: tuple[object, ...] = ()
    callers: dict[tuple[object, ...], set[object]] = field(default_factory=lambda: defaultdict(set))

    @property
    def clients(self) -> tuple[int, ...]:
        return tuple(self.rows.clients)

    def for_purpose(self, purpose: Purpose, *numbers: int | str) -> "WatchedRows":
        return WatchedRows(self.rows.for_purpose(purpose, *numbers), (*self.name, purpose, *numbers), self.callers)

    def open(self) -> Streams:
        caller = sys._getframe(1)
        self.callers[self.name].add((caller.f_code, caller.f_lasti))
        return self.rows.open()


@pytest.mark.parametrize("name", RECIPES)
def test_in_a_round_each_stream_is_drawn_from_for_one_purpose_only(name: str) -> None:
    """Batches, noise, rounding and shares: two users of one stream would get the same numbers."""
    recipe = RECIPES[name]
    algorithm = recipe(**recipe.example).with_noise(1.0).for_population(DATA.population, 18)
    rows = WatchedRows(KEY.rows(0, b"", [0, 1], CPU))
    state = algorithm.init(linear())
    public = {name: torch.ones_like(value) for name, value in state.params.items()}
    broadcast = algorithm.broadcast(state, 0, lambda params, round: public)
    algorithm.client_step(cross_entropy, broadcast, DATA.block([0, 1]), torch.ones(2, dtype=torch.float64), rows)
    assert rows.callers or name == "fedsgd"  # whole batches and no noise: nothing is drawn
    assert {purpose: len(callers) for purpose, callers in rows.callers.items()} == dict.fromkeys(rows.callers, 1)


def test_every_purpose_is_drawn_for_and_no_function_names_one_twice() -> None:
    used: Counter[str] = Counter()
    for folder in ("src", "experiments"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            for function in ast.walk(ast.parse(text)) if "Purpose." in text else ():
                if isinstance(function, ast.FunctionDef):
                    here = Counter(_purpose_names(function))
                    assert set(here.values()) <= {1}, f"{path.name}: {function.name} names a purpose twice: {here}"
                    used += here
    assert set(used) == {each.name for each in Purpose}


def _purpose_names(function: ast.FunctionDef) -> list[str]:
    found = [each for each in ast.walk(function) if isinstance(each, ast.Attribute)]
    return [each.attr for each in found if isinstance(each.value, ast.Name) and each.value.id == "Purpose"]


@pytest.mark.parametrize("name", ["noise", 3, None])
def test_a_stream_that_is_named_by_anything_else_is_refused(name: Any) -> None:
    for call in (
        KEY.generator,
        KEY.rows(0, b"", [0], CPU).for_purpose,
        SECRET.secret_rows(0, bytes(32), 0).for_purpose,
    ):
        with pytest.raises(InvalidInput, match="named by a Purpose, and got"):
            call(name)


def test_a_stream_draws_what_it_has_always_drawn() -> None:
    """So that seeded runs are repeated by later versions. Numbers and noise of simulated clients are those of 0.3."""
    rows, secret = KEY.rows(2, b"", [5], CPU), SECRET.secret_rows(2, bytes(32), 5)
    sampling = torch.rand(2, generator=KEY.generator(Purpose.SAMPLING, 3), dtype=torch.float64)
    assert sampling.tolist() == [0.3121268058750122, 0.5405079655350984]
    train, like = rows.for_purpose(Purpose.TRAIN), {"w": torch.zeros(2, dtype=torch.float64)}
    assert train.for_purpose(Purpose.BATCH).open().uniform([2]).tolist() == [[0.2690919289953593, 0.4289876609361831]]
    assert train.for_purpose(Purpose.NOISE).open().normal(like)["w"].tolist() == [
        [1.8565964728003042, -1.7525164269014533]
    ]
    assert secret.for_purpose(Purpose.SHARE).open().uniform([2]).tolist() == [[0.7188859345714967, 0.6993644714015504]]
    passes = secret.for_purpose(Purpose.LOCAL, 1).for_purpose(Purpose.BATCHES)
    assert passes.open().uniform([2]).tolist() == [[0.3519713058754854, 0.5615004714763436]]
    with rows.seed_network():
        assert torch.rand(2).tolist() == [0.6756430268287659, 0.40923821926116943]


def test_the_texts_of_the_purposes_stay_as_they_are() -> None:
    """Each is part of the keys of its streams."""
    texts = """task model sampling drop-out training-examples pilot attack audit turns network train encode share server
    public attempt session batch noise rounding batches coins shard local"""
    assert [each.value.replace(" ", "-") for each in Purpose] == texts.split()
