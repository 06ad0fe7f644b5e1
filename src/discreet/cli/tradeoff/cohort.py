"""`discreet tradeoff cohort`: the size of a cohort that shares its noise, drop-outs, collusion and bits (paper 002)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from discreet.cli.output import Json, emit
from discreet.cli.tradeoff import lattice_bits as rings
from discreet.cli.tradeoff import sharing_options
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import counted, table, whole
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort, CohortRow
    from discreet.report.curves import Panel, Picture

PLANNED = ("N", "share", "mean's noise", "ε, sums", "ε, own state", "paper's share", "its ε")
PLANNED_SHARE, GIVEN_SHARE = "share for {} dropping out", "the given share"
GIVEN = ("N", "sum's noise", "ε, sums", "as the paper counts", "ε, own state")


@dataclass(frozen=True)
class Answer:
    """What was asked; a row for every cohort with shares that allow for those missing, or given; and for every ring."""

    work: "ClientWork"
    colluding: int
    dropouts: int
    delta: float
    noise_multiplier: float  # of the sum, which `epsilon` takes
    epsilon: float
    share: float | None
    rows: tuple["CohortRow", ...]
    papers: tuple["CohortRow", ...]  # with the paper's shares, which allow for nobody; none where the share is given
    ring: "Cohort"
    rings: tuple[rings.Bits, ...]
    left_out: tuple[int, ...]  # cohorts that were asked for, and are too small
    least_clients: int | None  # that it takes with the share that is given

    def data(self) -> dict[str, Any]:
        papers = {each.clients: each for each in self.papers}
        return {
            "work": to_plain(self.work),
            "colluding": self.colluding,
            "dropouts": self.dropouts,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "noise_multiplier": self.noise_multiplier,
            "share": self.share,
            "least_clients": self.least_clients,
            "cohorts": [
                {"clients": each.clients, "left": each.left, "planned": _row(each)}
                | ({"paper": _row(papers[each.clients])} if papers else {})
                for each in self.rows
            ],
            "claim": {"holds": self.work.steps == 1, "reason": f"{_claim(self.work)}."},
            "bits": {"clients": self.ring.clients, "rings": [rings.row(each) for each in self.rings]},
            "notes": list(self._notes()),
        }

    def page(self) -> Iterator[RenderableType]:
        work = self.work
        yield (
            f"N clients who share the noise of their sum (paper 002): {counted(work.rounds, 'round')} of "
            f"{counted(work.steps, 'step')} at rate {compact(work.sampling_rate, 4)}, for any one example at δ = "
            f"{compact(self.delta)}; {self.colluding:,} may collude and {self.dropouts:,} drop out."
        )
        yield (
            f"ε = {compact(self.epsilon)} takes a noise multiplier of {round_up(self.noise_multiplier)} in the sum"
            + (
                f"; with {compact(self.share)} of each, {counted(self.least_clients or 0, 'client')}."
                if self.share
                else "."
            )
        )
        yield ""
        if self.papers:
            yield table(PLANNED, map(_both, self.rows, self.papers))
        else:
            yield table(GIVEN, map(_given, self.rows))
        yield ""
        ring = counted(self.ring.clients, "client")
        yield f"The same on a ring, for {ring} with noise for ε = {compact(self.epsilon)}:"
        yield table(("bits", "scale", "noise after rounding", "ε, sums", ""), map(rings.cells, self.rings))
        yield from (each.reason for each in self.rings if not each.valid)
        yield ""
        yield from self._notes()

    def _notes(self) -> Iterator[str]:
        from discreet.planning.theory.heikkila_cohorts import HONEST

        yield f"{_claim(self.work)}."
        yield f"{HONEST}."
        yield f"{rings.ROUNDED}."
        if self.left_out:
            gone = ", ".join(f"{each:,}" for each in self.left_out)
            yield f"Left out: N = {gone}, of whom nobody is left when so many collude and drop out."

    def picture(self) -> "Picture":
        from discreet.report.curves import Picture

        title = f"A cohort that shares its noise: {self.colluding} may collude, {self.dropouts} drop out"
        ring = rings.panel(self.rings, self.epsilon, self.ring.clients)
        panels = (self._noise(), self._costs(), self._missing(), ring)
        return Picture(title=title, panels=panels, notes=tuple(self._notes()))

    def _missing(self) -> "Panel":
        from discreet.cli.tradeoff.dropouts import panel
        from discreet.planning.theory import heikkila_cohorts

        planned = self.share or heikkila_cohorts.planned_share(self.noise_multiplier, self.ring)
        shares = {GIVEN_SHARE if self.share else PLANNED_SHARE.format(self.dropouts): planned}
        if not self.share:
            shares["the paper's, for nobody"] = heikkila_cohorts.paper_share(self.noise_multiplier, self.ring)
        return panel(self.work, self.ring, shares, self.delta)

    def _noise(self) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [each.clients for each in self.rows]
        local = [self.noise_multiplier / each.clients**0.5 for each in self.rows]
        return Panel(
            title="Noise of the mean",
            across="clients in a cohort, N",
            up="deviation of a coordinate, in clips",
            curves=(
                curve("shared noise", xs, [each.mean for each in self.rows]),
                curve("each with enough by itself", xs, local),
            ),
            log_x=True,
            log_y=True,
        )

    def _costs(self) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [each.clients for each in self.rows]
        told = self.papers or self.rows
        curves = [curve("certified: sums", xs, [each.epsilon for each in self.rows])]
        if self.papers:
            curves.append(curve("the paper's share, some missing", xs, [each.epsilon for each in self.papers]))
        curves.append(curve("claimed: Theorem 4.6", xs, [each.counted for each in told], dashed=True))
        if self.work.steps > 1:
            curves.append(curve("certified: steps at the own state", xs, [each.own_state for each in self.rows]))
        return Panel(
            title="What it costs",
            across="clients in a cohort, N",
            up="ε",
            curves=tuple(curves),
            log_x=True,
            log_y=True,
        )


def cohort(
    clients: sharing_options.Sizes = (3, 5, 10, 20, 50, 100, 200, 500, 1000),
    colluding: sharing_options.Colluding = 1,
    dropouts: sharing_options.Dropouts = 1,
    epsilon: sharing_options.Epsilon = 1.0,
    share: sharing_options.Share = None,
    delta: sharing_options.Delta = 1e-5,
    sampling_rate: sharing_options.SamplingRate = 1 / 11,
    steps: sharing_options.Steps = 11,
    rounds: sharing_options.Rounds = 20,
    bits: sharing_options.Bits = (20, 22, 24, 28, 32, 40),
    ring_clients: sharing_options.RingClients = 10,
    examples: sharing_options.Examples = 5600,
    dimension: sharing_options.Dimension = 26_010,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """A cohort whose clients share the noise (paper 002).

    A client's share, the noise of the mean, and epsilon when some collude or drop out; what Theorem 4.6 claims for
    several local steps beside what is certified; and what a ring of so many bits costs. The defaults are the paper's
    for Fashion-MNIST, but for those missing.
    """
    from discreet.planning.theory import heikkila_cohorts

    work = heikkila_cohorts.ClientWork(sampling_rate=sampling_rate, steps=steps, rounds=rounds)
    noise = heikkila_cohorts.calibrate_noise(work, epsilon, delta)
    asked = heikkila_cohorts.feasible_cohorts(tuple(clients), colluding, dropouts)
    (ring,) = heikkila_cohorts.feasible_cohorts((ring_clients,), colluding, dropouts)
    answer = Answer(
        work=work,
        colluding=colluding,
        dropouts=dropouts,
        delta=delta,
        noise_multiplier=noise,
        epsilon=epsilon,
        share=share,
        rows=tuple(
            heikkila_cohorts.evaluate_share(work, each, share or heikkila_cohorts.planned_share(noise, each), delta)
            for each in asked
        ),
        papers=()
        if share
        else tuple(
            heikkila_cohorts.evaluate_share(work, each, heikkila_cohorts.paper_share(noise, each), delta)
            for each in asked
        ),
        ring=ring,
        rings=tuple(rings.lattices(work, ring, noise, delta, bits, examples=examples, dimension=dimension)),
        left_out=tuple(each for each in clients if each < asked[0].clients),
        least_clients=None
        if share is None
        else heikkila_cohorts.smallest_cohort(noise, share, colluding=colluding, dropouts=dropouts),
    )
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)


def _claim(work: "ClientWork") -> str:
    from discreet.planning.theory.heikkila_cohorts import BROADCAST, OWN_STATE

    return BROADCAST if work.steps == 1 else f"{OWN_STATE}. {BROADCAST}"


def _both(planned: "CohortRow", papers: "CohortRow") -> tuple[str, ...]:
    return (
        whole(planned.clients),
        round_up(planned.share),
        compact(planned.mean, 4),
        round_up(planned.epsilon),
        round_up(planned.own_state),
        compact(papers.share, 4),
        round_up(papers.epsilon),
    )


def _given(found: "CohortRow") -> tuple[str, ...]:
    return (
        whole(found.clients),
        compact(found.noise, 4),
        round_up(found.epsilon),
        round_up(found.counted),
        round_up(found.own_state),
    )


def _row(found: "CohortRow") -> dict[str, Any]:
    return {
        "share": found.share,
        "noise_multiplier": found.noise,
        "epsilon": found.epsilon,
        "mean_noise": found.mean,
        "own_state_epsilon": found.own_state,
        "if_all_come": {"noise_multiplier": found.whole, "epsilon": found.counted, "papers_epsilon": found.claimed},
    }
