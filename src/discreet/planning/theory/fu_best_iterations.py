"""How many iterations, and how many of them between two uploads: paper 003's E* and T*, and when neither helps.

T = `total` local iterations, E = `local` of them between two uploads, so T_g = T/E rounds, of which T_l = b·T_g/N are a
client's.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from discreet.errors import InvalidInput
from discreet.planning.theory.fu_client_noise import Form
from discreet.planning.theory.fu_convergence import ConvergenceBound, Setting, convergence_bound

FAR = 10  # times γ: from here on T is taken to be well over it
SHOWN = 10  # T of a sweep
FORMS: tuple[Form, ...] = ("printed", "corrected")


class AsymptoticRule(NamedTuple):
    """What Eq. 4 says for T without end: E = T^local gives an error of T^rate; as Theorems 4 and 5 print, and true."""

    printed_local: float
    printed_rate: float
    local: float
    rate: float
    reason: str


def asymptotic_error(local: float, total: float, z: float) -> float:
    """Y_T = E²/T + E^(1−z)·T^(z−1): paper 003, Eq. 4, with every constant 1."""
    return local**2 / total + math.pow(local, 1 - z) * math.pow(total, z - 1)


def asymptotic_rule(z: float) -> AsymptoticRule:
    """Paper 003, Theorems 4 (z < 1) and 5 (z ≥ 1) both print E = T^(z/(z+1)) with a rate of T^((z−1)/(z+1)).

    True for z > 1, up to a constant in E. Wrong for z ≤ 1: there both terms of Eq. 4 grow with E, or one does and the
    other stays, so E = 1 is best, at T^(z−1); the proof sets a sum of positive terms to 0. The proof of Theorem 5 ends
    with a rate of T^(z/(z+1)), which its statement doesn't have.
    """
    local, rate = z / (z + 1), (z - 1) / (z + 1)
    if z > 1:
        return AsymptoticRule(local, rate, local, rate, "noise falls with E, and drift grows")
    return AsymptoticRule(local, rate, 0.0, z - 1, "nothing in the error falls with E, so E = 1 is best")


class LongRun(NamedTuple):
    """What becomes of Theorem 3's bound as T goes on for ever at one E; `limit` is what it comes to."""

    verdict: Literal["converges", "levels off", "diverges"]
    limit: float
    reason: str


def long_run(setting: Setting, form: Form = "corrected") -> LongRun:
    """Paper 003, Theorems 4 and 5: it converges to 0 for z < 1 alone. For z = 1 it comes to (4/μ²)·C_M, whatever E."""
    if setting.noise.z == 1:
        left = 4 / setting.constants.convexity**2 * setting.noise_constant(form)
        return LongRun("levels off", left, "z = 1: the noise of a round grows as fast as a longer run averages it out")
    return LongRun("diverges", math.inf, "z = 2: the noise of a round grows faster than a longer run averages it out")


MEASURED_NOTES = {  # what is known beside the bound: docs/results/theory.md
    "laplace": "Measured, the best E with Laplace noise is larger than the bound's, which overrates how far clients "
    "drift apart: take its E* as the least to try",
    "gaussian": "Measured, E = 1 with Gaussian noise can't be told from the best, and Theorem 5's √T is worse",
}


class BestValue(NamedTuple):
    """A best E or T; where it isn't what it says, `reason` says why."""

    value: float
    valid: bool
    reason: str = ""


def printed_best_local(setting: Setting, total: int) -> BestValue:
    """E = T^(z/(z+1)): paper 003, Theorem 5, with a constant of 1 that the theorem doesn't claim."""
    z = setting.noise.z
    told = "up to a constant that the theorem leaves open" if z > 1 else asymptotic_rule(z).reason
    return BestValue(total ** asymptotic_rule(z).printed_local, False, told)


def explicit_best_local(setting: Setting, total: int, form: Form = "corrected") -> BestValue:
    """E* = ((z−1)·C_M·T^z/2κ)^(1/(z+1)): Theorem 3 for T well over γ, (4/μ²)[κE²/T + C_M·E^(1−z)·T^(z−1)].

    With Laplace noise (C_M·T²/2κ)^(1/3); with all constants 1 it is ((z−1)/2)^(1/(z+1)) of what Theorem 5 prints. For
    z = 1 it is 1.
    """
    z, most = setting.noise.z, total * setting.cohort / setting.clients
    if z == 1:
        return BestValue(1.0, True)
    found = ((z - 1) * setting.noise_constant(form) * total**z / (2 * setting.drift())) ** (1 / (z + 1))
    if not 1 <= found <= most:
        return BestValue(found, False, f"E can only be 1 to b·T/N = {most:g}, where a client uploads once")
    return _far(found, total, setting.gamma(math.ceil(found)))


