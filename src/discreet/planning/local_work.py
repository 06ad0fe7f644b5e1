"""How much a client should do in a round, and why, as far as a proof or an experiment says so."""

import math
from typing import NamedTuple

from discreet.algorithms.mechanisms import LocalNoise
from discreet.algorithms.training import (
    BroadcastGradients,
    ConvexLocal,
    DenoisedRelease,
    DpSgd,
    GradientDescent,
    MinibatchDp,
)
from discreet.algorithms.training.per_round import sum_over_rounds, value_in_round
from discreet.errors import InvalidInput
from discreet.experiment.job import Job
from discreet.experiment.promise.promise import Privacy
from discreet.params import count_values
from discreet.planning.theory.fu_best_iterations import MEASURED_NOTES, best_local
from discreet.planning.theory.fu_client_noise import ClientNoise
from discreet.planning.theory.fu_convergence import Constants, Setting, convergence_bound


class LocalWork(NamedTuple):
    """The local work of a round today, and the recommended one; the fields are JSON keys.

    Attributes:
        now: Today's number.
        recommended: None where nothing proven or measured favours a number; then `why` says what decides instead.
        unit: What is counted: local steps, local iterations or epochs.
        why: The reason.
    """

    now: int
    recommended: int | None
    unit: str
    why: str


def recommend_local_work(job: Job) -> LocalWork:
    """Recommend the local work of a round; of the first round, where rounds differ."""
    algorithm, trainer = job.algorithm, job.algorithm.trainer
    match trainer:
        case DpSgd() if algorithm.as_published:
            return LocalWork(value_in_round(trainer.steps or (1,), 0), 1, STEPS, OWN_STATE)
        case DpSgd() if algorithm.weighting == "by_examples":
            return LocalWork(value_in_round(trainer.steps or (1,), 0), None, STEPS, ONE_GRADIENT)
        case DpSgd():
            return _recommend_one_pass(trainer)
        case MinibatchDp():
            return LocalWork(value_in_round(trainer.steps, 0), None, STEPS, PAID_BY_STEP)
        case BroadcastGradients():
            return LocalWork(value_in_round(trainer.steps or (1,), 0), 1, STEPS, BROADCAST_MODEL)
        case DenoisedRelease():
            return LocalWork(value_in_round(trainer.steps or (1,), 0), None, STEPS, PAID_BY_STEP)
        case ConvexLocal():
            free = trainer.passes == 1 and not trainer.strength
            taken = (trainer.fewest_steps or 1) * trainer.passes
            return LocalWork(taken, None, STEPS, FREE_STEPS if free else PULLED_BACK)
        case GradientDescent() if isinstance(algorithm.mechanism, LocalNoise) and job.privacy is not None:
            return _recommend_iterations(job, trainer, algorithm.mechanism, job.privacy)
        case GradientDescent():
            return LocalWork(value_in_round(trainer.iterations, 0), None, ITERATIONS, _describe_update_cost(job))
        case _:
            local = getattr(trainer, "local", trainer)  # with shards, the trainer of each
            epochs, steps = getattr(local, "epochs", None), getattr(local, "steps", None)
            return LocalWork(steps or epochs or 1, None, STEPS if steps else "epochs", _describe_update_cost(job))


def _recommend_one_pass(trainer: DpSgd) -> LocalWork:
    """Recommend one pass over the client's data: the steps that see every example once, on average."""
    rates = trainer.sampling_rate
    now = value_in_round(trainer.steps or (1,), 0)
    if not isinstance(rates, float):
        return LocalWork(now, None, STEPS, PAID_BY_STEP)
    return LocalWork(now, math.ceil(1 / rates - 1e-9), STEPS, ONE_PASS)


