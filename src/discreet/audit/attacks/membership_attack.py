"""Membership inference: repeat an experiment on random halves of its data, and guess which half each model saw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.input_scale import InputScale
from discreet.algorithms.recipes.fedavg import fedavg
from discreet.audit.attacks.attack_rates import CONFIDENCE, Flags, Roc, Scores, smallest_drawn_rate
from discreet.audit.attacks.membership_scores import (
    likelihood_ratio_scores,
    logit_confidence,
    loss_threshold_scores,
)
from discreet.audit.attacks.shadow_data import AttackUnit, ShadowData
from discreet.audit.attacks.shadow_runs import ShadowRuns
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.job import Job
from discreet.models.standardised_model import standardise_inputs
from discreet.models.user_module.example_losses import example_losses
from discreet.privacy import accountant
from discreet.privacy.guarantee import FALSE_ALARMS, Guarantee
from discreet.privacy.wording import compact, round_up
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

SHADOWS = 32
FEWEST_SHADOWS = 8
EVALUATED = 4096  # examples that go through a network at once
BOUND_POINTS = 25
OWN, BASELINE = "this experiment", "without privacy (FedAvg)"
LIRA, LOSS = "LiRA", "loss threshold"
# FedAvg as it is usually run: enough passes that a model which can overfit does
FEDAVG = fedavg(learning_rate=0.1, batch_size=16, epochs=5)


@dataclass(frozen=True)
class MembershipAttack:
    """How often attacks recognise the training data of an experiment.

    Attributes:
        unit: What is recognised: an example, or all examples of a client.
        shadows: Number of models that were trained; each is attacked with the others as its shadows.
        guarantee: What is certified for the experiment. None without privacy.
        curves: ROC curves by the name of the run, then by the name of the attack.
        accuracies: Test accuracy of the first model, by the name of the run. No guarantee covers it.
    """

    unit: AttackUnit
    shadows: int
    guarantee: Guarantee | None
    curves: dict[str, dict[str, Roc]]
    accuracies: dict[str, float | None]

    def certified_rate(self, false_positive_rate: float) -> float | None:
        """Return the largest true positive rate that the guarantee allows. None if it doesn't speak of this attack."""
        return certified_rate(self.guarantee, false_positive_rate)

    def sentences(self) -> list[str]:
        """Return the result in plain words."""
        own = self.curves[OWN][LIRA].rate_at(0.01)
        low, high = own.interval()
        bound = self.certified_rate(0.01)
        said = [
            f"At 1 % false alarms, the likelihood-ratio attack (LiRA) with {self.shadows - 1} shadow models recognises "
            f"{_percent(own.true_positive_rate)} of the {self.unit}s that a model was trained on "
            f"({100 * CONFIDENCE:.0f} % interval: {_percent(low)} to {_percent(high)})."
        ]
        if bound is not None and self.guarantee is not None:
            card = self.guarantee
            said.append(
                f"The guarantee (ε = {round_up(card.epsilon)} at δ = {compact(card.delta)}) allows no attack more than "
                f"{_percent(bound)}."
            )
        if BASELINE in self.curves:
            other = self.curves[BASELINE][LIRA].rate_at(0.01)
            said.append(f"Without privacy (FedAvg), the same attack recognises {_percent(other.true_positive_rate)}.")
        return said

    def to_plain(self) -> dict[str, Any]:
        """Return the attack as plain data, for JSON."""
        card = self.guarantee
        bound = [(rate, self.certified_rate(rate)) for rate in bound_rates(self.curves[OWN][LIRA].fewest_alarms)]
        return {
            "attack": "membership",
            "unit": self.unit,
            "shadows": self.shadows,
            "confidence": CONFIDENCE,
            "certified_epsilon": None if card is None else card.epsilon,
            "delta": None if card is None else card.delta,
            "certified_curve": [] if bound[0][1] is None else bound,
            "runs": [
                {
                    "name": run,
                    "accuracy": self.accuracies[run],
                    "attacks": [self._plain_curve(name, roc, run) for name, roc in curves.items()],
                }
                for run, curves in self.curves.items()
            ],
            "sentences": self.sentences(),
        }

    def _plain_curve(self, name: str, roc: Roc, run: str) -> dict[str, Any]:
        rates = []
        for rate in roc.rates():
            low, high = rate.interval()
            entry = {
                "false_positive_rate": rate.false_positive_rate,
                "true_positive_rate": rate.true_positive_rate,
                "low": low,
                "high": high,
            }
            bound = self.certified_rate(rate.false_positive_rate) if run == OWN else None
            rates.append(entry | ({} if bound is None else {"certified": bound}))
        return {"name": name, "area": roc.area, "rates": rates, "points": roc.points()}