def allowed_local_iterations(setting: Setting, total: int) -> list[int]:
    """Every E that divides T into rounds in which each client has T_l ≥ 1 turns, as many as any other."""
    if total % setting.cycle:
        below = total - total % setting.cycle
        raise InvalidInput(
            f"With cohorts of {setting.cohort:,} out of {setting.clients:,} clients, all have as many turns only if "
            f"iterations are a multiple of {setting.cycle:,}, and got {total:,}.",
            fix=f"Use {below:,} or {below + setting.cycle:,}." if below else f"Use {setting.cycle:,}.",
        )
    return _divisors(total // setting.cycle)


def best_local(setting: Setting, total: int, form: Form = "corrected", most: float = math.inf) -> BestValue:
    """The E up to `most` at which Theorem 3's whole bound is least, among those that whole T_l allow."""
    allowed, said = allowed_local_iterations(setting, total), []
    found = min(
        (each for each in allowed if each <= most),
        key=lambda local: convergence_bound(setting, total, local, form=form).total,
    )
    if found == allowed[-1] and len(allowed) > 1:
        said.append("the largest there is at this T: every client uploads as rarely as it can")
    if found > setting.least_gamma:
        said.append(
            f"above 8λ/μ = {setting.least_gamma:.4g} the bound falls because its learning rate does, as γ is then E"
        )
    return BestValue(float(found), True, "; ".join(said))


def explicit_best_total(setting: Setting, local: int, form: Form = "corrected") -> BestValue:
    """T* = (A·E^(z−1)/((z−1)·C_M))^(1/z), A = ω_0 + μ²γY_0/4, for T well over γ: proportional to ε with Laplace noise.

    Paper 003, Corollary 5.1, says that it is finite for z > 1, and gives no formula. With Laplace noise √(E·A/C_M).
    """
    z, known = setting.noise.z, setting.constants
    if z == 1:
        return _for_ever(setting, local, form) or BestValue(
            math.inf, False, "noise outweighs what a longer run can learn"
        )
    gamma = setting.gamma(local)
    gained = setting.omega0(local) + known.convexity**2 * gamma * known.start / 4
    found = (gained * local ** (z - 1) / ((z - 1) * setting.noise_constant(form))) ** (1 / z)
    return _far(found, found, gamma)


def best_total(setting: Setting, local: int, form: Form = "corrected") -> BestValue:
    """The T at which Theorem 3's whole bound is least, among those that whole T_l allow at this E.

    With A = (4/μ²)ω_0 + γY_0 and B = (4/μ²)·C_M·E^(1−z) the bound is A/(T+γ) + B·T^(1+z)/(T+γ−1)². For γ ≥ 8 it falls
    and then rises, or only falls. With z = 1 it only falls if A ≥ 2B(γ−1); else noise has a finite T* there too, which
    paper 003 doesn't say.
    """
    if best := _for_ever(setting, local, form):
        return best
    step = setting.cycle * local
    found = step * _turning_point(lambda cycles: convergence_bound(setting, cycles * step, local, form=form).total)
    shortest = "the shortest in which every client has its turn" if found == step else ""
    return BestValue(float(found), True, shortest)


class BoundRow(NamedTuple):
    """Theorem 3 at one T and E: rounds, a client's turns among them, and the bound in every form and without noise."""

    total: int
    local: int
    rounds: int
    turns: int
    printed: ConvergenceBound
    corrected: ConvergenceBound

    @property
    def silent(self) -> float:
        """Without noise."""
        return self.corrected.start + self.corrected.descent


def bound_row(setting: Setting, total: int, local: int) -> BoundRow:
    rounds = -(-total // local)
    printed, corrected = (convergence_bound(setting, total, local, form=form) for form in FORMS)
    return BoundRow(total, local, rounds, setting.turns(rounds), printed, corrected)


def sweep_local(setting: Setting, total: int) -> list[BoundRow]:
    """Every E that whole T_l allow at one T (paper 003, Figures 5 and 6)."""
    return [bound_row(setting, total, local) for local in allowed_local_iterations(setting, total)]


def sweep_total(setting: Setting, local: int, *through: float) -> list[BoundRow]:
    """Some T that whole T_l allow at one E: from the shortest to four times the longest of these, and near each."""
    step, known = setting.cycle * local, [each for each in through if math.isfinite(each)]
    cycles = {max(1, round(each / step)) for each in known}
    most = 4 * max(cycles, default=1)
    spread = (round(most ** (place / (SHOWN - 1))) for place in range(SHOWN))
    return [bound_row(setting, step * each, local) for each in sorted(cycles.union(spread))]


def _for_ever(setting: Setting, local: int, form: Form) -> BestValue | None:
    """No finite T*, where the bound falls with every T."""
    known, gamma = setting.constants, setting.gamma(local)
    scale = 4 / known.convexity**2
    gained = scale * setting.omega0(local) + gamma * known.start
    if setting.noise.z > 1 or gained < 2 * scale * setting.noise_constant(form) * (gamma - 1):
        return None
    return BestValue(math.inf, True, "the longer, the better: the bound falls towards its limit")


def _turning_point(at: Callable[[int], float]) -> int:
    """The first n ≥ 1 from which on a function that falls and then rises doesn't fall."""
    high = 1
    while at(high + 1) < at(high):
        high *= 2
    low = high // 2  # it still fell there, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle + 1) < at(middle) else (low, middle)
    return high


def _far(found: float, total: float, gamma: float) -> BestValue:
    if total >= FAR * gamma:
        return BestValue(found, True)
    return BestValue(found, False, f"for T well over γ = {gamma:.4g}, and T is {total:.4g}")


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, math.isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
