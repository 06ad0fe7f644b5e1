"""How much a client should do in a round, and why: as far as anything proven or measured says so."""

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
from discreet.experiment.loop.job import Job
from discreet.experiment.promise.promise import Privacy
from discreet.params import count_values
from discreet.planning.theory.fu_best_iterations import MEASURED_NOTES, best_local
from discreet.planning.theory.fu_client_noise import ClientNoise
from discreet.planning.theory.fu_convergence import Constants, Setting, convergence_bound


class LocalWork(NamedTuple):
    """`recommended` is None where nothing that holds singles out a number; then `why` says what decides instead."""

    now: int
    recommended: int | None
    unit: str
    why: str


def local_work(job: Job) -> LocalWork:
    """Of the first round, where rounds differ."""
    algorithm, trainer = job.algorithm, job.algorithm.trainer
    match trainer:
        case DpSgd() if algorithm.as_published:
            return LocalWork(value_in_round(trainer.steps or (1,), 0), 1, STEPS, AT_ITS_OWN_STATE)
        case DpSgd() if algorithm.weighting == "by_examples":
            return LocalWork(value_in_round(trainer.steps or (1,), 0), None, STEPS, ONE_GRADIENT)
        case DpSgd():
            return _passes(trainer)
        case MinibatchDp():
            return LocalWork(value_in_round(trainer.steps, 0), None, STEPS, PAID_BY_STEP)
        case BroadcastGradients():
            return LocalWork(value_in_round(trainer.steps or (1,), 0), 1, STEPS, AT_THE_BROADCAST_MODEL)
        case DenoisedRelease():
            return LocalWork(value_in_round(trainer.steps or (1,), 0), None, STEPS, PAID_BY_STEP)
        case ConvexLocal():
            free = trainer.passes == 1 and not trainer.strength
            taken = (trainer.fewest_steps or 1) * trainer.passes
            return LocalWork(taken, None, STEPS, FREE_STEPS if free else PULLED_BACK)
        case GradientDescent() if isinstance(algorithm.mechanism, LocalNoise) and job.privacy is not None:
            return _iterations(job, trainer, algorithm.mechanism, job.privacy)
        case GradientDescent():
            return LocalWork(value_in_round(trainer.iterations, 0), None, ITERATIONS, _by_the_update(job))
        case _:
            local = getattr(trainer, "local", trainer)  # of shards, what is done on each
            epochs, steps = getattr(local, "epochs", None), getattr(local, "steps", None)
            return LocalWork(steps or epochs or 1, None, STEPS if steps else "epochs", _by_the_update(job))


def _passes(trainer: DpSgd) -> LocalWork:
    """One pass over the client's data: as many steps as it takes to see every example once, on average."""
    rates = trainer.sampling_rate
    now = value_in_round(trainer.steps or (1,), 0)
    if not isinstance(rates, float):
        return LocalWork(now, None, STEPS, PAID_BY_STEP)
    return LocalWork(now, math.ceil(1 / rates - 1e-9), STEPS, ONE_PASS)


def _iterations(job: Job, trainer: GradientDescent, mechanism: LocalNoise, privacy: Privacy) -> LocalWork:
    """Where paper 003's bound is least for as many iterations in all as today, and all clients have as many turns.

    One with Gaussian noise. With Laplace noise μ = λ = 1 and Γ = Y_0 = 0, and G is as large as it may be, the clip:
    which makes drift large and E* small. E is at most 8λ/μ: from there on the bound falls only as its learning rate
    does, which a run doesn't follow.
    """
    total, now = sum_over_rounds(trainer.iterations, range(job.rounds)), value_in_round(trainer.iterations, 0)
    if mechanism.norm_order == 2:
        return LocalWork(now, 1, ITERATIONS, f"{NOTHING_FALLS} {MEASURED_NOTES['gaussian']} {RESULTS}.")
    if isinstance(privacy.epsilon, tuple):
        return LocalWork(now, None, ITERATIONS, PAID_BY_ROUND if mechanism.clip_norm else LOUDER)
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
        found = best_local(setting, total, most=setting.least_gamma)
    except InvalidInput as uneven:
        return LocalWork(now, None, ITERATIONS, str(uneven))
    local = int(found.value)
    rarely = f", {found.reason}" if found.reason else ""
    said = [
        f"Paper 003's bound is least there, of E up to {setting.least_gamma:g} at {total:,} iterations in all{rarely}.",
        OF_THE_BOUND,
        *([] if convergence_bound(setting, total, local).total < FURTHEST else [VACUOUS]),
        f"{MEASURED_NOTES['laplace']} {RESULTS}.",
    ]
    return LocalWork(now, local, ITERATIONS, " ".join(said))


def _by_the_update(job: Job) -> str:
    return PAID_BY_ROUND if job.algorithm.mechanism.is_private else "Nothing is promised, so nothing is paid for."


STEPS, ITERATIONS = "local steps", "local iterations"
PAID_BY_STEP = (
    "The noise goes by the steps of all rounds together. More of them a round, in fewer rounds, save bytes and average "
    "less often; nothing proven or measured here says where the best lies."
)
LOUDER = (
    "Without a clip, more iterations a round move an update further, and its noise grows with them. Paper 003's bound "
    "is for clients of one ε, so it says nothing here of where the best lies."
)
ONE_PASS = (
    "One pass over its data a round. The noise goes by the steps of all rounds together, so rounds may go down as "
    "steps go up; paper 000 measured one pass to be best for most of its models. Our runs can't tell it "
    "from two or four (docs/results/pfl.md)."
)
ONE_GRADIENT = (
    "Federated SGD sends one noisy gradient a round, whose weights are public. The recipe pfl takes several steps."
)
AT_ITS_OWN_STATE = (
    "With more than one step the paper's count is unsound: a client's own state carries only its own noise "
    "(docs/notes/local_steps.md). With one it is true."
)
AT_THE_BROADCAST_MODEL = (
    "All of a round's gradients are taken at the broadcast model, and each sum is paid for. One a round, in as many "
    "more rounds, takes the same noise and moves on in between; more only save bytes."
)
FREE_STEPS = (
    "Steps cost nothing here: a round's noise, beside its signal, is the same for any number of them "
    "(docs/notes/local_steps.md)."
)
PULLED_BACK = (
    "Every pass moves the update further, and lets one example move it further too. Which of the two grows more goes "
    "by strength, passes and batch_size: compare the noise to signal above for others (docs/notes/local_steps.md)."
)
RESULTS = "(docs/results/theory.md)"
NOTHING_FALLS = (
    "With Gaussian noise of clients' own nothing in paper 003's bound falls with E in a long run, and drift grows."
)
OF_THE_BOUND = (
    "It is for strongly convex losses and a falling learning rate. Here μ, λ, the clip and G, the longest gradient, "
    "are taken to be 1, and Γ and Y_0, which count alike for each of these E, to be 0; beyond 8λ/μ = 8 its learning "
    "rate falls with E, which a run doesn't follow. `discreet tradeoff iterations` has all of it."
)
FURTHEST = 1.0  # (G/μ)²: where training can start, as μ·‖θ_0 − θ*‖ is at most the length of a gradient there
VACUOUS = (
    "It promises nothing here: at no such E is it below (G/μ)² = 1, the squared distance at which training can start "
    "at most. So it ranks E, no more."
)
PAID_BY_ROUND = (
    "A round costs the same whatever a client does in it, up to its clip. So more local work is free until updates "
    "reach the clip: `norms` and `clipped` in rounds.jsonl of a trial on public data show where that is."
)
