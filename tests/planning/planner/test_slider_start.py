"""The page agrees with `discreet plan`: at the start about the experiment, and after a move about the changed file."""

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import api
from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import InvalidInput
from discreet.experiment.configuration import experiment_file
from discreet.experiment.configuration.experiment_file import Source
from discreet.experiment.terms import Terms
from discreet.part import from_plain
from discreet.planning import experiment_plan
from discreet.planning.experiment_plan import plan_experiment
from discreet.planning.planner.planner_page import render_page
from discreet.planning.planner.slider_answer import answer_question
from discreet.planning.planner.slider_question import Question
from discreet.planning.planner.slider_start import StartPosition, start_position
from discreet.privacy.wording import unit_name
from discreet.report.number_format import format_bytes, format_number
from discreet.trust import Trust
from tests.small_experiment import small, state

__all__ = ["small", "state"]

TEN = "task={kind='digits',clients=10}"
UNEVEN = "task={kind='digits',clients=10,partition={kind='dirichlet',alpha=0.3}}"
OF_CLIENTS = ("privacy.unit=client", "privacy.delta=1e-3")
SHOWN = ("noise_multiplier", "noise_to_signal", "epsilon", "delta", "bytes", "rounds", "clients", "warnings")
SKELLAM = "algorithm={recipe='ddp_fedavg',learning_rate=1.0,clip_norm=0.5,sampling_rate=0.3,local_steps=2"
TABLE = """\
rounds = 20
model = { kind = "linear" }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = "ranges.toml"

[privacy]
unit = "example"
against = "server"
epsilon = 4.0
delta = 1e-5

[algorithm]
recipe = "pfl"
sampling_rate = 0.5
clip_norm = 1.0
learning_rate = 1.0
"""
RANGES = """\
[columns]
age = { min = 0, max = 200 }
ill = { values = ["no", "yes"] }
"""
FIXED = (
    "algorithm={recipe='ddp_fedavg_client',learning_rate=1.0,clip_norm=0.5,batch_size=8,"
    "sampling={kind='fixed_size',cohort=3}}"
)


@pytest.fixture(autouse=True)
def quick_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out of a plan what takes long and is not on the page: the cost of other promises."""
    monkeypatch.setattr(experiment_plan, "_other_epsilons", lambda *_: [])
    monkeypatch.setattr(experiment_plan, "_affordable_rounds", lambda *_: None)


def read_plan(path: Path, *overrides: str) -> tuple[Source, Terms]:
    source = experiment_file.load_experiment(path, overrides, trust=Trust.all_code())
    return source, api.prepare_job(source).terms


def answer(start: StartPosition, question: Question) -> dict[str, Any]:
    """Answer a question, with curves of one point only."""
    return answer_question(start, question, patience=0.0)


def recipe_settings(name: str) -> list[str]:
    """Return a recipe's own example as settings, with a promise that it can make."""
    recipe = RECIPES[name]
    values = "".join(f", {key} = {value!r}" for key, value in recipe.example.items())
    settings = [f"algorithm={{recipe = {name!r}{values}}}"]
    for promise in recipe.protects[:1]:
        settings += [f"privacy.unit={unit_name(promise.unit)}", f"privacy.against={promise.view}"]
    return settings


def page_values(page: str) -> dict[str, Any]:
    """Return the position of the sliders that a browser reads from the page and sends back."""
    numbers = dict(re.findall(r'<input type="number" id="(\w+)" value="([^"]+)"', page))
    chosen = dict(re.findall(r'<select id="(\w+)">.*?<option value="(\w+)" selected', page, re.DOTALL))
    return {
        **chosen,
        **{name: float(value) if "." in value or "e" in value else int(value) for name, value in numbers.items()},
    }


def tile(page: str, name: str) -> str:
    found = re.search(rf'id="tile-{name}">([^<]*)', page)
    assert found
    return found[1]


