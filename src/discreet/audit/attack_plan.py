"""Which canaries an audit plants, what the attacker sees of them, and how they enter what is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.training.per_round import value_in_round
from discreet.audit.canary_data import Amplitudes, Slots, client_slots, spread_slots
from discreet.audit.estimators.score_pairs import Design, Noise
from discreet.audit.feature_canaries import count_features
from discreet.errors import Unsupported
from discreet.params import Params, count_values
from discreet.privacy.events import PoissonSampled, SampledWithoutReplacement, steps
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import Person, View

MOST_CANARIES = 1000
ADDITIVE = frozenset({"dp_sgd", "broadcast_gradients", "denoised_release"})  # each row adds its own clipped gradient
LINEAR = "convex_local"  # training on a linear layer's features
COORDINATES_IN_MASK = 8  # coordinates of a canary where a mask leaves some out
REACH = 100.0  # how far an update of a canary goes beyond the clip

Sight: TypeAlias = Literal["uploads", "release"]


@dataclass(frozen=True)
class AttackPlan:
    """An attack on one guarantee.

    Attributes:
        slots: Where canaries are.
        amplitudes: The gradients of present and absent canaries, and of the rows beside them.
        design: How a canary enters what is seen; `rounds` are those that its client may join.
        sight: What is seen: each upload, or the noisy sum.
        observer: The client that attacks, and knows the noise that it added; None for none.
        removes: Whether an absent canary client doesn't join at all.
        knows_cohort: Whether the attacker sees who joins a round.
        counts_rows: Whether a canary enters a round as often as its rows are drawn; else once if its client joins.
        feature_bound: The norm of features, if canaries are features of a linear layer; else they are gradients.
    """

    slots: Slots
    amplitudes: Amplitudes
    design: Design
    sight: Sight
    observer: int | None
    removes: bool
    knows_cohort: bool
    counts_rows: bool = False
    feature_bound: float | None = None

    @property
    def entries(self) -> float:
        """How often a canary enters a round that its client joins, where its rows are not counted: on average."""
        by_row = self.feature_bound is not None
        return self.design.trials * (self.design.rate if by_row else 1.0)


def plan_attack(
    algorithm: Algorithm,
    population: Population,
    card: Guarantee,
    *,
    view: View,
    rounds: int,
    params: Params,
    canaries: int | None = None,
) -> AttackPlan:
    """Plan the attack that the guarantee on the card is tested by.

    Args:
        algorithm: The algorithm with all its noise.
        population: Public client sizes.
        card: The guarantee.
        view: Who attacks: the view of the card, or one that sees less.
        rounds: Rounds of the experiment.
        params: The shape of the model.
        canaries: Number of canaries; None for as many as fit, up to 1,000.

    Raises:
        Unsupported: No canary can be planted, or no attack of this kind knows how a canary enters.
    """
    observer = population.clients - 1 if view == "client" and population.clients > 1 else None
    clients = tuple(client for client in card.clients or range(population.clients) if client != observer)
    kind = per_client.for_client(algorithm.trainer.for_population(population), clients[0])
    dimension = count_features(params) if kind.kind == LINEAR else count_values(params)
    room = dimension // COORDINATES_IN_MASK if algorithm.sparsifier.has_common_mask else dimension
    wanted = min(canaries or MOST_CANARIES, room)
    if card.unit == "client":
        plan = _client_plan(algorithm, card, client_slots(population.examples, clients, wanted), kind)
    else:
        rows = card.unit.at_most if isinstance(card.unit, Person) else 1
        plan = _example_plan(algorithm, population, card, kind, clients, rows, wanted)
    if not len(plan.slots):
        raise Unsupported(
            f"A canary needs {plan.design.trials} row{'' if plan.design.trials == 1 else 's'} of a client and a "
            "coordinate of the model, and there is none.",
            fix="Audit an experiment with larger clients or a larger model.",
        )
    joined = algorithm.sampling.rounds_joined(population, rounds)
    sight: Sight = "uploads" if view == "server" and not algorithm.aggregation.is_secure else "release"
    noise: Noise = "laplace" if algorithm.mechanism.norm_order == 1 else "gaussian"
    return replace(plan, design=replace(plan.design, rounds=joined, noise=noise), sight=sight, observer=observer)


def _client_plan(algorithm: Algorithm, card: Guarantee, slots: Slots, trainer: Any) -> AttackPlan:
    """Every canary is a client, whose update is at the clip; it is absent by its relation."""
    length = _update_length(algorithm, trainer)
    opposite = card.relation == "replace"
    rate = _client_rate(card)
    return AttackPlan(
        slots=slots,
        amplitudes=Amplitudes(length, -length if opposite else 0.0),
        design=Design(1, rate=rate, opposite=opposite),
        sight="release",
        observer=None,
        removes=card.relation == "add_or_remove",
        knows_cohort=rate == 1.0,
    )


def _example_plan(
    algorithm: Algorithm,
    population: Population,
    card: Guarantee,
    trainer: Any,
    clients: tuple[int, ...],
    rows: int,
    canaries: int,
) -> AttackPlan:
    sizes = population.examples
    if algorithm.mechanism.unit == "client" and algorithm.mechanism.is_private:  # a row that turns a client's update
        length = _update_length(algorithm, trainer)
        return AttackPlan(
            slots=spread_slots(sizes, clients, 1, canaries, most=1),
            amplitudes=_turning_rows(length, sizes),
            design=Design(1, rate=_client_rate(card), opposite=True),
            sight="release",
            observer=None,
            removes=False,
            knows_cohort=_client_rate(card) == 1.0,
        )
    exposure = trainer.exposure(0)
    times, rate = value_in_round(exposure.steps, 0), exposure.sampling_rate or 1.0
    if trainer.kind in ADDITIVE:
        slots = spread_slots(sizes, clients, rows, canaries, most=max(sizes))
        amplitudes, trials = Amplitudes(10 * trainer.clip_norm), rows * times
    elif trainer.kind == LINEAR:
        slots = spread_slots(sizes, clients, rows, canaries, most=max(sizes))
        amplitudes, trials = Amplitudes(1.0), rows
    else:  # one canary in each client, whose other rows pull the other way
        slots = spread_slots(sizes, clients, 1, canaries, most=1)
        clip, step = trainer.clip_norm, getattr(trainer, "learning_rate", None) or trainer.local.learning_rate
        amplitudes, trials = _turning_rows(REACH * clip * max(1.0, 1 / step), sizes), times
    return AttackPlan(
        slots=slots,
        amplitudes=amplitudes,
        design=Design(1, trials=trials, rate=rate),
        sight="release",
        observer=None,
        removes=False,
        knows_cohort=True,
        counts_rows=rate < 1 and trainer.kind != LINEAR,
        feature_bound=trainer.feature_bound if trainer.kind == LINEAR else None,
    )


def _turning_rows(length: float, sizes: tuple[int, ...]) -> Amplitudes:
    """Return rows that pull one way, and a canary that alone turns their mean round."""
    return Amplitudes(3 * max(sizes) * length, 0.0, -length)


def _update_length(algorithm: Algorithm, trainer: Any) -> float:
    """Return the length of a gradient by which an update goes far beyond the clip, also after one step."""
    clip = getattr(algorithm.mechanism, "clip_norm", None) or 1.0
    step = getattr(trainer, "learning_rate", None) or 1.0
    return REACH * clip * max(1.0, 1 / step)


def _client_rate(card: Guarantee) -> float:
    """Return the probability that a client is in a round, by a draw that the guarantee counts as secret; else 1."""
    for step in steps(card.event):
        match step:
            case PoissonSampled():
                return step.sampling_rate
            case SampledWithoutReplacement():
                return step.cohort / step.population
    return 1.0
