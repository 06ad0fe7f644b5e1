"""What is asked of paper 004's theorems on a command line, and how their curves run."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Option

from discreet.cli.options import COUNT, PROBABILITY, RATE
from discreet.cli.tradeoff.sweep_rows import AMOUNT, SCALE

if TYPE_CHECKING:
    from discreet.planning.theory.dp_fedsam_bounds import LossConstants, SamRun
    from discreet.report.curves import Panel

Clients: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="M", show_default=False, help="In all; 500 by default.")
]
Cohort: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Expected in a round; 50 by default.")
]
Rounds: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="T", show_default=False, help="How many; 300 by default.")
]
LocalSteps: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="K", show_default=False, help="60 by default: 30 epochs of 2.")
]
LearningRate: TypeAlias = Annotated[
    float | None,
    Option(click_type=SCALE, metavar="A", help="Of local steps; 1/(L√(KT)) if left out."),
]
Radius: TypeAlias = Annotated[
    float, Option(click_type=AMOUNT, metavar="R", show_default=False, help="How far SAM looks; 0.5 by default.")
]
Clip: TypeAlias = Annotated[
    float,
    Option("--clip", click_type=SCALE, metavar="C", show_default=False, help="Of an update; 0.2 by default."),
]
NoiseMultiplier: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="Z", show_default=False, help="Of the sum; 0.95 by default.")
]
Dimension: TypeAlias = Annotated[
    int, Option(click_type=COUNT, metavar="N", show_default=False, help="Of the model; 11173962 by default.")
]
Fraction: TypeAlias = Annotated[
    float, Option(click_type=RATE, metavar="P", show_default=False, help="Of it that is kept; 1 by default.")
]
Delta: TypeAlias = Annotated[
    float,
    Option(click_type=PROBABILITY, metavar="D", show_default=False, help="What epsilon is for; 2e-3 by default."),
]
Smoothness: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="L", show_default=False, help="Of the losses; 1 by default.")
]
LocalDeviation: TypeAlias = Annotated[
    float, Option(click_type=AMOUNT, metavar="S", show_default=False, help="Of gradients in a client; 1 by default.")
]
GlobalDeviation: TypeAlias = Annotated[
    float, Option(click_type=AMOUNT, metavar="S", show_default=False, help="Of clients' gradients; 1 by default.")
]
Gap: TypeAlias = Annotated[
    float, Option(click_type=SCALE, metavar="G", show_default=False, help="First loss less the best; 1 by default.")
]
Clipped: TypeAlias = Annotated[
    float, Option(click_type=RATE, metavar="A", show_default=False, help="What a clip leaves of one; 1 by default.")
]
Unlike: TypeAlias = Annotated[
    float, Option(click_type=AMOUNT, metavar="A", show_default=False, help="How clients part in it; 1 by default.")
]

POINTS = 61


def panels(run: "SamRun", landscape: "LossConstants", delta: float, best_rounds: int) -> tuple["Panel", ...]:
    """Theorem 3's terms against rounds, Theorem 1's against the learning rate, and ε as printed and as certified."""
    return _terms(run, landscape, best_rounds), _sensitivities(run, landscape), _privacy(run, landscape, delta)


def _terms(run: "SamRun", landscape: "LossConstants", best_rounds: int) -> "Panel":
    from discreet.planning.theory.dp_fedsam_bounds import convergence_terms
    from discreet.report.curves import Mark, Panel, Point, curve

    xs = _whole(100 * run.rounds)
    at = [convergence_terms(replace(run, rounds=x), landscape) for x in xs]
    least = Point(best_rounds, convergence_terms(replace(run, rounds=best_rounds), landscape).total)
    inside = xs[0] < best_rounds < xs[-1]
    return Panel(
        title="Theorem 3, hidden constants of 1",
        across="rounds, T",
        up="mean squared gradient, up to constants",
        curves=(
            curve("optimisation", xs, [each.optimisation for each in at]),
            curve("clipping", xs, [each.clipping for each in at]),
            curve("noise", xs, [each.noise for each in at]),
            curve("together", xs, [each.total for each in at], dashed=True),
        ),
        marks=(Mark(f"least at T = {best_rounds:,}", least),) if inside else (),
        log_x=True,
        log_y=True,
    )


def _sensitivities(run: "SamRun", landscape: "LossConstants") -> "Panel":
    from discreet.planning.theory.dp_fedsam_bounds import sam_sensitivity, sgd_sensitivity
    from discreet.report.curves import Curve, Limit, Panel, curve

    curves: list[Curve] = []
    limits: list[Limit] = []
    for name, formula in (("SGD", sgd_sensitivity), ("SAM", sam_sensitivity)):
        end = formula(run, landscape, 1e-9).below
        xs = [end * x / (1 + x) for x in _spread(1e-3, 1e3)]  # ever closer to where it ends
        curves.append(curve(name, xs, [formula(run, landscape, x).value for x in xs], dashed=True))
        limits.append(Limit(f"{name}'s ends", end))
    return Panel(
        title="Theorem 1: squared sensitivity before the clip",
        across="learning rate",
        up="as printed; neither is a bound",
        curves=tuple(curves),
        limits=tuple(limits),
        log_x=True,
        log_y=True,
    )


def _privacy(run: "SamRun", landscape: "LossConstants", delta: float) -> "Panel":
    from discreet.planning.theory.dp_fedsam_bounds import certified_epsilon, compose_rounds, printed_round_epsilon
    from discreet.report.curves import Panel, curve

    xs = _whole(run.rounds, 16)
    printed = printed_round_epsilon(run, landscape, delta)
    theirs = [compose_rounds(printed, delta, x, run.sampling_rate)[0] for x in xs]
    return Panel(
        title=f"ε of a client at δ = {delta:g}",
        across="rounds, T",
        up="ε",
        curves=(
            curve("certified", xs, [certified_epsilon(replace(run, rounds=x), delta) for x in xs]),
            curve("Theorems 4 and 5", xs, theirs, dashed=True),
        ),
        log_x=True,
        log_y=True,
    )


def _whole(most: int, points: int = POINTS) -> list[int]:
    """Whole numbers from 1 to `most`, about evenly on a log scale."""
    return sorted({round(x) for x in _spread(1, most, points)})


def _spread(low: float, high: float, points: int = POINTS) -> list[float]:
    """Points from low to high, evenly on a log scale."""
    return [float(low * (high / low) ** (i / (points - 1))) for i in range(points)]
