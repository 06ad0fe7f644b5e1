"""Refuse budgets that can't count an experiment soundly, before anything is reserved."""

from collections.abc import Sequence

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.errors import UnsoundCombination, Unsupported
from discreet.experiment.promise import person_bound
from discreet.experiment.promise.promise import Privacy
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import Charge, charges
from discreet.privacy.release import Release
from discreet.privacy.wording import unit_name


def check_budgets(
    budgets: Sequence[Budget], privacy: Privacy | None, algorithm: Algorithm, population: Population, where: str
) -> None:
    """Refuse budgets for a person whose rows are not bounded, and budgets that shared examples would charge too little.

    `where` names the ledger or the policy that holds them.
    """
    person_bound.check_budgets(budgets, privacy, where)
    check_overlap(budgets, algorithm, population, where)


def check_overlap(budgets: Sequence[Budget], algorithm: Algorithm, population: Population, where: str) -> None:
    """Refuse a budget for examples or persons that would be charged for protecting one client of several.

    If several clients may hold an example, a change to the example changes all of them.
    """
    if population.max_multiplicity == 1:
        return
    releases = algorithm.releases(population, 0)
    without_clients = [release for release in releases if release.unit != "client"]
    for budget in budgets:
        if budget.unit != "client" and _charges(budget, releases) not in (None, _charges(budget, without_clients)):
            unit = unit_name(budget.unit)
            raise UnsoundCombination(
                f"{where} has a budget for one {unit} against the {budget.view}, and this experiment protects one "
                f"client; up to {population.max_multiplicity} clients may hold the same example, so the budget would "
                "be charged too little.",
                fix="Count in a ledger for clients (--unit client), use an algorithm that protects single examples "
                "against this view, or give every example to one client.",
            )


def _charges(budget: Budget, releases: Sequence[Release]) -> list[Charge] | None:
    """Return what the budget is charged. None if it can't count these releases, so that the ledger refuses them."""
    try:
        return charges(budget, releases)
    except Unsupported:
        return None