def assert_agrees(source: Source, terms: Terms) -> tuple[StartPosition, dict[str, Any]]:
    """Compare every number that both show, as data and as the page writes it; return the start and its answer."""
    start, plan = start_position(source, terms), plan_experiment(source, terms)
    found = answer(start, start.question)
    assert {name: found[name] for name in SHOWN} == {name: plan[name] for name in SHOWN}
    page = unescape(render_page(start, found))
    for name in ("noise_multiplier", "noise_to_signal"):
        assert tile(page, name) == ("–" if plan[name] is None else format_number(plan[name]))
    for name in ("client_expected", "all_total"):
        assert tile(page, name) == format_bytes(plan["bytes"][name])
    values = page_values(page)
    assert from_plain(Question, values) == start.question
    assert (values["rounds"], values["clients"]) == (plan["rounds"], plan["clients"])
    assert (values["dimension"], values["local_steps"]) == (plan["parameters"], plan["local_work"]["now"])
    assert f"{plan['examples']:,} examples" in page
    return start, found


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.protects])
def test_every_recipe_has_the_numbers_of_its_plan(small: Path, name: str):
    public = ", public_examples=100}" if name == "fed_smp_top" else "}"
    settings = [*recipe_settings(name), f"{UNEVEN[:-1]}{public}", "seed=0", "privacy.epsilon=8.0", "privacy.delta=1e-3"]
    start, found = assert_agrees(*read_plan(small, *settings))
    assert start.question.mechanism == "experiment"
    assert found["reason"] == ""
    assert found["epsilon"] > 0


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if not recipe.protects])
def test_a_file_without_privacy_is_said_to_have_none(tmp_path: Path, small: Path, name: str):
    text = small.read_text()
    small.write_text(text[: text.index("[privacy]")] + text[text.index("[algorithm]") :])
    start, found = assert_agrees(*read_plan(small, *recipe_settings(name)))
    assert "adds no noise" in found["reason"]
    moved = answer(start, replace(start.question, rounds=9))
    assert "no noise" in moved["reason"]
    assert answer(start, replace(start.question, mechanism="dp_sgd"))["noise_multiplier"] > 0


@pytest.mark.parametrize(
    "settings",
    [
        ("algorithm.noise_multiplier=20.0",),
        ("algorithm.noise_multiplier=[13.0,14.0,15.0]",),
        ("privacy.epsilon=[2.0,3.0,4.0]",),
        ("algorithm.sampling_rate=[0.1,0.2,0.3]",),
        ("algorithm.momentum=0.9",),
        ("algorithm.local_steps=[1,2]",),
        ("algorithm.sampling_rate=0.0123456789",),
        (f"{SKELLAM}, bits=20}}",),
        (f"{SKELLAM}, rotated=true}}",),
        (f"{SKELLAM}, dropouts=1}}",),
        (FIXED, *OF_CLIENTS, TEN),
        (UNEVEN, "seed=0"),
        ("task={kind='digits',clients=3,partition={kind='dirichlet',alpha=1.0}}", "model={kind='mlp'}", "seed=0"),
    ],
    ids=str,
)
def test_a_file_with_settings_of_its_own_has_the_numbers_of_its_plan(small: Path, settings: tuple[str, ...]):
    _, found = assert_agrees(*read_plan(small, *settings))
    assert found["reason"] == ""


@pytest.mark.parametrize("rows", [(600, 600, 600), (30, 300, 3000)], ids=["even clients", "uneven clients"])
@pytest.mark.parametrize("recipe", ["pfl", "ddp_fedavg"])
def test_a_table_that_is_standardised_has_the_numbers_of_its_plan(tmp_path: Path, rows: tuple[int, ...], recipe: str):
    numbers = np.random.default_rng(1)
    lines = [
        f"{hospital},{numbers.normal(45, 12):.1f},{'yes' if numbers.random() < 0.5 else 'no'}"
        for hospital, count in zip(("north", "south", "west"), rows, strict=True)
        for _ in range(count)
    ]
    (tmp_path / "visits.csv").write_text("\n".join(["hospital,age,ill", *lines]) + "\n")
    (tmp_path / "ranges.toml").write_text(RANGES)
    (tmp_path / "table.toml").write_text(TABLE)
    source, terms = read_plan(tmp_path / "table.toml", f"algorithm.recipe={recipe}")
    assert terms.algorithm.standardisation is not None
    start, found = assert_agrees(source, terms)
    assert found["epsilon"] <= 4
    moved = answer(start, replace(start.question, rounds=40))
    assert moved["noise_multiplier"] == plan_noise(tmp_path / "table.toml", f"algorithm.recipe={recipe}", "rounds=40")


