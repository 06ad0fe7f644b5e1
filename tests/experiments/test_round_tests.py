"""The page on attacked rounds: it covers the catalog, and is what the stored results say."""

from discreet.algorithms.recipes.registry import RECIPES
from experiments.round_tests.cases import EFFORT, list_cases
from experiments.round_tests.page import PAGE, format_page
from experiments.round_tests.reproduce import read_results


def test_every_private_recipe_is_attacked():
    names = {case.name for case in list_cases()}
    assert {f"`{name}`" for name, recipe in RECIPES.items() if recipe.protects} <= names


def test_every_case_has_a_result_for_each_of_its_claims():
    stored = read_results()
    for case in list_cases():
        fitted = case.algorithm.for_population(case.population, 2)
        claims = fitted.releases(case.population, 0) if case.claims is None else case.claims
        assert len(stored[case.name]) == len(claims), case.name
        assert {line["repetitions"] for line in stored[case.name]} == {EFFORT.repetitions}


def test_only_the_theorem_that_does_not_hold_is_contradicted():
    wrong = {name for name, lines in read_results().items() if any(line["violated"] for line in lines)}
    assert wrong == {"`ddp_fedavg` as published, task of the counterexample: Theorem 4.6"}


def test_the_page_is_what_the_results_say():
    stored = read_results()
    lines = [line for case in list_cases() for line in stored[case.name]]
    assert PAGE.read_text() == format_page(lines)
    assert all(line["lower_bound"] <= line["claimed_epsilon"] for line in lines if not line["violated"])
