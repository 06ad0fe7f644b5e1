"""How much a client should do in a round, and why, as far as a proof or an experiment says so."""

from discreet.algorithms.mechanisms import LocalNoise
from discreet.algorithms.training import DpSgd, GradientDescent
from discreet.algorithms.training.per_round import sum_over_rounds, value_in_round
from discreet.algorithms.training.work_advice import ITERATIONS, WorkAdvice
from discreet.errors import InvalidInput
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.terms import Terms
from discreet.planning.theory.fu_best_iterations import MEASURED_NOTES, best_local
from discreet.planning.theory.fu_client_noise import ClientNoise
from discreet.planning.theory.fu_convergence import Constants, Setting, convergence_bound


def recommend_local_work(terms: Terms) -> WorkAdvice:
    """Recommend the local work of a round; of the first round, where rounds differ."""
    algorithm, trainer = terms.algorithm, terms.algorithm.trainer
    work = trainer.work_advice() or WorkAdvice(1, None, "rounds", why="")
    if isinstance(trainer, DpSgd) and (algorithm.as_published or algorithm.weighting == "by_examples"):
        recommended, why = (1, OWN_STATE) if algorithm.as_published else (None, ONE_GRADIENT)
        return work._replace(recommended=recommended, why=why)
    mechanism, privacy = algorithm.mechanism, terms.privacy
    if isinstance(trainer, GradientDescent) and isinstance(mechanism, LocalNoise) and privacy is not None:
        return _recommend_iterations(terms, trainer, mechanism, privacy)
    return work if work.why else work._replace(why=_describe_update_cost(terms))


def _recommend_iterations(
    terms: Terms, trainer: GradientDescent, mechanism: LocalNoise, privacy: Privacy
) -> WorkAdvice:
    """Recommend the E with the least bound of Fu et al. 2021, for today's total where all clients join equally often.

    With Gaussian noise it is one. With Laplace noise μ = λ = 1, Γ = Y_0 = 0, and G is the clip, the largest possible,
    which makes drift large and E* small. E is at most 8λ/μ: above it the bound falls only with its learning rate,
    which a run doesn't follow.
    """
    total, now = sum_over_rounds(trainer.iterations, range(terms.rounds)), value_in_round(trainer.iterations, 0)
    if mechanism.norm_order == 2:
        return WorkAdvice(now, 1, ITERATIONS, f"{GAUSSIAN_BOUND} {MEASURED_NOTES['gaussian']} {RESULTS}.")
    if isinstance(privacy.epsilon, tuple):
        return WorkAdvice(now, None, ITERATIONS, PAID_BY_ROUND if mechanism.clip_norm else NO_CLIP)
    if terms.parameters is None:
        return WorkAdvice(now, None, ITERATIONS, UNKNOWN_SIZE)
    cohort = max(1, round(terms.algorithm.sampling.expected_cohort(terms.population)))
    setting = Setting(
        noise=ClientNoise(kind="laplace", epsilon=privacy.epsilon),
        clients=terms.population.clients,
        cohort=cohort,
        parameters=terms.parameters,
        clip_norm=1.0,
        constants=Constants(convexity=1.0, smoothness=1.0, gradient_bound=1.0, heterogeneity=0.0, start=0.0),
    )
    try:
        best = best_local(setting, total, most=setting.least_gamma)
    except InvalidInput as uneven:
        return WorkAdvice(now, None, ITERATIONS, str(uneven))
    local = int(best.value)
    remark = f", {best.reason}" if best.reason else ""
    reasons = [
        f"The bound of Fu et al. 2021 is least there, among E up to {setting.least_gamma:g} at {total:,} iterations"
        f"{remark}.",
        BOUND_ASSUMPTIONS,
        *([] if convergence_bound(setting, total, local).total < FURTHEST else [VACUOUS]),
        f"{MEASURED_NOTES['laplace']} {RESULTS}.",
    ]
    return WorkAdvice(now, local, ITERATIONS, " ".join(reasons))


def _describe_update_cost(terms: Terms) -> str:
    return PAID_BY_ROUND if terms.algorithm.mechanism.is_private else "Nothing is promised, so nothing has a cost."


UNKNOWN_SIZE = "Which number is best depends on the model's size, which is not known here."
NO_CLIP = (
    "Without a clip, more iterations per round move an update further, and its noise grows with them. The bound of Fu "
    "et al. 2021 is for clients with one ε, so it doesn't say here which number is best."
)
ONE_GRADIENT = (
    "Federated SGD sends one noisy gradient per round, whose weights are public. The recipe pfl takes several steps."
)
OWN_STATE = (
    "With more than one step the accounting of Heikkilä 2025 is unsound: a client's own state carries only its own "
    "noise (docs/notes/local_steps.md). With one step it is correct."
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
