"""How fast ε and its calibration are beside dp-accounting and Opacus, measured in one interleaved run.

Each contestant keeps a process of its own, so that none inherits another's imports, threads or warm memory, and
they take turns, so that a busy machine slows all alike.
"""

import argparse
import json
import logging
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

from results import machine, provenance, verdict, versions

from discreet.privacy import accountant, calibration, pld
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import Composed, Event, GaussianNoise, LaplaceNoise, PoissonSampled, Repeated, SkellamNoise

PAGE = Path(__file__).parents[1] / "docs" / "results" / "accounting.md"
DELTA = 1e-5
FINE = 1e-5  # dp-accounting's interval for the reference: it is ten times finer than its default
DEFAULT = 1e-4
EQUAL = 1e-3  # two ε this near count as equally tight
GOAL = 5.0  # times faster

OURS, THEIRS, OPACUS = "discreet", "dp-accounting", "Opacus PRV"
AS_TIGHT, WITHIN = "(as tight as ours)", f"(within {EQUAL:g})"
NOT_SHIPPED = f"({WITHIN[1:-1]}; not as shipped)"

PACKAGES = ("discreet", "dp-accounting", "opacus", "torch", "numpy", "scipy")
COLD = "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --steps 1000 --delta 1e-5 --json"
HEAVY = {"torch", "scipy.stats", "dp_accounting"}


@dataclass(frozen=True)
class Training:
    """A subsampled Gaussian: what DP-SGD releases."""

    sampling_rate: float
    steps: int
    noise_multiplier: float = 1.0

    def event(self, noise_multiplier: float) -> Event:
        noise = GaussianNoise(noise_multiplier=noise_multiplier)
        return Repeated(count=self.steps, event=PoissonSampled(sampling_rate=self.sampling_rate, event=noise))

    def __str__(self) -> str:
        rate = self.sampling_rate
        shown = f"{rate:g}" if round(rate, 4) == rate else f"1/{1 / rate:g}"
        return f"q = {shown}, T = {self.steps}"


EPSILON_CASES = (Training(0.1, 1000), Training(0.01, 1000), Training(1 / 94, 1880))
CALIBRATION_CASES = ((Training(0.01, 1000), 2.0), (Training(1 / 24, 480), 2.93))


@dataclass(frozen=True)
class Timing:
    """An answer, and how long each repetition took to find it."""

    answer: float
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Row:
    """A contestant's answer, what it costs in ε by the reference, and how many times as long as ours it took."""

    who: str
    timed: Timing
    epsilon: float
    ratio: float


@dataclass(frozen=True)
class Table:
    title: str
    target: float  # the reference's ε, or the ε that was asked for
    rows: list[Row]


@dataclass(frozen=True)
class Results:
    machine: str
    versions: dict[str, str]
    repetitions: int
    epsilon: list[Table]
    calibration: list[Table]
    cold_start: list[float]
    loaded: list[str]  # of what must not be
    extremes: dict[str, Timing]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the measurements as one object")
    parser.add_argument("--write", action="store_true", help="also write docs/results/accounting.md anew")
    parser.add_argument("--repetitions", type=int, default=9, help="of each measurement; medians are shown (9)")
    options = parser.parse_args()
    results = measure(options.repetitions)
    if options.write:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page(results), encoding="utf-8")
    print(json.dumps(asdict(results)) if options.json else page(results))


def measure(repetitions: int) -> Results:
    return Results(
        machine=machine(),
        versions=versions(*PACKAGES),
        repetitions=repetitions,
        epsilon=[_epsilon(case, repetitions) for case in EPSILON_CASES],
        calibration=[_calibration(case, target, repetitions) for case, target in CALIBRATION_CASES],
        cold_start=[_cold_start() for _ in range(repetitions)],
        loaded=_loaded_modules(),
        extremes={what: _race({what: call}, repetitions)[what] for what, call in EXTREMES.items()},
    )


# The contestants. Each runs in a process of its own, and imports its library there.


def our_epsilon(event: Event, delta: float) -> float:
    accountant.forget_results()
    return accountant.epsilon(event, delta)


def ours(case: Training) -> float:
    return our_epsilon(case.event(case.noise_multiplier), DELTA)


