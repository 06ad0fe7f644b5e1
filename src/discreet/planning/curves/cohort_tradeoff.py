"""The size of a cohort whose clients share the noise (Heikkilä 2025): drop-outs, collusion, claims and bits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import RenderableType

from discreet.part import to_plain
from discreet.planning.curves.dropout_panel import dropout_panel
from discreet.planning.curves.lattice_bits import (
    HEADINGS,
    ROUNDING_NOTE,
    RingBits,
    evaluate_rings,
    ring_cells,
    ring_panel,
)
from discreet.planning.curves.number_tables import format_whole, number_table
from discreet.planning.curves.sweep_panels import sweep_panel
from discreet.planning.theory import heikkila_cohorts
from discreet.planning.theory.heikkila_cohorts import (
    BROADCAST_NOTE,
    HONEST_NOTE,
    OWN_STATE_NOTE,
    ClientWork,
    Cohort,
    CohortRow,
)
from discreet.privacy.wording import compact, round_up
from discreet.report.curves import Panel, Picture, curve
from discreet.report.number_format import format_count

PLANNED_HEADINGS = ("N", "share", "mean's noise", "ε, sums", "ε, own state", "paper's share", "its ε")
GIVEN_HEADINGS = ("N", "sum's noise", "ε, sums", "as the paper counts", "ε, own state")
X_LABEL = "clients in a cohort, N"


@dataclass(frozen=True)
class CohortTradeoff:
    """One row for every size of a cohort, and one for every ring.

    Attributes:
        sizes: The sizes that were asked for.
        share: A client's noise multiplier, if it was given; None if each row has the share that it needs.
        bits: The rings to evaluate, for a cohort of `ring_clients`.
        examples: The examples of each client, which the lattice depends on.
        dimension: The parameters of the model, which the lattice depends on.
    """

    work: ClientWork
    sizes: Sequence[int]
    colluding: int
    dropouts: int
    epsilon: float
    delta: float
    share: float | None
    bits: Sequence[int]
    ring_clients: int
    examples: int
    dimension: int

    @cached_property
    def noise_multiplier(self) -> float:
        """The noise of the sum that `epsilon` takes."""
        return heikkila_cohorts.calibrate_noise(self.work, self.epsilon, self.delta)

    @cached_property
    def rows(self) -> list[CohortRow]:
        """The rows with shares that allow for colluding clients and drop-outs, or with the given share."""
        if (share := self.share) is None:
            return self._evaluate(heikkila_cohorts.planned_share)
        return self._evaluate(lambda noise, cohort: share)

    @cached_property
    def paper_rows(self) -> list[CohortRow]:
        """The rows with the paper's shares, which allow for none missing; empty if the share was given."""
        return [] if self.share else self._evaluate(heikkila_cohorts.paper_share)

    @property
    def ring_cohort(self) -> Cohort:
        """The cohort that the rings are evaluated for."""
        return heikkila_cohorts.feasible_cohorts((self.ring_clients,), self.colluding, self.dropouts)[0]

    @cached_property
    def rings(self) -> list[RingBits]:
        """One row for every ring."""
        noise, sizes = self.noise_multiplier, {"examples": self.examples, "dimension": self.dimension}
        return list(evaluate_rings(self.work, self.ring_cohort, noise, self.delta, self.bits, **sizes))

    @property
    def smallest(self) -> int | None:
        """The clients that the given share takes; None if no share was given."""
        missing = {"colluding": self.colluding, "dropouts": self.dropouts}
        return heikkila_cohorts.smallest_cohort(self.noise_multiplier, self.share, **missing) if self.share else None

    def _evaluate(self, choose_share: Callable[[float, Cohort], float]) -> list[CohortRow]:
        """Evaluate every cohort that is large enough."""
        cohorts = heikkila_cohorts.feasible_cohorts(tuple(self.sizes), self.colluding, self.dropouts)
        shares = [choose_share(self.noise_multiplier, cohort) for cohort in cohorts]
        return [
            heikkila_cohorts.evaluate_share(self.work, cohort, share, self.delta)
            for cohort, share in zip(cohorts, shares, strict=True)
        ]

    def data(self) -> dict[str, Any]:
        papers = {row.clients: row for row in self.paper_rows}
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
            "least_clients": self.smallest,
            "cohorts": [
                {"clients": row.clients, "left": row.honest, "planned": _describe_row(row)}
                | ({"paper": _describe_row(papers[row.clients])} if papers else {})
                for row in self.rows
            ],
            "claim": {"holds": self.work.steps == 1, "reason": f"{_claim_note(self.work)}."},
            "bits": {"clients": self.ring_cohort.clients, "rings": [ring._asdict() for ring in self.rings]},
            "notes": list(self._notes()),
        }

    def page(self) -> Iterator[RenderableType]:
        work = self.work
        yield (
            f"N clients that share the noise of their sum (Heikkilä 2025): {format_count(work.rounds, 'rounds')} of "
            f"{format_count(work.steps, 'steps')} at rate {compact(work.sampling_rate, 4)}, for any one example at δ = "
            f"{compact(self.delta)}; {self.colluding:,} may collude and {self.dropouts:,} may drop out."
        )
        clients = format_count(self.smallest or 0, "clients")
        share = f"; with a share of {compact(self.share)}, {clients}" if self.share else ""
        yield (
            f"ε = {compact(self.epsilon)} takes a noise multiplier of {round_up(self.noise_multiplier)} in the sum"
            f"{share}."
        )
        yield ""
        if self.paper_rows:
            yield number_table(PLANNED_HEADINGS, map(_planned_cells, self.rows, self.paper_rows))
        else:
            yield number_table(GIVEN_HEADINGS, map(_given_cells, self.rows))
        yield ""
        ring = format_count(self.ring_cohort.clients, "clients")
        yield f"On a ring, for {ring} with noise for ε = {compact(self.epsilon)}:"
        yield number_table(HEADINGS, map(ring_cells, self.rings))
        yield from (ring.reason for ring in self.rings if not ring.valid)
        yield ""
        yield from self._notes()

    def picture(self) -> Picture:
        title = f"A cohort that shares its noise: {self.colluding} may collude, {self.dropouts} may drop out"
        ring = ring_panel(self.rings, self.epsilon, self.ring_cohort.clients)
        panels = (self._noise_panel(), self._cost_panel(), self._dropout_panel(), ring)
        return Picture(title=title, panels=panels, notes=tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        yield f"{_claim_note(self.work)}."
        yield f"{HONEST_NOTE}."
        yield f"{ROUNDING_NOTE}."
        too_small = [f"{size:,}" for size in self.sizes if size < self.rows[0].clients]
        if too_small:
            sizes = ", ".join(too_small)
            yield f"Left out: N = {sizes}, where no honest client would remain."

    def _noise_panel(self) -> Panel:
        return sweep_panel(
            "Noise of the mean",
            (X_LABEL, "standard deviation per coordinate, in clips"),
            self.rows,
            lambda row: row.clients,
            {
                "shared noise": lambda row: row.mean_noise,
                "each client adds enough by itself": lambda row: self.noise_multiplier / row.clients**0.5,
            },
            log_x=True,
            log_y=True,
        )

    def _cost_panel(self) -> Panel:
        sizes = [row.clients for row in self.rows]
        curves = [curve("certified: sums", sizes, [row.epsilon for row in self.rows])]
        if self.paper_rows:
            epsilons = [row.epsilon for row in self.paper_rows]
            curves.append(curve("the paper's share, some clients missing", sizes, epsilons))
        claims = [row.full_epsilon for row in self.paper_rows or self.rows]
        curves.append(curve("claimed: Theorem 4.6", sizes, claims, dashed=True))
        if self.work.steps > 1:
            own_state = [row.own_state_epsilon for row in self.rows]
            curves.append(curve("certified: steps at the client's own state", sizes, own_state))
        return Panel("Privacy cost", X_LABEL, "ε", tuple(curves), log_x=True, log_y=True)

    def _dropout_panel(self) -> Panel:
        if self.share:
            shares = {"the given share": self.share}
        else:
            shares = {
                f"share for {self.dropouts} drop-outs": heikkila_cohorts.planned_share(
                    self.noise_multiplier, self.ring_cohort
                ),
                "the paper's share, for none": heikkila_cohorts.paper_share(self.noise_multiplier, self.ring_cohort),
            }
        return dropout_panel(self.work, self.ring_cohort, shares, self.delta)


def _claim_note(work: ClientWork) -> str:
    return BROADCAST_NOTE if work.steps == 1 else f"{OWN_STATE_NOTE}. {BROADCAST_NOTE}"


def _planned_cells(planned: CohortRow, paper: CohortRow) -> tuple[str, ...]:
    return (
        format_whole(planned.clients),
        round_up(planned.share),
        compact(planned.mean_noise, 4),
        round_up(planned.epsilon),
        round_up(planned.own_state_epsilon),
        compact(paper.share, 4),
        round_up(paper.epsilon),
    )


def _given_cells(row: CohortRow) -> tuple[str, ...]:
    return (
        format_whole(row.clients),
        compact(row.noise, 4),
        round_up(row.epsilon),
        round_up(row.full_epsilon),
        round_up(row.own_state_epsilon),
    )


def _describe_row(row: CohortRow) -> dict[str, Any]:
    return {
        "share": row.share,
        "noise_multiplier": row.noise,
        "epsilon": row.epsilon,
        "mean_noise": row.mean_noise,
        "own_state_epsilon": row.own_state_epsilon,
        "if_all_come": {
            "noise_multiplier": row.full_noise,
            "epsilon": row.full_epsilon,
            "papers_epsilon": row.paper_epsilon,
        },
    }
