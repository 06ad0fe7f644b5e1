"""Noise by the million: the streams that simulate and those of a real client, and the generators that were candidates.

The normals are drawn for one client, in the shape of a model, as DP-SGD does in every step; torch and numpy use one
thread. The best of several interleaved repetitions is printed: others may be at work on the machine.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from randomgen import AESCounter, ChaCha
from torch import Tensor

from discreet.params import Params
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows, RunKey

T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parameters", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rates = best(candidates(options.parameters), options.repetitions)
    found = {name: round(options.parameters / seconds / 1e6, 1) for name, seconds in rates.items()}
    first = {name: round(1e6 * seconds, 1) for name, seconds in best(openings(), 200).items()}
    blocks_of = {str(clients): 1e6 * seconds / clients for clients, seconds in best(batches(), 20).items()}
    each = {clients: round(microseconds, 2) for clients, microseconds in blocks_of.items()}
    print(
        json.dumps(
            {"million_a_second": found, "microseconds_to_open": first, "microseconds_a_client_in_a_block_of": each},
            indent=2,
        )
    )


def candidates(parameters: int) -> dict[str, Callable[[], object]]:
    draws: dict[str, Callable[[], object]] = {}
    for kind, rows in blocks().items():
        for dtype in (torch.float32, torch.float64):
            model = {"weight": torch.zeros(parameters, dtype=dtype)}
            draws[f"{kind} normals, {dtype}"] = partial(rows.open().normal, model)
        draws[f"{kind} uniforms"] = partial(rows.open().uniform, [parameters])
    for bits in (ChaCha(key=1), AESCounter(key=1), np.random.PCG64(1)):
        draws[f"bare normals, {type(bits).__name__}"] = partial(np.random.Generator(bits).standard_normal, parameters)
    return draws


def openings() -> dict[str, Callable[[], object]]:
    return {kind: partial(draw_first, rows) for kind, rows in blocks().items()}


def batches() -> dict[int, Callable[[], object]]:
    """Ten numbers of each simulated client of a block, as for the order of its examples."""
    return {clients: partial(draw_order, clients) for clients in (1, 10, 50, 1000, 4096)}


def draw_order(clients: int) -> Tensor:
    rows = RunKey(bytes(32)).rows(0, bytes(32), range(clients), torch.device("cpu"))
    return rows.for_purpose(Purpose.BATCHES).open().uniform([10] * clients)


def draw_first(rows: Rows) -> Params:
    """The first number of a new stream."""
    return rows.for_purpose(Purpose.NOISE).open().normal({"weight": torch.zeros(1)})


def blocks() -> dict[str, Rows]:
    key, digest = RunKey.generate(), bytes(32)
    return {"simulated": key.rows(0, digest, [0], torch.device("cpu")), "secret": key.secret_rows(0, digest, 0)}


def best(timed: dict[T, Callable[[], object]], repetitions: int) -> dict[T, float]:
    """The least seconds of each, taken in turn."""
    seconds = dict.fromkeys(timed, float("inf"))
    for _ in range(repetitions):
        for name, work in timed.items():
            start = time.perf_counter()
            work()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    main()