def ours_at(tolerance: float, case: Training) -> float:
    with patch.object(pld, "TOLERANCE", tolerance):
        return ours(case)


def by_dp_accounting(interval: float, case: Training) -> float:
    import dp_accounting as peer
    from dp_accounting.pld import PLDAccountant

    counted = PLDAccountant(value_discretization_interval=interval)
    step = peer.PoissonSampledDpEvent(case.sampling_rate, peer.GaussianDpEvent(case.noise_multiplier))
    counted.compose(step, case.steps)
    return float(counted.get_epsilon(DELTA))


def by_opacus(case: Training) -> float:
    from opacus.accountants import PRVAccountant

    counted = PRVAccountant()
    counted.history = [(case.noise_multiplier, case.sampling_rate, case.steps)]
    return float(counted.get_epsilon(DELTA))


def our_noise(case: Training, target: float) -> float:
    accountant.forget_results()
    return calibration.calibrate_noise(case.event, EpsilonTarget(epsilon=target, delta=DELTA))


def dp_accounting_noise(interval: float, precision: float | None, case: Training, target: float) -> float:
    import dp_accounting as peer
    from dp_accounting.pld import PLDAccountant

    def event(noise_multiplier: float) -> object:
        step = peer.PoissonSampledDpEvent(case.sampling_rate, peer.GaussianDpEvent(noise_multiplier))
        return peer.SelfComposedDpEvent(step, case.steps)

    def fresh() -> object:
        return PLDAccountant(value_discretization_interval=interval)

    return float(peer.calibrate_dp_mechanism(fresh, event, target, DELTA, tol=precision))


def opacus_noise(case: Training, target: float) -> float:
    from opacus.accountants.utils import get_noise_multiplier

    found = get_noise_multiplier(
        target_epsilon=target, target_delta=DELTA, sample_rate=case.sampling_rate, steps=case.steps, accountant="prv"
    )
    return float(found)


def _steps(count: int, sampling_rate: float, noise: GaussianNoise | LaplaceNoise | SkellamNoise) -> Event:
    return Repeated(count=count, event=PoissonSampled(sampling_rate=sampling_rate, event=noise))


def _z(noise_multiplier: float) -> GaussianNoise:
    return GaussianNoise(noise_multiplier=noise_multiplier)


_UNLIKE = Composed(events=tuple(_steps(100, 0.01 * (1 + i), _z(1 + 0.1 * i)) for i in range(10)))
_SKELLAM = SkellamNoise(variance=1e6, l2_sensitivity=1e3, dimension=10**9)

EXTREMES: dict[str, Callable[[], float]] = {
    "ε: q = 0.01, z = 1, T = 10⁶": partial(our_epsilon, _steps(10**6, 0.01, _z(1)), DELTA),
    "ε: q = 10⁻⁶, z = 1, T = 10⁶": partial(our_epsilon, _steps(10**6, 1e-6, _z(1)), DELTA),
    "ε: q = 0.1, z = 0.2, T = 1000": partial(our_epsilon, _steps(1000, 0.1, _z(0.2)), DELTA),
    "ε: q = 0.1, z = 500, T = 1000": partial(our_epsilon, _steps(1000, 0.1, _z(500)), DELTA),
    "ε: q = 0.1, z = 1, T = 1000, δ = 10⁻¹²": partial(our_epsilon, _steps(1000, 0.1, _z(1)), 1e-12),
    "ε: ten unlike steps, 100 times each": partial(our_epsilon, _UNLIKE, DELTA),
    "ε: Laplace, q = 0.01, b = 1, T = 1000": partial(
        our_epsilon, _steps(1000, 0.01, LaplaceNoise(noise_multiplier=1)), DELTA
    ),
    "ε: Skellam, q = 0.01, d = 10⁹, T = 1000 (Rényi)": partial(our_epsilon, _steps(1000, 0.01, _SKELLAM), DELTA),
    "noise: q = 0.01, T = 10⁶, ε = 2": partial(our_noise, Training(0.01, 10**6), 2.0),
    "noise: q = 0.01, T = 1000, ε = 0.01": partial(our_noise, Training(0.01, 1000), 0.01),
}


# The measurements.


