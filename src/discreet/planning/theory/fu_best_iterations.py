"""Fu et al. 2021: how many iterations are best, and how many between two uploads; Theorems 4 and 5, Corollary 5.1.

There are T = `total` local iterations, E = `local` of them between two uploads, so T_g = T/E rounds, and each client
joins T_l = b·T_g/N of them.

What is proved: the order of the best E for z > 1. What is wrong: for z ≤ 1 the printed rule is not the minimum; there
E = 1 is best. What we use: the minimum of Theorem 3's whole bound over the E and T at which all clients join equally
often (`best_local`, `best_total`), and closed forms for large T beside it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from discreet.errors import InvalidInput
from discreet.planning.theory.divisors import divisors
from discreet.planning.theory.fu_client_noise import Form
from discreet.planning.theory.fu_convergence import ConvergenceBound, Setting, convergence_bound

LARGE_T = 10  # times γ: from here on T counts as large
SWEEP_POINTS = 10  # values of T in a sweep
FORMS: tuple[Form, ...] = ("printed", "corrected")


class AsymptoticRule(NamedTuple):
    """What Eq. 4 says for large T: E = T^local gives an error of T^rate; as printed, and corrected."""

    printed_local: float
    printed_rate: float
    local: float
    rate: float
    reason: str


def asymptotic_error(local: float, total: float, z: float) -> float:
    """Return Y_T = E²/T + E^(1−z)·T^(z−1): Eq. 4, with every constant 1."""
    return local**2 / total + math.pow(local, 1 - z) * math.pow(total, z - 1)


def asymptotic_rule(z: float) -> AsymptoticRule:
    """Return the best E for large T; Theorems 4 (z < 1) and 5 (z ≥ 1) print E = T^(z/(z+1)), rate T^((z−1)/(z+1)).

    True for z > 1, up to a constant in E. Wrong for z ≤ 1: there both terms of Eq. 4 grow with E, or one grows and the
    other is constant, so E = 1 is best, at T^(z−1); the proof sets a sum of positive terms to 0. The proof of Theorem
    5 ends with a rate of T^(z/(z+1)), which differs from its statement.
    """
    local, rate = z / (z + 1), (z - 1) / (z + 1)
    if z > 1:
        return AsymptoticRule(local, rate, local, rate, "noise falls with E, and drift grows")
    return AsymptoticRule(local, rate, 0.0, z - 1, "nothing in the error falls with E, so E = 1 is best")


class LongRun(NamedTuple):
    """What Theorem 3's bound does as T grows at a fixed E, and the limit that it tends to."""

    verdict: Literal["converges", "levels off", "diverges"]
    limit: float
    reason: str


def long_run(setting: Setting, form: Form = "corrected") -> LongRun:
    """Return the limit of Theorem 3's bound: 0 only for z < 1 (Theorems 4 and 5); for z = 1, (4/μ²)·C_M at every E."""
    if setting.noise.z == 1:
        limit = 4 / setting.constants.convexity**2 * setting.noise_constant(form)
        return LongRun("levels off", limit, "z = 1: the noise of a round grows as fast as a longer run averages it out")
    return LongRun("diverges", math.inf, "z = 2: the noise of a round grows faster than a longer run averages it out")


MEASURED_NOTES = {  # from experiments: docs/results/theory.md
    "laplace": "In experiments, the best E with Laplace noise is larger than the bound's, which overestimates how far "
    "clients drift apart: take its E* as the smallest to try",
    "gaussian": "In experiments, E = 1 with Gaussian noise is as good as the best E, within the error of measurement, "
    "and Theorem 5's √T is worse",
}


class BestValue(NamedTuple):
    """A best E or T; `reason` says why it may not be the best. Fields are JSON keys."""

    value: float
    valid: bool
    reason: str = ""


def printed_best_local(setting: Setting, total: int) -> BestValue:
    """Return E = T^(z/(z+1)) (Theorem 5), with a constant of 1 that the theorem doesn't claim."""
    z = setting.noise.z
    reason = "up to a constant that the theorem leaves open" if z > 1 else asymptotic_rule(z).reason
    return BestValue(total ** asymptotic_rule(z).printed_local, False, reason)


def explicit_best_local(setting: Setting, total: int, form: Form = "corrected") -> BestValue:
    """Return E* = ((z−1)·C_M·T^z/2κ)^(1/(z+1)): Theorem 3 for T well over γ, (4/μ²)[κE²/T + C_M·E^(1−z)·T^(z−1)].

    With Laplace noise (C_M·T²/2κ)^(1/3); with all constants 1 it is ((z−1)/2)^(1/(z+1)) of what Theorem 5 prints. For
    z = 1 it is 1.
    """
    z, most = setting.noise.z, total * setting.cohort / setting.clients
    if z == 1:
        return BestValue(1.0, True)
    best = ((z - 1) * setting.noise_constant(form) * total**z / (2 * setting.drift())) ** (1 / (z + 1))
    if not 1 <= best <= most:
        return BestValue(best, False, f"E can only be 1 to b·T/N = {most:g}, where a client uploads once")
    return _check_large_total(best, total, setting.gamma(math.ceil(best)))


