"""What a whole search reveals, beside what a report of its best trial alone would print."""

from collections.abc import Sequence

from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.job import Job
from discreet.experiment.loop.run_guarantees import SearchTerms
from discreet.experiment.promise import run_spending
from discreet.experiment.promise.promise import client_groups
from discreet.experiment.tuning.trial_score import Scorer
from discreet.privacy import accountant
from discreet.privacy.card_lines import Line
from discreet.privacy.events import BestOf
from discreet.privacy.guarantee import Claim
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import ENOUGH_FOR
from discreet.privacy.release import Release
from discreet.privacy.trial_count import TrialCount
from discreet.privacy.wording import compact, round_up, unit_name
from discreet.words import fill


def trial_releases(job: Job, scorer: Scorer) -> list[Release]:
    """Return everything that one trial reveals, with its score: for each unit and view that can be certified."""
    (group,) = client_groups(job.algorithm, job.privacy, job.population)
    planned = run_spending.certifiable_releases(group, job.rounds, job.population)
    return [scorer.add_to(release) for release in planned]


def trial_epsilon(job: Job) -> float:
    """Return the ε of one trial alone, without its score: what a report that knows of no search would print."""
    spent = job.terms.spent_epsilon(job.rounds)
    assert spent is not None
    return spent


def best_of_releases(count: TrialCount, trials: Sequence[Sequence[Release]]) -> list[Release]:
    """Return what the public learns of the best of a random number of trials, each of them one of `trials`.

    Args:
        count: The distribution of the number of trials.
        trials: What each of the possible trials reveals.

    Raises:
        Unsupported: The trials protect different units.
    """
    found = []
    for unit in dict.fromkeys(release.unit for release in trials[0]):
        shown = [_shown_to_public([release for release in trial if release.unit == unit]) for trial in trials]
        relations = {None if release is None else release.relation for release in shown}
        if len(relations) > 1:
            raise Unsupported(
                f"Some trials protect one {unit_name(unit)} otherwise than others do, so no price covers them all.",
                fix="Search settings under which every trial protects the same.",
            )
        events = tuple(dict.fromkeys(release.event for release in shown if release is not None))
        if events and shown[0] is not None:
            event = BestOf(count=count, trials=events)
            found.append(Release(unit=unit, relation=shown[0].relation, view="public", event=event))
    return found


def _shown_to_public(releases: Sequence[Release]) -> Release | None:
    """Return the release that bounds what the public sees: its own, or one to somebody who sees more."""
    by_view = {release.view: release for release in releases}
    return next((by_view[view] for view in ENOUGH_FOR["public"] if view in by_view), None)


def promised_release(job: Job, releases: Sequence[Release]) -> Release:
    """Return the release that the promise is about."""
    assert job.privacy is not None
    return next(release for release in releases if release.unit == job.privacy.unit)


def whole_budget(job: Job, release: Release, epsilon: float) -> Budget:
    """Return the budget of the whole search, for what the promise of a trial is about."""
    assert job.privacy is not None
    return Budget(
        unit=release.unit, relation=release.relation, view=release.view, epsilon=epsilon, delta=job.privacy.delta
    )


def require_epsilon(epsilon: float | None, needed: float) -> float:
    """Return the epsilon of the whole search, or refuse a file that has none and say what the search would cost."""
    if epsilon is None:
        raise InvalidInput(
            f"The whole search would cost epsilon = {compact(needed, 4)}, and [tune] has no epsilon for it.",
            fix=f"Write epsilon = {round_up(needed * 1.005, 3)} under [tune], or promise less for one trial.",
        )
    return epsilon


def search_terms(
    job: Job, scorer: Scorer, whole: Sequence[Release], more: Sequence[Line], *, naive: float
) -> SearchTerms:
    """Return what a search adds to the cards of its best trial.

    Args:
        job: The best trial.
        scorer: How trials were compared.
        whole: What the whole search reveals.
        more: Further assumptions.
        naive: The ε of one trial alone.
    """
    assert job.privacy is not None
    reason = Claim(
        epsilon=naive, delta=job.privacy.delta, source=fill("claim.best_trial"), reason=fill("claim.chosen_trial")
    )
    return SearchTerms(tuple(whole), (*more, describe_scores(scorer)), (reason,))


def describe_scores(scorer: Scorer) -> Line:
    """Say on the card how trials were compared, and whether that is counted or declared."""
    if scorer.deviation is None:
        return Line(fill("assumes.public_scores", examples=f"{scorer.examples:,}"), "owner")
    deviation = compact(scorer.deviation, 4)
    return Line(fill("assumes.noisy_scores", examples=f"{scorer.examples:,}", deviation=deviation), "program")


def epsilon_of(release: Release, delta: float) -> float:
    """Return the ε that is certified for a release."""
    return accountant.epsilon(release.event, delta, release.relation)
