"""Cases without training: accounting, calibration, secure sums, and the start of a command."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from speed.case import OURS, Case, Contestant, Setting, Sides

EPSILON = 2.0


def _epsilon_sides(setting: Setting) -> Sides:
    import accounting  # here and below: a machine with a GPU may not have what these cases need

    case = accounting.Training(0.01, setting.size["steps"])
    found: Sides = {OURS: lambda: _answer_contestant(lambda: accounting.ours(case))}
    if find_spec("dp_accounting") is not None:
        found["dp-accounting"] = lambda: _answer_contestant(
            lambda: accounting.by_dp_accounting(accounting.DEFAULT, case)
        )
    if find_spec("opacus") is not None:
        found["Opacus PRV"] = lambda: _answer_contestant(lambda: accounting.by_opacus(case))
    return found


def _calibration_sides(setting: Setting) -> Sides:
    import accounting

    case = accounting.Training(0.01, setting.size["steps"])
    found: Sides = {OURS: lambda: _answer_contestant(lambda: accounting.our_noise(case, EPSILON))}
    if find_spec("dp_accounting") is not None:
        interval = accounting.DEFAULT
        found["dp-accounting"] = lambda: _answer_contestant(
            lambda: accounting.dp_accounting_noise(interval, None, case, EPSILON)
        )
    return found


def _answer_contestant(compute: Callable[[], float]) -> Contestant:
    """A side whose answer is compared, and not a loss."""
    answers: list[float] = []

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers[:] = [compute()]

    return Contestant(run, lambda: answers[0] if answers else 0.0)


def _secure_sides(setting: Setting) -> Sides:
    import secagg

    rng = np.random.default_rng(0)
    clients, length = setting.size["clients"], setting.size["length"]
    vectors = [rng.integers(0, 2**20, length, dtype=np.int64) for _ in range(clients)]
    found: Sides = {OURS: lambda: _secure_sum(vectors)}
    if find_spec("flwr") is not None and clients == secagg.CLIENTS:
        found["Flower's arithmetic"] = lambda: _flower_sum(vectors)
    return found


def _secure_sum(vectors: list[NDArray[np.int64]]) -> Contestant:
    """A round with everything: masks, packing, parsing, consistency, shares and unmasking; it checks its own sum."""
    import secagg

    from discreet.secure_sums.secagg.session_terms import Terms

    terms = Terms.choose(clients=len(vectors), length=len(vectors[0]), bits=secagg.BITS, rounds=1000)
    session, numbers = secagg.Session(terms), iter(range(1000))
    return Contestant(lambda: session.round(next(numbers), vectors))


def _flower_sum(vectors: list[NDArray[np.int64]]) -> Contestant:
    """Masks, sums and packing of two rounds, the second without one client, by Flower's own functions: half of it."""
    import secagg

    return Contestant(secagg.flower(vectors), scale=0.5)


def _start_sides(setting: Setting) -> Sides:
    rounds = setting.size["rounds"]
    return {
        OURS: lambda: Contestant(lambda: _train_digits(rounds)),
        "import torch": lambda: Contestant(lambda: _call(["-c", "import torch"])),
    }


def _train_digits(rounds: int) -> None:
    with TemporaryDirectory() as folder:
        out, keys = Path(folder) / "run", Path(folder) / "keys"
        given = ["run", "--set", f"rounds={rounds}", "--out", str(out), "--key-dir", str(keys), "--json"]
        _call(["-m", "discreet", *given])


def _call(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


CASES = (
    Case(
        name="epsilon",
        title="ε of a subsampled Gaussian",
        work="ε at δ = 1e-5 of {steps} steps at sampling rate 0.01 and noise multiplier 1.",
        sizes={"cpu": {"steps": 1000}, "tiny": {"steps": 10}},
        sides=_epsilon_sides,
        checked=1,
        tolerance=0.02,
        is_exact=True,
        goals={"cpu": 5.0},
        peers="dp-accounting's PLD accountant at its default interval, and Opacus's PRV accountant.",
    ),
    Case(
        name="calibration",
        title="Noise for an ε",
        work="The noise multiplier with which {steps} steps at sampling rate 0.01 cost ε = 2 at δ = 1e-5.",
        sizes={"cpu": {"steps": 1000}, "tiny": {"steps": 10}},
        sides=_calibration_sides,
        checked=1,
        tolerance=0.02,
        is_exact=True,
        goals={"cpu": 5.0},
        peers="dp-accounting's search over its PLD accountant, at its default interval.",
    ),
    Case(
        name="secure_sum",
        title="A secure sum",
        work="A round of {clients} clients with {length} numbers of 32 bits each. Every side checks its own sum.",
        sizes={"cpu": {"clients": 10, "length": 1_000_000}, "tiny": {"clients": 10, "length": 1000}},
        sides=_secure_sides,
        checked=1,
        peers="Only masks, sums and packing of Flower's SecAgg+, by its own functions: no key agreement, no shares.",
    ),
    Case(
        name="start_up",
        title="Start of `discreet run`",
        work="A fresh process that trains the built-in experiment for {rounds} rounds and writes its report.",
        sizes={"cpu": {"rounds": 1}, "tiny": {"rounds": 1}},
        sides=_start_sides,
        checked=1,
        peers="A fresh process that only imports torch: what no training can do without.",
    ),
)
