"""Integer noise by the million: Skellam and discrete Gaussian draws a second, by generator and number of threads; and
how rough a Poisson draw becomes as its rate grows, which is why rates above 1e12 are refused.

Turns are interleaved and the best of each is taken. Others may be at work on the machine, so the time that the
processor spent is shown beside what the clock says.
"""

import argparse
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

import mpmath
import numpy as np
import results
from randomgen import AESCounter

from discreet.randomness.secret_streams import secret_generator
from discreet.secure_sums.discrete_noise.chunks import Source
from discreet.secure_sums.discrete_noise.gaussian_sampler import draw_discrete_gaussian
from discreet.secure_sums.discrete_noise.skellam_sampler import draw_skellam

NUMBERS = 1_000_000  # the parameters of a model
GOAL = 10.0  # million Skellam draws a second on two cores
RATES = (1e3, 1e6, 1e9, 1e11, 1e12)
REALISTIC = 1e9
VARIANCES = (1.0, 1e3, 1e6, 1e12)
OURS = "ChaCha20, 256 bits"
ROUGH = (1e6, 1e9, 1e11, 1e12, 1e13, 1e14, 1e15)
NEIGHBOURS, BLOCK = 4096, 256


def aes(key: bytes) -> np.random.Generator:
    return np.random.Generator(AESCounter(key=int.from_bytes(key[:16], "little")))


def pcg64(key: bytes) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))


SOURCES: dict[str, Source] = {OURS: secret_generator, "AES counter, 128 bits": aes, "PCG64, not secret": pcg64}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=9, help="of each measurement; the best is shown (9)")
    results.add_options(parser, "discrete_noise")
    options = parser.parse_args()
    results.publish("discrete_noise", options, lambda: measure(options.turns), page)


def measure(turns: int) -> results.Entry:
    return {
        "device": "cpu",
        "machine": results.machine(),
        "versions": results.versions("numpy", "randomgen"),
        "turns": turns,
        "load": os.getloadavg()[0],
        "skellam": _fastest(_skellam(), turns),
        "discrete_gaussian": _fastest(_discrete_gaussian(), turns),
        "roughness": {f"{rate:g}": roughness(rate) for rate in ROUGH},
    }


def _skellam() -> dict[str, Callable[[], object]]:
    wanted = [(OURS, rate, threads) for rate in RATES for threads in (1, 2)]
    wanted += [(name, REALISTIC, threads) for name in SOURCES if name != OURS for threads in (1, 2)]
    return {
        f"{name}|{rate:g}|{threads}": partial(draw_skellam, bytes(32), 2 * rate, (NUMBERS,), SOURCES[name], threads)
        for name, rate, threads in wanted
    }


def _discrete_gaussian() -> dict[str, Callable[[], object]]:
    return {
        f"{OURS}|{variance:g}|{threads}": partial(
            draw_discrete_gaussian, bytes(32), variance, (NUMBERS,), secret_generator, threads
        )
        for variance in VARIANCES
        for threads in (1, 2)
    }


def _fastest(timed: dict[str, Callable[[], object]], turns: int) -> dict[str, dict[str, float]]:
    """Million numbers a second in the best turn of each: by the clock, and by the time of one core."""
    clocks = {"clock": time.perf_counter, "core": time.process_time}
    seconds = {name: dict.fromkeys(clocks, math.inf) for name in timed}
    for _ in range(turns):
        for name, work in timed.items():
            starts = {which: clock() for which, clock in clocks.items()}
            work()
            for which, clock in clocks.items():
                seconds[name][which] = min(seconds[name][which], clock() - starts[which])
    return {name: {which: NUMBERS / each / 1e6 for which, each in both.items()} for name, both in seconds.items()}