def plan_noise(path: Path, *settings: str) -> float:
    noise = plan_experiment(*read_plan(path, *settings))["noise_multiplier"]
    assert isinstance(noise, float)
    return noise


@pytest.mark.parametrize(
    ("moved", "setting"),
    [
        ({"epsilon": 0.5}, "privacy.epsilon=0.5"),
        ({"delta": 1e-6}, "privacy.delta=1e-6"),
        ({"rounds": 9}, "rounds=9"),
        ({"local_steps": 7}, "algorithm.local_steps=7"),
        ({"sampling_rate": 0.35}, "algorithm.sampling_rate=0.35"),
        ({"view": "public"}, "privacy.against=public"),
    ],
    ids=str,
)
@pytest.mark.parametrize("more", [(), (f"{SKELLAM}}}",), ("algorithm.noise_multiplier=20.0",)], ids=str)
def test_a_moved_slider_shows_the_plan_of_a_file_with_that_number(
    small: Path, moved: dict[str, Any], setting: str, more: tuple[str, ...]
):
    """A file that gives its noise is compared with one that leaves it to the promise."""
    start = start_position(*read_plan(small, UNEVEN, "seed=0", *more))
    found = answer(start, replace(start.question, **moved))
    left_open = () if more and "noise" in more[0] else more
    plan = plan_experiment(*read_plan(small, UNEVEN, "seed=0", *left_open, setting))
    assert {name: found[name] for name in SHOWN} == {name: plan[name] for name in SHOWN}


def test_a_moved_share_of_clients_shows_the_plan_of_a_file_with_that_share(small: Path):
    recipe = "algorithm={recipe='dp_fedavg',batch_size=8,steps=4,sampling_rate=0.5,learning_rate=0.1,clip_norm=0.5}"
    settings = (recipe, *OF_CLIENTS, "privacy.against=public", TEN)
    start = start_position(*read_plan(small, *settings))
    found = answer(start, replace(start.question, sampling_rate=0.2))
    plan = plan_experiment(*read_plan(small, *settings, "algorithm.sampling_rate=0.2"))
    assert {name: found[name] for name in SHOWN} == {name: plan[name] for name in SHOWN}
    cohorts = start_position(*read_plan(small, FIXED, *OF_CLIENTS, TEN))
    found = answer(cohorts, replace(cohorts.question, clients=20))
    assert found["expected_cohort"] == 6


def test_twice_as_many_even_clients_show_the_plan_of_such_a_file(small: Path):
    start = start_position(*read_plan(small, TEN))
    found = answer(start, replace(start.question, clients=20, examples=72))
    plan = plan_experiment(*read_plan(small, "task={kind='digits',clients=20}"))
    assert found["noise_multiplier"] == plan["noise_multiplier"]
    assert found["noise_to_signal"] == pytest.approx(plan["noise_to_signal"], rel=0.002)  # 72 examples each, or 71.9
    assert found["bytes"] == plan["bytes"]


def test_clients_with_numbers_of_their_own_keep_them_when_there_are_more(small: Path):
    start = start_position(*read_plan(small, "privacy.epsilon=[2.0,3.0,4.0]"))
    once, twice = (answer(start, replace(start.question, clients=count)) for count in (3, 6))
    assert twice["noise_multiplier"] == pytest.approx(once["noise_multiplier"], rel=1e-4)
    assert twice["noise_to_signal"] == pytest.approx(once["noise_to_signal"] / 2**0.5, rel=0.01)


def test_examples_of_a_client_are_a_whole_number(small: Path):
    start = start_position(*read_plan(small, TEN))
    assert start.question.examples == 144  # of 143.8
    with pytest.raises(InvalidInput, match="examples"):
        replace(start.question, examples=143.8)


def test_what_is_beyond_the_pages_limits_is_said(small: Path):
    start = start_position(*read_plan(small, "privacy.delta=0.3"))
    assert start.question.delta == 0.1
    assert any("delta at 0.1, its limit" in note for note in start.notes())
    assert answer(start, start.question)["delta"] == 0.1


def test_noise_that_a_file_gives_is_said(small: Path):
    assert not any("gives its noise" in note for note in start_position(*read_plan(small)).notes())
    given = start_position(*read_plan(small, "algorithm.noise_multiplier=20.0"))
    assert any("gives its noise" in note for note in given.notes())
    assert answer(given, given.question)["noise_multiplier"] == 20