def _epsilon(case: Training, repetitions: int) -> Table:
    reference = by_dp_accounting(FINE, case)
    as_tight = _coarsest(partial(by_dp_accounting, case=case), reference, ours(case) - reference)
    within = _coarsest(partial(by_dp_accounting, case=case), reference, EQUAL)
    tolerance = _coarsest(partial(ours_at, case=case), reference, EQUAL)
    timed = _race(
        {
            OURS: partial(ours, case),
            f"{THEIRS}, interval {DEFAULT:g} (default)": partial(by_dp_accounting, DEFAULT, case),
            f"{THEIRS}, interval {as_tight:g} {AS_TIGHT}": partial(by_dp_accounting, as_tight, case),
            f"{THEIRS}, interval {within:g} {WITHIN}": partial(by_dp_accounting, within, case),
            f"{OURS}, tolerance {tolerance:g} {NOT_SHIPPED}": partial(ours_at, tolerance, case),
            OPACUS: partial(by_opacus, case),
        },
        repetitions,
    )
    return _table(f"{case}, z = {case.noise_multiplier:g}", reference, timed, [each.answer for each in timed.values()])


def _coarsest(epsilon_at: Callable[[float], float], reference: float, error: float) -> float:
    """The coarsest grid whose ε stays within `error` of the reference, to three digits."""
    kept, refused = FINE, 0.1
    while refused / kept > 1.005:
        tried = math.sqrt(kept * refused)
        if abs(epsilon_at(tried) - reference) <= error:
            kept = tried
        else:
            refused = tried
    unit = 10.0 ** (math.floor(math.log10(kept)) - 2)
    return math.floor(kept / unit) * unit


def _calibration(case: Training, target: float, repetitions: int) -> Table:
    precision = calibration.PRECISION
    timed = _race(
        {
            OURS: partial(our_noise, case, target),
            f"{THEIRS}, interval {DEFAULT:g} (default)": partial(dp_accounting_noise, DEFAULT, None, case, target),
            f"{THEIRS}, interval {EQUAL:g}": partial(dp_accounting_noise, EQUAL, None, case, target),
            f"{THEIRS}, interval {EQUAL:g}, tol {precision:g}": partial(
                dp_accounting_noise, EQUAL, precision, case, target
            ),
            OPACUS: partial(opacus_noise, case, target),
        },
        repetitions,
    )
    costs = [by_dp_accounting(FINE, replace(case, noise_multiplier=each.answer)) for each in timed.values()]
    return _table(f"{case}, ε = {target:g}", target, timed, costs)


def _table(title: str, target: float, timed: dict[str, Timing], costs: Sequence[float]) -> Table:
    return Table(
        title,
        target,
        [
            Row(who, each, epsilon, each.median / timed[OURS].median)
            for (who, each), epsilon in zip(timed.items(), costs, strict=True)
        ],
    )


def _race(contestants: Mapping[str, Callable[[], float]], repetitions: int) -> dict[str, Timing]:
    """Let the contestants take turns, each in its own process, after one turn that isn't timed."""
    with ExitStack() as stack:
        alone = partial(ProcessPoolExecutor, max_workers=1, mp_context=get_context("spawn"), initializer=_quiet)
        processes = {who: stack.enter_context(alone()) for who in contestants}
        turns = [
            {who: processes[who].submit(_time_call, call).result() for who, call in contestants.items()}
            for _ in range(repetitions + 1)
        ]
    return {who: Timing(turns[0][who][0], [turn[who][1] for turn in turns[1:]]) for who in contestants}


def _time_call(call: Callable[[], float]) -> tuple[float, float]:
    started = time.perf_counter()
    answer = call()
    return answer, time.perf_counter() - started


def _quiet() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def _cold_start() -> float:
    command = Path(sys.executable).with_name("discreet")
    return _time_call(lambda: subprocess.run([command, *COLD.split()], check=True, capture_output=True).returncode)[1]