def roughness(rate: float) -> dict[str, float]:
    """How far log P[k] in doubles is off, one deviation above the mean: root mean square at single integers, and after
    averaging over BLOCK neighbours, as adding any other noise does. A constant is taken off: draws don't see it.
    """
    first = math.floor(rate + math.sqrt(rate))
    k = np.arange(first, first + NEIGHBOURS, dtype=np.float64)
    x = k + 1
    stirling = (x - 0.5) * np.log(x) - x + 0.5 * math.log(2 * math.pi) + 1 / (12 * x)
    in_doubles = -rate + k * math.log(rate) - stirling
    with mpmath.workdps(50):
        exact = mpmath.log(rate) * first - rate - mpmath.loggamma(first + 1)
        steps = [mpmath.log(rate / mpmath.mpf(each)) for each in range(first + 1, first + NEIGHBOURS)]
        values = [exact]
        for step in steps:
            values.append(values[-1] + step)
        off = np.array([float(mpmath.mpf(float(each)) - value) for each, value in zip(in_doubles, values, strict=True)])
    off -= off.mean()
    averaged = off.reshape(-1, BLOCK).mean(axis=1)
    return {"single": float(np.sqrt(np.square(off).mean())), "averaged": float(np.sqrt(np.square(averaged).mean()))}


# The page.


def page(entries: results.Entries) -> str:
    entry = entries["cpu"]
    ours = entry["skellam"][f"{OURS}|{REALISTIC:g}|2"]
    return "\n".join(
        [
            "# How fast integer noise is drawn",
            "",
            "Written by `benchmarks/discrete_noise.py --write`. One array of a million int64 numbers, for one client; "
            "a Skellam number is two Poisson draws, of half its variance each.",
            f"{results.provenance(entry['machine'], entry['versions'])} Best of {entry['turns']} turns; the machine's "
            f"load was {entry['load']:.1f} at the start: what else runs takes from the columns by the clock, "
            "not from the last.",
            "",
            "## Goal",
            "",
            "| | measured | goal | |",
            "|---|---:|---:|---|",
            f"| Skellam numbers by two threads, {OURS}, rate {REALISTIC:.0e}, by the clock | {ours['clock']:.1f} M/s | "
            f"≥ {GOAL:g} M/s | {results.verdict(ours['clock'] >= GOAL)} |",
            "",
            f"The same run drew {ours['core']:.1f} million in a second of one core's time, so two cores with nothing "
            f"else to do should reach about {2 * ours['core']:.0f} M/s. That is a projection, and no verdict rests "
            "on it.",
            "",
            "## Skellam",
            "",
            "| generator | Poisson rate | one thread, M/s | two threads, M/s | a core's second, M: one thread · two |",
            "|---|---:|---:|---:|---:|",
            *_rows(entry["skellam"]),
            "",
            "## Discrete Gaussian",
            "",
            "| generator | σ² | one thread, M/s | two threads, M/s | a core's second, M: one thread · two |",
            "|---|---:|---:|---:|---:|",
            *_rows(entry["discrete_gaussian"]),
            "",
            "## How rough a Poisson draw is",
            "",
            "numpy accepts a draw by comparing logarithms of size λ·ln λ in doubles. This is how far log P[k] is off "
            f"there (root mean square over {NEIGHBOURS} neighbours, one deviation above the mean; the series for "
            f"log k! written out as numpy has it), and what is left after averaging over {BLOCK} of them.",
            "",
            "| rate | single integers | averaged |",
            "|---:|---:|---:|",
            *[
                f"| {float(rate):.0e} | {found['single']:.1e} | {found['averaged']:.1e} |"
                for rate, found in entry["roughness"].items()
            ],
            "",
        ]
    )


def _rows(found: dict[str, dict[str, float]]) -> Iterator[str]:
    for name, rate in dict.fromkeys(tuple(key.split("|")[:2]) for key in found):
        one, two = found[f"{name}|{rate}|1"], found[f"{name}|{rate}|2"]
        by_core = f"{one['core']:.1f} · {two['core']:.1f}"
        yield f"| {name} | {float(rate):.0e} | {one['clock']:.1f} | {two['clock']:.1f} | {by_core} |"


if __name__ == "__main__":
    main()
