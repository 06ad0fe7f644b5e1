"""The catalog's entries describe themselves: nothing about them is written twice."""

import doctest
import inspect
import re
from typing import Any, Literal

import pytest

from discreet.algorithms.recipes.recipe import first_sentence
from discreet.algorithms.recipes.recipe_arguments import describe_type
from discreet.algorithms.recipes.registry import RECIPES
from discreet.algorithms.sampling import Everyone, Poisson, RoundRobin
from discreet.algorithms.server_optimizers import ServerAdam, ServerSgd
from discreet.errors import InvalidInput
from discreet.experiment.configuration.algorithm_table import build_algorithm


@pytest.mark.parametrize("name", RECIPES)
def test_every_entry_has_an_example_that_a_file_could_hold_and_says_what_it_is(name: str):
    recipe = RECIPES[name]
    assert build_algorithm({"recipe": name, **recipe.example}) == recipe(**recipe.example)
    assert recipe.summary.endswith(".")
    assert "\n" not in recipe.summary
    assert {each.name for each in recipe.arguments if each.required} <= set(recipe.example)
    assert all(each.unit in ("example", "client") for each in recipe.protects)


@pytest.mark.parametrize("name", RECIPES)
def test_the_example_in_its_documentation_runs(name: str):
    function = RECIPES[name].function
    (example,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={name: function})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", RECIPES)
def test_its_documentation_describes_every_argument(name: str):
    text = inspect.getdoc(RECIPES[name].function) or ""
    described = text.partition("\n\nArgs:\n")[2].partition("\n\nReturns:\n")[0]
    assert re.findall(r"^    (\w+): ", described, re.MULTILINE) == list(RECIPES[name].parameters)


def test_whom_it_protects_is_read_off_what_it_releases():
    assert RECIPES["fedavg"].protects == []
    assert [(each.unit, each.view) for each in RECIPES["pfl"].protects] == [("example", "server")]
    assert [(each.unit, each.view) for each in RECIPES["dp_fedavg"].protects] == [("client", "public")]


def test_a_table_among_the_arguments_becomes_a_part():
    made = RECIPES["fedavg"](learning_rate=0.1, batch_size=8, sampling={"kind": "poisson", "rate": 0.5})
    assert made.sampling.rate == 0.5
    assert RECIPES["fedavg"](learning_rate=0.1, batch_size=8, sampling=Everyone()).sampling == Everyone()


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (int | None, "whole number"),
        (int | list[int] | None, "whole number or list"),
        (Literal["pass", "minibatch"], '"pass" or "minibatch"'),
        (Everyone | Poisson | RoundRobin | None, "table of kind everyone, poisson or round_robin"),
        (float | Everyone, "number or table of kind everyone"),
        (ServerSgd | ServerAdam, "table of kind sgd or adam"),
        (bool, "true or false"),
    ],
)
def test_a_type_is_said_as_a_file_writes_it(hint: object, said: str):
    assert describe_type(hint) == said


def test_a_summary_is_the_first_sentence_whatever_it_cites():
    text = "Mine (Doe et al. 2020): a sum\nof things. No privacy.\n\nMore."
    assert first_sentence(text) == "Mine (Doe et al. 2020): a sum of things."


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("ldp_fedavg", {"noise": "lapalce"}, 'noise must be "laplace" or "gaussian", and got \'lapalce\''),
        ("ldp_fedavg", {"as_published": "no"}, "as_published must be true or false, and got 'no'"),
        ("ldp_fedavg", {"as_published": 1}, "as_published must be true or false, and got 1"),
        ("ldp_fedavg", {"local_iterations": 2.5}, r"local_iterations must be a whole number, and got 2\.5"),
        ("ldp_fedavg", {"local_iterations": 0, "total_iterations": 3}, "must be at least 1, and got 0 and 3"),
        ("ldp_fedavg", {"total_iterations": 10**11}, "must be at most 1,000,000 times local_iterations"),
        ("dp_fedavg", {"sampling_rate": True}, "sampling_rate must be a number, and got True"),
        ("dp_fedavg", {"sampling": {"kind": "everyone"}}, "Give either sampling or sampling_rate"),
        ("dp_fedsam", {"adaptive": "no"}, "adaptive must be true or false, and got 'no'"),
        ("dp_fedsam_top", {"cohort": 3}, "cohort goes with as_published"),
        ("dp_fedsam_top", {"as_published": True}, "cohorts have a fixed size, and no sampling rate"),
        ("ddp_fedavg", {"noise": "gaussian", "colluding": 2}, "are for secure sums"),
        ("ddp_fedavg", {"gradients": "local", "dropouts": 2}, 'go with gradients = "broadcast"'),
        ("pfl", {"epochs": [1, "2"]}, "epochs must be a whole number or a list, and got"),
    ],
)
def test_what_is_no_argument_of_its_kind_or_has_no_effect_is_refused(name: str, changed: dict[str, Any], said: str):
    with pytest.raises(InvalidInput, match=said):
        RECIPES[name](**{**RECIPES[name].example, **changed})
