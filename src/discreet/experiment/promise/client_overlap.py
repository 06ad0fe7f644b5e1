"""Examples that may lie in several clients: which budgets can't count a run on them."""

from collections.abc import Sequence

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.errors import UnsoundCombination, Unsupported
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import Charge, charges
from discreet.privacy.release import Release
from discreet.privacy.wording import unit_name


def check_budgets(budgets: Sequence[Budget], algorithm: Algorithm, population: Population, where: str) -> None:
    """A budget for examples or persons must not be charged by what protects one client, where an example may lie in
    more: a change to the example changes all of them.
    """
    if population.max_multiplicity == 1:
        return
    releases = algorithm.releases(population, 0)
    apart = [each for each in releases if each.unit != "client"]
    for budget in budgets:
        if budget.unit != "client" and _charges(budget, releases) not in (None, _charges(budget, apart)):
            unit = unit_name(budget.unit)
            raise UnsoundCombination(
                f"{where} has a budget for one {unit} against the {budget.view}, and this experiment protects one "
                f"client; an example may lie in {population.max_multiplicity} clients, so the budget would be charged "
                "too little.",
                fix="Count in a ledger for clients (--unit client), use an algorithm that protects single examples "
                "against this view, or give every example to one client.",
            )


def _charges(budget: Budget, releases: Sequence[Release]) -> list[Charge] | None:
    """None where the budget can't count these releases, and so the ledger refuses them."""
    try:
        return charges(budget, releases)
    except Unsupported:
        return None
