"""The cost of drop-outs: ε when more or fewer clients drop out than the shares of the noise allow for."""

from collections.abc import Mapping

from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort, epsilon_with_dropouts
from discreet.report.curves import Limit, Panel, curve

POINTS = 12  # of a curve


def dropout_panel(work: ClientWork, cohort: Cohort, shares: Mapping[str, float], delta: float) -> Panel:
    """Draw the ε of the sum against the number of drop-outs, one curve for each named share."""
    counts = dropout_counts(cohort)
    return Panel(
        title=f"Drop-outs among {cohort.clients:,} clients, {cohort.colluding:,} of which may collude",
        x_label="clients that drop out",
        y_label="ε, sums",
        curves=tuple(
            curve(name, counts, [epsilon_with_dropouts(work, cohort, count, share, delta) for count in counts])
            for name, share in shares.items()
        ),
        limits=(Limit("allowed for", cohort.dropouts),),
        log_y=True,
        whole_x=True,
    )


def dropout_counts(cohort: Cohort) -> list[int]:
    """Return counts from none to all honest clients but one, including the count that is allowed for."""
    most = cohort.clients - cohort.colluding - 1
    return sorted({cohort.dropouts, *(round(most * place / (POINTS - 1)) for place in range(POINTS))})
