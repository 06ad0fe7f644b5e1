"""What the guarantees of a run assume: in lines, each with who vouches for it, those that matter most first."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.algorithms.declarations import trusted_parts
from discreet.experiment.promise import person_bound
from discreet.experiment.promise.released_rounds import ReleasedRound
from discreet.experiment.terms import Terms
from discreet.privacy.card_lines import Line, as_line, one_unit_line
from discreet.privacy.release import Release
from discreet.privacy.wording import join_names, round_up
from discreet.words import fill

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


@dataclass(frozen=True)
class CountedRounds:
    """The rounds that a run's guarantees count, and what other runs there are.

    Attributes:
        completed: Number of completed rounds.
        counted: Number of rounds that the guarantees cover.
        released: Those of the counted rounds that released something. None for a plan.
        others: Other runs of the same deployment, which no ledger at the server counts together with this one.
        shared: Whether other runs use the same ledger.
    """

    completed: int
    counted: int
    released: Sequence[ReleasedRound] | None
    others: Collection[str]
    shared: bool


def run_assumptions(terms: Terms, rounds: CountedRounds, odds: Sequence[Line]) -> list[Line]:
    """List what every guarantee of a run assumes, whatever it protects.

    Args:
        terms: The run.
        rounds: The rounds that are counted.
        odds: How likely the sums of these rounds fail, or those of all trials if the run is one trial of a search.
    """
    return [
        *_machine_lines(terms),
        *_own_part_lines(terms),
        *_sum_lines(terms),
        *odds,
        *_other_release_lines(terms, rounds),
        *_plan_lines(terms, rounds),
        *_leaving_lines(terms, rounds.completed),
        *_data_lines(terms),
    ]


def release_lines(terms: Terms, algorithm: "Algorithm", release: Release) -> Iterator[Line]:
    """Yield what one guarantee of a run assumes: that its unit is the right one, and that its noise stays secret.

    The brief takes the first line of each source, so these are the lines that somebody must check before all others.
    """
    yield one_unit_line(release.unit, terms.population.max_multiplicity)
    yield from _secure_sum_line(algorithm)
    yield _noise_line(terms, algorithm, release)


def _secure_sum_line(algorithm: "Algorithm") -> Iterator[Line]:
    """Yield what the server may learn of a secure sum."""
    integers = algorithm.mechanism.integer_shares
    if not algorithm.aggregation.is_secure or integers is None:
        return
    fewest = str(integers.fewest_clients)
    if integers.colluding:
        yield Line(fill("assumes.secure_sum_colluding", colluding=integers.colluding, fewest=fewest), "clients")
    else:
        yield Line(fill("assumes.secure_sum", fewest=fewest), "clients")


def _noise_line(terms: Terms, algorithm: "Algorithm", release: Release) -> Line:
    """Return who draws the noise, and who must keep what to themselves so that it protects."""
    if release.view == "server":
        return Line(fill("assumes.noise.clients"), "clients")
    if release.view == "client" and algorithm.aggregation.is_secure:
        return Line(fill("assumes.noise.other_shares"), "clients")
    if release.view == "client":
        return Line(fill("assumes.noise.other_shares_of_sum"), "server")
    mechanism, grid = algorithm.mechanism, algorithm.grid(terms.population)
    if mechanism.sum_noise(grid, 0) == mechanism.sum_noise(grid, 1):  # clients bring no shares
        return Line(fill("assumes.noise.server"), "server")
    return Line(fill("assumes.noise.sum"), "server")


def _machine_lines(terms: Terms) -> Iterator[Line]:
    """Yield where the clients are: simulated, rehearsed on one machine, or real; and whether a seed undoes all."""
    if terms.is_seeded:
        yield Line(fill("assumes.seeded"), "machine")
    if terms.settings.engine.is_simulated:
        yield Line(fill("assumes.simulated"), "machine")
    elif terms.deployment is not None and terms.deployment.is_rehearsal:
        yield Line(fill("assumes.rehearsed"), "machine")
    else:
        yield Line(fill("assumes.deployed"), "clients")


def _own_part_lines(terms: Terms) -> Iterator[Line]:
    """Yield what the user's own code declares, and what was tried and verified of it."""
    if own := trusted_parts(terms.algorithm):
        yield Line(fill("assumes.own_parts", parts=join_names([part.title for part in own])), "author")
        yield Line(fill("assumes.trials", sentences=" ".join(terms.part_trials)), "program")
    if terms.isolation_note is not None:
        yield Line(terms.isolation_note, "program")


