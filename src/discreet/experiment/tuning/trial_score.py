"""The score of a trial: right predictions on validation data, with noise that the trial's guarantee counts."""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.input_scale import InputScale
from discreet.data.features.feature_task import Features
from discreet.data.tasks.merged_splits import MergedSplits
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration.tune_table import Tune
from discreet.experiment.job import Job
from discreet.privacy.events import Composed, DiscreteGaussianNoise
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Person, Release, Unit
from discreet.privacy.wording import unit_name
from discreet.randomness.secret_streams import secret_generator
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.user_part import UserPart

LEAST_MULTIPLIER = 5.0  # of the score's noise, relative to what one unit can change
NO_VALIDATION = "A search compares its trials on validation data, and this experiment holds out none."


@dataclass(frozen=True)
class Scorer:
    """How trials are scored, and what a score reveals.

    Guarantee: a noisy score is an integer plus discrete Gaussian noise. One example moves the integer by at most as
    many clients as may hold it, one person or client by at most as many examples as it can have in the validation data.

    Attributes:
        metric: The metric. Only accuracy can have noise.
        examples: Number of validation examples, which is public.
        deviation: The deviation of the noise on the number of right predictions. None without noise.
        is_held_out: Whether the validation examples were held out of the clients' own.
        client_bound: The most validation examples that a client holds. None if it is not known.
        copies: The most clients that hold the same example: so often it may be among the validation examples.
    """

    metric: str
    examples: int
    deviation: float | None
    is_held_out: bool = False
    client_bound: int | None = None
    copies: int = 1

    def sensitivity(self, unit: Unit) -> int:
        """Return the most that one unit can change the number of right predictions.

        Raises:
            Unsupported: It is not known whose the validation examples are.
        """
        if unit == "example":
            return self.copies
        if isinstance(unit, Person) and self.is_held_out:  # then the bound on a person's rows covers them too
            return unit.rows
        if unit != "client" or self.client_bound is None:
            raise Unsupported(
                f"Whose the validation examples are is not known, so a score can't be bounded for one "
                f"{unit_name(unit)}.",
                fix="Hold them out of the clients' examples: validation_fraction in [task]; or declare them public: "
                "public_validation in [tune].",
            )
        return self.client_bound

    def add_to(self, release: Release) -> Release:
        """Return what a trial reveals with its score about the same unit, where its training reveals `release`."""
        score = self.releases([release])
        return replace(release, event=Composed(events=(release.event, score[0].event))) if score else release

    def releases(self, trained: Sequence[Release]) -> list[Release]:
        """Return what the score reveals, to each view and about each unit that the training has releases for.

        A score is one sum over all clients, whether the training is one or not.
        """
        if self.deviation is None:
            return []
        kinds = dict.fromkeys((release.unit, release.relation, release.view) for release in trained)
        return [
            Release(
                unit=unit,
                relation=relation,
                view=view,
                event=DiscreteGaussianNoise(
                    variance=self.deviation**2, l2_sensitivity=float(max(1, self.sensitivity(unit)))
                ),
            )
            for unit, relation, view in kinds
        ]

    def score(self, job: Job, state: ServerState) -> float:
        """Score a model on the job's validation data. The caller has reserved what a noisy score reveals."""
        assert job.validation_data is not None
        if self.deviation is None:
            value = job.evaluate_validation(state)[self.metric]
            worst = 0.0 if self.metric == "accuracy" else math.inf
            return value if math.isfinite(value) else worst
        right = job.model.count_correct(state.params, *job.validation_data, InputScale.find(state.input_scale))
        key = secrets.token_bytes(32)
        noise = int(draw_discrete_gaussian(key, self.deviation**2, (1,), secret_generator, threads=1)[0])
        return (right + noise) / self.examples


def choose_scorer(job: Job, tune: Tune, budgets: Sequence[Budget] = ()) -> Scorer:
    """Choose how the trials of a search are scored.

    Args:
        job: A trial, with its validation data.
        tune: The search.
        budgets: The budgets that count the search, for whose units a score must be bounded.

    Raises:
        InvalidInput: There is no validation data, or the metric can't have noise.
        Unsupported: What a score reveals about a unit is not known.
    """
    if job.validation_data is None:
        raise InvalidInput(
            NO_VALIDATION, fix="Write validation_fraction = 0.2 into [task]. Test data is for reporting only."
        )
    examples = len(job.validation_data[1])
    is_noisy = job.privacy is not None and not (tune.public_data or tune.public_validation)
    if not is_noisy:
        _check_metric(job, tune.metric)
        return Scorer(tune.metric, examples, None)
    if tune.metric != "accuracy" or job.task.kind != "classification":
        raise Unsupported(
            f"Only accuracy has a bound on what one example changes, and the metric is {tune.metric} of a "
            f"{job.task.kind}.",
            fix="Compare trials by accuracy, or on validation examples that are public: public_validation = true.",
        )
    share = _held_out_share(job)
    copies = job.population.max_multiplicity
    exact = Scorer(tune.metric, examples, None, share > 0, _client_bound(job, share), copies)
    units: list[Unit] = [*(budget.unit for budget in budgets), *([job.privacy.unit] if job.privacy else [])]
    largest = max(exact.sensitivity(unit) for unit in units)
    default = max(math.sqrt(examples) / 2, LEAST_MULTIPLIER * largest)
    return replace(exact, deviation=default if tune.score_noise is None else tune.score_noise)


def _held_out_share(job: Job) -> float:
    """Return the share of the clients' examples that is held out for validation. 0 if none is, or it is not known."""
    task = getattr(job.settings, "task", None)
    while isinstance(task, Features | MergedSplits):
        task = task.of
    share: float = 0.0 if isinstance(task, UserPart) else getattr(task, "validation_fraction", 0.0)
    return share


def _client_bound(job: Job, share: float) -> int | None:
    """Return the most validation examples that a client holds. None if it is not known.

    A client that trains on t examples holds out h ≤ f(t + h), where f is the share to hold out. Where whole persons are
    held out, one client may hold out any number of rows.
    """
    if not share or job.task.person is not None:
        return None
    return math.floor(max(job.population.examples) * share / (1 - share) + 1e-9)


def _check_metric(job: Job, metric: str) -> None:
    assert job.validation_data is not None
    inputs, targets = job.validation_data
    names = job.model.evaluate(job.params, inputs[:2], targets[:2])
    if metric not in names:
        raise InvalidInput(f"This experiment has no metric {metric!r}.", fix=f"It has: {', '.join(names)}.")
