"""The card of a search that counted every trial: what the ledger's filter holds for all of them together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.experiment.loop import run_guarantees
from discreet.experiment.loop.run_guarantees import name_search
from discreet.experiment.loop.sum_odds import TrialNumber, search_odds
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.experiment.tuning import search_price
from discreet.experiment.tuning.composed_search import ComposedPlan, best_trial
from discreet.experiment.tuning.search_files import ScoredTrial
from discreet.experiment.tuning.trial_jobs import TrialBuilder, training_job
from discreet.part import from_plain
from discreet.privacy import gaussian, rdp
from discreet.privacy.attack_bound import largest_true_positive_rate
from discreet.privacy.card_lines import Line
from discreet.privacy.events import Composed, Event
from discreet.privacy.guarantee import FALSE_ALARMS, Attack, Claim, Guarantee, SecondValue
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Release
from discreet.privacy.wording import round_up
from discreet.words import fill


def write_search_card(
    builder: TrialBuilder, plan: ComposedPlan, trials: Sequence[ScoredTrial], best: Path
) -> list[Guarantee]:
    """Write the card of the whole search into the run directory of its best trial, and return it.

    Args:
        builder: Builds the trials.
        plan: The search. A search on public data has no card.
        trials: All trials that have a score.
        best: The run directory of the best trial.
    """
    chosen = best_trial(plan.tune, list(trials))
    if plan.ledger is None or plan.budget is None or chosen is None:
        return []
    book, record = Ledger.open(plan.ledger), RunRecord.open(best)
    job = training_job(builder.build(chosen.settings), plan.whole_epsilon)
    metrics, stamps = read_metrics(best), record.code_stamps()
    shared = plan.ledger.resolve().parent != best.resolve().parent
    others = [training_job(builder.build(trial.settings), plan.whole_epsilon).terms for trial in trials]
    odds = search_odds(others, TrialNumber(plan.trials, is_secret=False))  # planned ones: how many follow shows scores
    alone = run_guarantees.certify_run(
        job.terms, job.rounds, book, shared=shared, metrics=metrics, code_stamps=stamps, odds=odds
    )
    promised = Release(unit=alone[0].unit, relation=alone[0].relation, view=alone[0].view, event=alone[0].event)
    assumed = [
        line for each in others for line in run_guarantees.trial_assumptions(each, [promised], odds, shared=shared)
    ]
    large = run_guarantees.large_delta_line(job.terms, alone[0].unit, plan.budget.delta)
    cards = [_whole_card(alone[0], plan, plan.budget, book, trials, assumed, list(large))]
    data = run_guarantees.guarantee_data(job, job.rounds, None, cards, book, stamps)
    record.write_card(data | {"metrics": metrics}, run_guarantees.card_text(cards))
    return cards


def read_metrics(best: Path) -> dict[str, Any]:
    """Return the metrics of the best trial on test data, after its last round."""
    lines = RunRecord.open(best).read_rounds() if (best / "run.json").is_file() else []
    metrics: dict[str, Any] = lines[-1].get("evaluation", {}) if lines else {}
    return metrics


def _whole_card(
    alone: Guarantee,
    plan: ComposedPlan,
    budget: Budget,
    book: Ledger,
    trials: Sequence[ScoredTrial],
    of_trials: Sequence[Line],
    large_delta: Sequence[Line],
) -> Guarantee:
    """Return the card of the best trial with the guarantee of the whole search, and what any of its trials assumes.

    Guarantee: ε is the budget of the filter, which holds however later trials depend on earlier scores (Feldman &
    Zrnic 2021). What was spent of it is no guarantee by itself, since that depends on the scores. The budget is for the
    promised unit, and for a view that sees at least as much as the promised one.
    """
    state = next(each for each in book.summary()["budgets"] if from_plain(Budget, _budget_fields(each)) == budget)
    order = np.array([state["order"]])
    left = budget.epsilon - rdp.to_epsilon(order, np.zeros(1), budget.delta)  # what the filter admits at its order
    events = tuple(from_plain(Event, trial.event) for trial in trials)
    naive = max(trial.epsilon or 0.0 for trial in trials)
    claim = Claim(epsilon=naive, delta=alone.delta, source=fill("claim.best_trial"), reason=fill("claim.chosen_trial"))
    own = [name_search(Line(*pair)) for pair in zip(alone.assumptions, alone.assumption_sources, strict=True)]
    assumed = list(dict.fromkeys([*own, *of_trials]))
    rest = [name_search(Line(*pair)) for pair in zip(alone.not_covered, alone.exclusion_sources, strict=True)]
    # the ledger's δ may be another one than that of a trial
    excluded = [*large_delta, *(line for line in rest if line != fill("not_covered.large_delta"))]
    assumed.append(Line(fill("assumes.counted_trials", spent=round_up(state["spent"])), "program"))
    assumed.append(search_price.describe_scores(plan.scorer))
    return replace(
        alone,
        relation=budget.relation,
        epsilon=budget.epsilon,
        delta=budget.delta,
        event=Composed(events=events),
        accountant="filter",
        second=SecondValue(engine="dp-accounting", epsilon=None, reason=fill("second.filter")),
        mu=gaussian.equivalent_mu(budget.epsilon, budget.delta),
        attacks=tuple(
            Attack(false_positive_rate=rate, true_positive_rate=largest_true_positive_rate(order, left, rate))
            for rate in FALSE_ALARMS
        ),
        assumptions=tuple(assumed),
        assumption_sources=tuple(line.source for line in assumed),
        not_covered=tuple(excluded),
        exclusion_sources=tuple(line.source for line in excluded),
        claims=(*alone.claims, claim),
    )


def _budget_fields(state: dict[str, object]) -> dict[str, object]:
    return {name: state[name] for name in ("unit", "relation", "view", "epsilon", "delta", "clients")}