def _loaded_modules() -> list[str]:
    """Which of the heavy modules the command has loaded when it is done."""
    script = (
        f"import sys; from discreet.cli.main import run; run({COLD.split()!r}); "
        f"print(*sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1].split()


# The page.


def page(results: Results) -> str:
    heaviest = ", ".join(results.loaded) or "none"
    return "\n".join(
        [
            "# How fast the accounting is",
            "",
            f"Written by `benchmarks/accounting.py --write`; timings are medians of {results.repetitions} repetitions.",
            "The contestants took turns, each in a process of its own; caches were cleared before each repetition.",
            "",
            provenance(results.machine, results.versions),
            "",
            "## Goals",
            "",
            *_goals(results),
            "",
            f"## ε of a subsampled Gaussian, δ = {DELTA:g}",
            "",
            f"The reference is {THEIRS} at interval {FINE:g}; *error* is the distance to it. "
            "A ratio is a contestant's time over ours as shipped.",
            *[line for table in results.epsilon for line in _epsilon_lines(table)],
            "",
            f"## Calibration to ε, δ = {DELTA:g}",
            "",
            f"*True ε* is that of the noise found, by the reference. Opacus searches to ε within 0.01, {THEIRS} to a "
            f"noise within 1e-6 unless told, we to a noise within {calibration.PRECISION:g}, relatively.",
            *[line for table in results.calibration for line in _calibration_lines(table)],
            "",
            "## Cold start",
            "",
            f"`discreet {COLD}` as a fresh process: {statistics.median(results.cold_start):.2f} s. "
            f"Loaded of {', '.join(sorted(HEAVY))}: {heaviest}.",
            "",
            "## Extremes",
            "",
            "| event | answer | ms |",
            "|---|---:|---:|",
            *[f"| {what} | {each.answer:.6g} | {_ms(each)} |" for what, each in results.extremes.items()],
            "",
        ]
    )


def _goals(results: Results) -> list[str]:
    both = min(_least([table], WITHIN) / _least([table], NOT_SHIPPED) for table in results.epsilon)
    cold = statistics.median(results.cold_start)
    return [
        "Each ratio is the least over the cases below.",
        "",
        "| | measured | goal | |",
        "|---|---:|---:|---|",
        _goal(f"ε: {THEIRS} at its default interval", _least(results.epsilon, "(default)")),
        _goal(f"ε: {THEIRS} as coarse as our own error allows", _least(results.epsilon, AS_TIGHT)),
        _goal(
            f"ε: {THEIRS} as coarse as an error of {EQUAL:g} allows, ours as shipped", _least(results.epsilon, WITHIN)
        ),
        _goal(f"ε: both as coarse as an error of {EQUAL:g} allows", both),
        _goal(f"calibration: {THEIRS}, at any setting below", _least(results.calibration, THEIRS)),
        _goal(f"calibration: {OPACUS}", _least(results.calibration, OPACUS)),
        f"| cold start | {cold:.2f} s | < 1 s | {verdict(cold < 1)} |",
        f"| heavy modules loaded | {len(results.loaded)} | 0 | {verdict(not results.loaded)} |",
    ]


def _least(tables: Sequence[Table], mark: str) -> float:
    """The least ratio among the rows that bear this mark."""
    return min(row.ratio for table in tables for row in table.rows if mark in row.who)


def _goal(what: str, ratio: float) -> str:
    return f"| {what} | {ratio:.1f}× | ≥ {GOAL:g}× | {verdict(ratio >= GOAL)} |"


def _epsilon_lines(table: Table) -> list[str]:
    return [
        "",
        f"**{table.title}**: reference {table.target:.6f}",
        "",
        "| | ε | error | ms | ratio |",
        "|---|---:|---:|---:|---:|",
        *[
            f"| {row.who} | {row.epsilon:.6f} | {row.epsilon - table.target:.1e} | {_ms(row.timed)} | {row.ratio:.1f} |"
            for row in table.rows
        ],
    ]


def _calibration_lines(table: Table) -> list[str]:
    return [
        "",
        f"**{table.title}**",
        "",
        "| | noise multiplier | true ε | ms | ratio |",
        "|---|---:|---:|---:|---:|",
        *[
            f"| {row.who} | {row.timed.answer:.6f} | {row.epsilon:.5f} | {_ms(row.timed)} | {row.ratio:.1f} |"
            for row in table.rows
        ],
    ]


def _ms(timed: Timing) -> str:
    return f"{1000 * timed.median:.1f}"


if __name__ == "__main__":
    main()