def _sum_lines(terms: Terms) -> Iterator[Line]:
    """Yield how secure sums were made."""
    if terms.algorithm.aggregation.is_secure and terms.algorithm.mechanism.integer_shares is not None:
        if terms.settings.engine.mask_degree(terms.algorithm, terms.population) is None:
            yield Line(fill("assumes.sums_in_clear"), "machine")
        yield Line(fill("assumes.lattice"), "method")


def _other_release_lines(terms: Terms, rounds: CountedRounds) -> Iterator[Line]:
    """Yield that nothing else was released from the same data, but for what a ledger counts."""
    is_deployed = terms.deployment is not None and not terms.deployment.is_rehearsal
    if rounds.others:
        yield Line(fill("assumes.counted_by_clients"))
    elif rounds.shared:
        yield Line(fill("assumes.counted_by_ledger"))
    else:
        yield Line(fill("assumes.first_run" if is_deployed else "assumes.this_run"))


def _plan_lines(terms: Terms, rounds: CountedRounds) -> Iterator[Line]:
    """Yield why less than the whole plan may be counted. Else the plan's ε is what holds."""
    planned = terms.spent_epsilon(terms.rounds)
    if planned is None:
        return
    whole, counted, released = round_up(planned), rounds.counted, rounds.released
    if counted < terms.rounds:
        yield Line(fill("assumes.early_end", completed=rounds.completed, rounds=terms.rounds, epsilon=whole))
    if released is None or terms.spent_epsilon(counted, released) == terms.spent_epsilon(counted):
        return
    if len(released) < counted:
        lost = counted - len(released)
        yield Line(
            fill("assumes.dropouts_and_lost_rounds", lost=lost, completed=rounds.completed, epsilon=whole), "clients"
        )
    else:
        yield Line(fill("assumes.dropouts", epsilon=whole), "clients")


def _leaving_lines(terms: Terms, completed: int) -> Iterator[Line]:
    """Yield which clients left when their budget was spent."""
    left = {client: rounds for client, rounds in terms.round_limits.items() if rounds < completed}
    few = ", ".join(
        fill("assumes.client_left", client=client, round=rounds) for client, rounds in list(left.items())[:6]
    )
    if len(left) > 6:
        yield Line(fill("assumes.more_clients_left", clients=few, more=len(left) - 6), "program")
    elif left:
        yield Line(fill("assumes.clients_left", clients=few), "program")


def _data_lines(terms: Terms) -> Iterator[Line]:
    """Yield what is public, who holds what, and how the data was prepared."""
    yield Line(fill("assumes.public_clients"))
    most = terms.population.max_multiplicity
    if terms.data.is_dealt:
        dealt = fill("assumes.disjoint_clients") if most == 1 else fill("assumes.overlapping_clients", most=most)
        yield Line(dealt, "program")
    if terms.data.public_examples is not None:
        yield Line(fill("assumes.public_examples", examples=f"{terms.data.public_examples:,}"), "owner")
    yield from (as_line(fact, "program") for fact in terms.data.facts)
    yield from _standardisation_line(terms)
    if terms.data.person is not None:
        yield Line(person_bound.assumption(terms.data.person, deployed=not terms.data.is_here), "program")


def _standardisation_line(terms: Terms) -> Iterator[Line]:
    """Yield whether numbers are standardised, and that nothing else was fitted on the data unless its ranges were."""
    wanted, chosen = terms.data.standardisation, terms.algorithm.standardisation
    if wanted is None:
        return
    if chosen is None:
        sentence = fill("data.table.not_standardised")
    elif chosen.noise_multiplier is None:
        sentence = fill("data.table.standardised_exactly", columns=chosen.columns)
    else:
        noise = round_up(chosen.noise_multiplier, 4)
        sentence = fill("data.table.standardised", columns=chosen.columns, noise=noise)
    rest = fill("data.table.nothing_fitted" if chosen is None else "data.table.nothing_else_fitted")
    yield Line(sentence if terms.data.ranges_from_data else f"{sentence} {rest}", "program")