def certified_rate(guarantee: Guarantee | None, false_positive_rate: float) -> float | None:
    """Return the largest true positive rate that a guarantee allows. None if it doesn't speak of this attack."""
    if guarantee is None or guarantee.relation == "replace":
        return None
    return accountant.true_positive_rate(guarantee.event, false_positive_rate, guarantee.relation)


def bound_rates(fewest_alarms: float) -> list[float]:
    """Return the rates of false alarms at which the certified curve is drawn, from the fewest that are drawn to all."""
    return [float(rate) for rate in np.geomspace(fewest_alarms, 1, BOUND_POINTS)]


def attack_membership(
    job: Job,
    guarantee: Guarantee | None,
    *,
    shadows: int = SHADOWS,
    compare: bool = False,
    key: RunKey | None = None,
    announce: Callable[[float], None] = lambda seconds: None,
    watch: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> MembershipAttack:
    """Repeat an experiment on random halves of its data, and attack each model with the others as its shadows.

    Every unit is present or blank by a fair coin, and everything else stays as it is: the relation under which the
    guarantee is certified. So its bound holds for this attack, and each model is a fresh draw of the same noise.

    Args:
        job: The experiment. Its data is read; nothing is counted in a ledger and nothing is written.
        guarantee: What is certified for it. None without privacy.
        shadows: Number of models to train.
        compare: Train as many models by FedAvg on the same data, without privacy.
        key: Where coins and noise come from. None for a fresh key.
        announce: Called with the estimated seconds before the first model is trained.
        watch: Called with what is trained, how many models are done, and their number.

    Raises:
        InvalidInput: There are too few shadows.
        Unsupported: The clients keep their data themselves.
    """
    if shadows < FEWEST_SHADOWS:
        raise InvalidInput(f"The attack needs at least {FEWEST_SHADOWS} shadow models, and got {shadows}.")
    if not job.holds_data:
        raise Unsupported("Membership can only be attacked where the clients' data is, and it is not on this machine.")
    key = key or RunKey.generate()
    unit: AttackUnit = "client" if guarantee is not None and guarantee.unit == "client" else "example"
    data = ShadowData(job.data, unit)
    if data.units < 2:
        raise InvalidInput(f"The attack needs at least two {unit}s, and there is one.")
    generator = key.generator(Purpose.ATTACK, "coins")
    present = torch.rand(shadows, data.units, generator=generator) < 0.5
    for rate in (*FALSE_ALARMS, *bound_rates(smallest_drawn_rate(int((~present).sum())))):
        certified_rate(guarantee, rate)  # fails before the training, not after it; the accountant caches the value
    federations = [data.draw(coins) for coins in present]
    jobs = {OWN: job} | ({BASELINE: replace(job, algorithm=FEDAVG, privacy=None)} if compare else {})
    runs = {name: ShadowRuns(each, key) for name, each in jobs.items()}
    announce(sum(each.estimate_seconds(federations[0], shadows) for each in runs.values()))
    curves: dict[str, dict[str, Roc]] = {}
    accuracies: dict[str, float | None] = {}
    for name, each in runs.items():
        states = each.train(federations, lambda done, name=name: watch(name, done, shadows))  # type: ignore[misc]
        curves[name] = _attack_models(each.job, states, present.numpy(), data)
        accuracies[name] = each.job.evaluate(states[0]).get("accuracy")
    return MembershipAttack(unit, shadows, guarantee, curves, accuracies)


def _attack_models(job: Job, states: Sequence[ServerState], present: Flags, data: ShadowData) -> dict[str, Roc]:
    """Return the ROC curve of each attack over all pairs of a model and a unit."""
    losses = np.stack([_example_losses(job, state, data) for state in states])
    if not np.isfinite(losses).all():
        losses = np.nan_to_num(losses, nan=1e6, posinf=1e6)
    confidences = logit_confidence(losses) if _is_cross_entropy(job) else -losses
    units = data.unit_of_slot.numpy()
    scores = {
        LIRA: likelihood_ratio_scores(confidences, present, units),
        LOSS: loss_threshold_scores(losses, units),
    }
    return {name: Roc.from_scores(each.ravel(), present.ravel()) for name, each in scores.items()}


def _is_cross_entropy(job: Job) -> bool:
    return job.model.kind == "classification" and job.model.user_functions[0] is None


def _example_losses(job: Job, state: ServerState, data: ShadowData) -> Scores:
    """Return the loss of a model on the example in each slot."""
    module = standardise_inputs(job.model.module_with_params(state.params), InputScale.find(state.input_scale))
    found = []
    with torch.no_grad():
        for slots in torch.split(torch.arange(len(data.unit_of_slot)), EVALUATED):
            inputs, targets = job.data.examples_at(slots)
            found.append(example_losses(job.model.kind, job.model.user_functions[0], module(inputs), targets))
    return torch.cat(found).double().cpu().numpy()


def _percent(share: float) -> str:
    return f"{compact(100 * share, 2)} %"