def _recommend_iterations(job: Job, trainer: GradientDescent, mechanism: LocalNoise, privacy: Privacy) -> LocalWork:
    """Recommend the E with the least bound of Fu et al. 2021, for today's total where all clients join equally often.

    With Gaussian noise it is one. With Laplace noise μ = λ = 1, Γ = Y_0 = 0, and G is the clip, the largest possible,
    which makes drift large and E* small. E is at most 8λ/μ: above it the bound falls only with its learning rate,
    which a run doesn't follow.
    """
    total, now = sum_over_rounds(trainer.iterations, range(job.rounds)), value_in_round(trainer.iterations, 0)
    if mechanism.norm_order == 2:
        return LocalWork(now, 1, ITERATIONS, f"{GAUSSIAN_BOUND} {MEASURED_NOTES['gaussian']} {RESULTS}.")
    if isinstance(privacy.epsilon, tuple):
        return LocalWork(now, None, ITERATIONS, PAID_BY_ROUND if mechanism.clip_norm else NO_CLIP)
    cohort = max(1, round(job.algorithm.sampling.expected_cohort(job.population)))
    setting = Setting(
        noise=ClientNoise(kind="laplace", epsilon=privacy.epsilon),
        clients=job.population.clients,
        cohort=cohort,
        parameters=count_values(job.params),
        clip_norm=1.0,
        constants=Constants(convexity=1.0, smoothness=1.0, gradient_bound=1.0, heterogeneity=0.0, start=0.0),
    )
    try:
        best = best_local(setting, total, most=setting.least_gamma)
    except InvalidInput as uneven:
        return LocalWork(now, None, ITERATIONS, str(uneven))
    local = int(best.value)
    remark = f", {best.reason}" if best.reason else ""
    reasons = [
        f"The bound of Fu et al. 2021 is least there, among E up to {setting.least_gamma:g} at {total:,} iterations"
        f"{remark}.",
        BOUND_ASSUMPTIONS,
        *([] if convergence_bound(setting, total, local).total < FURTHEST else [VACUOUS]),
        f"{MEASURED_NOTES['laplace']} {RESULTS}.",
    ]
    return LocalWork(now, local, ITERATIONS, " ".join(reasons))


def _describe_update_cost(job: Job) -> str:
    return PAID_BY_ROUND if job.algorithm.mechanism.is_private else "Nothing is promised, so nothing has a cost."


STEPS, ITERATIONS = "local steps", "local iterations"
PAID_BY_STEP = (
    "The noise depends on the steps of all rounds together. More of them per round, in fewer rounds, save bytes and "
    "average less often; nothing proven or measured here says which number is best."
)
NO_CLIP = (
    "Without a clip, more iterations per round move an update further, and its noise grows with them. The bound of Fu "
    "et al. 2021 is for clients with one ε, so it doesn't say here which number is best."
)
ONE_PASS = (
    "One pass over a client's data per round. The noise depends on the steps of all rounds together, so rounds may go "
    "down as steps go up; PFL (Bhaskar et al. 2025) measured one pass to be best for most of its models. In our runs "
    "of CNNs with its authors' settings and batches of 64, one pass is better than two in 12 of 12 comparisons; linear "
    "models and batches of 256 show no measurable difference (docs/results/pfl.md)."
)
ONE_GRADIENT = (
    "Federated SGD sends one noisy gradient per round, whose weights are public. The recipe pfl takes several steps."
)
OWN_STATE = (
    "With more than one step the accounting of Heikkilä 2025 is unsound: a client's own state carries only its own "
    "noise (docs/notes/local_steps.md). With one step it is correct."
)
BROADCAST_MODEL = (
    "All gradients of a round are taken at the broadcast model, and each sum has a privacy cost. One per round, in "
    "that many more rounds, takes the same noise and updates the model in between; more only save bytes."
)
FREE_STEPS = (
    "Steps cost nothing here: the ratio of noise to signal of a round is the same for any number of them "
    "(docs/notes/local_steps.md)."
)
PULLED_BACK = (
    "Every pass moves the update further, and lets one example move it further too. Which of the two grows more "
    "depends on strength, passes and batch_size: compare the noise to signal above for other values "
    "(docs/notes/local_steps.md)."
)
RESULTS = "(docs/results/theory.md)"
GAUSSIAN_BOUND = (
    "With each client's own Gaussian noise nothing in the bound of Fu et al. 2021 falls with E in a long run, and "
    "drift grows."
)
BOUND_ASSUMPTIONS = (
    "It is for strongly convex losses and a falling learning rate. Here μ, λ, the clip and G, the longest gradient, "
    "are taken to be 1, and Γ and Y_0, which are the same for each of these E, to be 0; beyond 8λ/μ = 8 its learning "
    "rate falls with E, which a run doesn't follow. `discreet tradeoff iterations` shows all of it."
)
FURTHEST = 1.0  # (G/μ)²: the farthest start, as μ·‖θ_0 − θ*‖ is at most the norm of the gradient there
VACUOUS = (
    "It promises nothing here: at no such E is it below (G/μ)² = 1, the largest squared distance at which training can "
    "start. So it only ranks the values of E."
)
PAID_BY_ROUND = (
    "A round costs the same whatever a client does in it, because its update is clipped. So more local work is free "
    "until updates reach the clip norm: `norms` and `clipped` in rounds.jsonl of a trial on public data show where "
    "that is."
)