def allowed_local_iterations(setting: Setting, total: int) -> list[int]:
    """Return every E that divides T into rounds of which each client joins T_l ≥ 1, all clients equally many.

    Raises:
        InvalidInput: At this T no E lets all clients join equally often.
    """
    if total % setting.cycle:
        below = total - total % setting.cycle
        raise InvalidInput(
            f"With cohorts of {setting.cohort:,} out of {setting.clients:,} clients, all join equally often only if "
            f"iterations are a multiple of {setting.cycle:,}, and got {total:,}.",
            fix=f"Use {below:,} or {below + setting.cycle:,}." if below else f"Use {setting.cycle:,}.",
        )
    return divisors(total // setting.cycle)


def best_local(setting: Setting, total: int, form: Form = "corrected", most: float = math.inf) -> BestValue:
    """Return the E up to `most` with the least value of Theorem 3's whole bound, among those that give whole T_l."""
    allowed, remarks = allowed_local_iterations(setting, total), []
    best = min(
        (local for local in allowed if local <= most),
        key=lambda local: convergence_bound(setting, total, local, form=form).total,
    )
    if best == allowed[-1] and len(allowed) > 1:
        remarks.append("the largest at this T: every client uploads as rarely as possible")
    if best > setting.least_gamma:
        remarks.append(
            f"above 8λ/μ = {setting.least_gamma:.4g} the bound falls because its learning rate does, as γ is then E"
        )
    return BestValue(float(best), True, "; ".join(remarks))


def explicit_best_total(setting: Setting, local: int, form: Form = "corrected") -> BestValue:
    """Return T* = (A·E^(z−1)/((z−1)·C_M))^(1/z), A = ω_0 + μ²γY_0/4, for T well over γ.

    Corollary 5.1 says that it is finite for z > 1, and gives no formula. With Laplace noise √(E·A/C_M), which
    is proportional to ε.
    """
    z, known = setting.noise.z, setting.constants
    if z == 1:
        return _unbounded_total(setting, local, form) or BestValue(
            math.inf, False, "noise outweighs what a longer run can learn"
        )
    gamma = setting.gamma(local)
    gained = setting.omega0(local) + known.convexity**2 * gamma * known.start / 4
    best = (gained * local ** (z - 1) / ((z - 1) * setting.noise_constant(form))) ** (1 / z)
    return _check_large_total(best, best, gamma)


def best_total(setting: Setting, local: int, form: Form = "corrected") -> BestValue:
    """Return the T with the least value of Theorem 3's whole bound, among those that give whole T_l at this E.

    With A = (4/μ²)ω_0 + γY_0 and B = (4/μ²)·C_M·E^(1−z) the bound is A/(T+γ) + B·T^(1+z)/(T+γ−1)². For γ ≥ 8 it falls
    and then rises, or only falls. With z = 1 it only falls if A ≥ 2B(γ−1); else T* is finite there too, which
    the paper doesn't say.
    """
    if best := _unbounded_total(setting, local, form):
        return best
    step = setting.cycle * local
    total = step * _first_minimum(lambda cycles: convergence_bound(setting, cycles * step, local, form=form).total)
    shortest = "the shortest in which every client joins" if total == step else ""
    return BestValue(float(total), True, shortest)


class BoundRow(NamedTuple):
    """Theorem 3 at one T and E.

    Attributes:
        total: T.
        local: E.
        turns: The rounds that a client joins.
        bounds: The bound in each form.
    """

    total: int
    local: int
    rounds: int
    turns: int
    bounds: Mapping[Form, ConvergenceBound]

    @property
    def without_noise(self) -> float:
        """The bound without its noise term."""
        return self.bounds["corrected"].start + self.bounds["corrected"].descent


def bound_row(setting: Setting, total: int, local: int) -> BoundRow:
    """Evaluate Theorem 3 in both forms."""
    rounds = -(-total // local)
    bounds = {form: convergence_bound(setting, total, local, form=form) for form in FORMS}
    return BoundRow(total, local, rounds, setting.turns(rounds), bounds)


def sweep_local(setting: Setting, total: int) -> list[BoundRow]:
    """Evaluate every E that gives whole T_l at one T (Figures 5 and 6)."""
    return [bound_row(setting, total, local) for local in allowed_local_iterations(setting, total)]


def sweep_total(setting: Setting, local: int, *through: float) -> list[BoundRow]:
    """Evaluate several T that give whole T_l at one E: near each T of `through`, up to four times the longest."""
    step = setting.cycle * local
    cycles = {max(1, round(total / step)) for total in through if math.isfinite(total)}
    most = 4 * max(cycles, default=1)
    spread = (round(most ** (place / (SWEEP_POINTS - 1))) for place in range(SWEEP_POINTS))
    return [bound_row(setting, step * number, local) for number in sorted(cycles.union(spread))]


def _unbounded_total(setting: Setting, local: int, form: Form) -> BestValue | None:
    """Return an infinite T* where the bound falls with every T; None where T* is finite."""
    known, gamma = setting.constants, setting.gamma(local)
    scale = 4 / known.convexity**2
    gained = scale * setting.omega0(local) + gamma * known.start
    if setting.noise.z > 1 or gained < 2 * scale * setting.noise_constant(form) * (gamma - 1):
        return None
    return BestValue(math.inf, True, "the longer, the better: the bound falls towards its limit")


def _first_minimum(function: Callable[[int], float]) -> int:
    """Return the first n ≥ 1 at which a function that falls and then rises stops falling."""
    high = 1
    while function(high + 1) < function(high):
        high *= 2
    low = high // 2  # it still falls there, or this is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if function(middle + 1) < function(middle) else (low, middle)
    return high


def _check_large_total(best: float, total: float, gamma: float) -> BestValue:
    """Mark a closed form as not valid where T is not large compared to γ."""
    if total >= LARGE_T * gamma:
        return BestValue(best, True)
    return BestValue(best, False, f"for T well over γ = {gamma:.4g}, and T is {total:.4g}")
