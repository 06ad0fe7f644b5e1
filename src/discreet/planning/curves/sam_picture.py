"""The picture of `discreet tradeoff sam`: Theorem 3's terms, Theorem 1's sensitivities, and ε over rounds."""

from dataclasses import replace

from discreet.planning.curves.sweep_panels import geometric_steps, sweep_panel
from discreet.planning.theory.dp_fedsam_bounds import (
    HIDDEN_CONSTANTS_NOTE,
    PRIVACY_NOTE,
    LossConstants,
    SamRun,
    certified_epsilon,
    compose_rounds,
    convergence_terms,
    printed_round_epsilon,
    sam_sensitivity,
    sgd_sensitivity,
)
from discreet.report.curves import Limit, Mark, Panel, Picture, Point, curve

POINTS, PRIVACY_POINTS = 61, 16  # of a curve; ε takes longer to compute


def draw_sam(run: SamRun, constants: LossConstants, delta: float, best_rounds: int) -> Picture:
    """Draw the three panels of one run."""
    return Picture(
        title="DP-FedSAM: the terms of its theorems",
        panels=(
            _terms_panel(run, constants, best_rounds),
            _sensitivity_panel(run, constants),
            _privacy_panel(run, constants, delta),
        ),
        notes=(f"{PRIVACY_NOTE}.", f"{HIDDEN_CONSTANTS_NOTE}."),
    )


def _terms_panel(run: SamRun, constants: LossConstants, best_rounds: int) -> Panel:
    rounds = _whole_steps(100 * run.rounds, POINTS)
    least = Point(best_rounds, convergence_terms(replace(run, rounds=best_rounds), constants).total)
    is_inside = rounds[0] < best_rounds < rounds[-1]
    return sweep_panel(
        "Theorem 3, hidden constants of 1",
        ("rounds, T", "mean squared gradient, up to constants"),
        [(number, convergence_terms(replace(run, rounds=number), constants)) for number in rounds],
        lambda row: row[0],
        {
            "optimisation": lambda row: row[1].optimisation,
            "clipping": lambda row: row[1].clipping,
            "noise": lambda row: row[1].noise,
            "sum": lambda row: row[1].total,
        },
        dashed=("sum",),
        marks=(Mark(f"least at T = {best_rounds:,}", least),) if is_inside else (),
        log_x=True,
        log_y=True,
    )


def _sensitivity_panel(run: SamRun, constants: LossConstants) -> Panel:
    curves, limits = [], []
    for name, formula in (("SGD", sgd_sensitivity), ("SAM", sam_sensitivity)):
        end = formula(run, constants, 1e-9).below
        rates = [end * x / (1 + x) for x in geometric_steps(1e-3, 1e3, POINTS)]  # ever closer to the end
        curves.append(curve(name, rates, [formula(run, constants, rate).value for rate in rates], dashed=True))
        limits.append(Limit(f"end for {name}", end))
    return Panel(
        title="Theorem 1: squared sensitivity before the clip",
        x_label="learning rate",
        y_label="as printed; neither is a bound",
        curves=tuple(curves),
        limits=tuple(limits),
        log_x=True,
        log_y=True,
    )


def _privacy_panel(run: SamRun, constants: LossConstants, delta: float) -> Panel:
    printed = printed_round_epsilon(run, constants, delta)
    return sweep_panel(
        f"ε of a client at δ = {delta:g}",
        ("rounds, T", "ε"),
        _whole_steps(run.rounds, PRIVACY_POINTS),
        float,
        {
            "certified": lambda rounds: certified_epsilon(replace(run, rounds=rounds), delta),
            "Theorems 4 and 5": lambda rounds: compose_rounds(printed, delta, rounds, run.sampling_rate)[0],
        },
        dashed=("Theorems 4 and 5",),
        log_x=True,
        log_y=True,
    )


def _whole_steps(most: int, points: int) -> list[int]:
    """Return whole numbers from 1 to `most`, about evenly spaced on a logarithmic scale."""
    return sorted({round(x) for x in geometric_steps(1, most, points)})
