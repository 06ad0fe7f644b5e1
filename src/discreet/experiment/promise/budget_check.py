"""Refuse budgets that can't count an experiment soundly, before anything is reserved."""

from collections.abc import Sequence

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.experiment.promise import client_overlap, person_bound
from discreet.experiment.promise.promise import Privacy
from discreet.privacy.ledger import Budget


def check_budgets(
    budgets: Sequence[Budget], privacy: Privacy | None, algorithm: Algorithm, population: Population, where: str
) -> None:
    """Refuse budgets for a person whose rows are not bounded, and budgets that shared examples would charge too little.

    `where` names the ledger or the policy that holds them.
    """
    person_bound.check_budgets(budgets, privacy, where)
    client_overlap.check_budgets(budgets, algorithm, population, where)
