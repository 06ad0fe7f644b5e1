"""What it costs that more clients, or fewer, drop out than their shares of the noise allow for, as a panel."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.planning.theory.heikkila_cohorts import ClientWork, Cohort
    from discreet.report.curves import Panel

POINTS = 12  # of a curve


def panel(work: "ClientWork", cohort: "Cohort", shares: Mapping[str, float], delta: float) -> "Panel":
    """ε of the sum against drop-outs, for each share by its name; as many as leave one client to bring noise."""
    from discreet.planning.theory.heikkila_cohorts import epsilon_with_dropouts
    from discreet.report.curves import Limit, Panel, curve

    xs = counts(cohort)
    return Panel(
        title=f"Drop-outs of {cohort.clients:,}, of whom {cohort.colluding:,} may collude",
        across="clients who drop out",
        up="ε, sums",
        curves=tuple(
            curve(name, xs, [epsilon_with_dropouts(work, cohort, each, share, delta) for each in xs])
            for name, share in shares.items()
        ),
        limits=(Limit("allowed for", cohort.dropouts),),
        log_y=True,
        whole_x=True,
    )


def counts(cohort: "Cohort") -> list[int]:
    """From none to all but one of those who don't collude, with the number that is allowed for."""
    most = cohort.clients - cohort.colluding - 1
    return sorted({cohort.dropouts, *(round(most * place / (POINTS - 1)) for place in range(POINTS))})
