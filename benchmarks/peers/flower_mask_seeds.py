"""Flower: the masks of SecAgg+ come from a generator with a seed of 32 bits."""

import secrets
import time

import numpy as np
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

from peers.fault import Fault

RANGE = 1 << 32
TRIED = 2000


def measure() -> Fault:
    """Draw the mask of another key with the same 32 bits, and time a search through all seeds."""
    key = secrets.token_bytes(32)
    folded = np.frombuffer(key, "<u4")
    seed = int(np.bitwise_xor.reduce(folded))
    other = seed.to_bytes(4, "little") + bytes(28)
    shape = [(8,)]
    is_equal = np.array_equal(pseudo_rand_gen(key, RANGE, shape)[0], pseudo_rand_gen(other, RANGE, shape)[0])
    start = time.perf_counter()
    for candidate in range(TRIED):
        pseudo_rand_gen(candidate.to_bytes(4, "little"), RANGE, shape)
    hours = (time.perf_counter() - start) / TRIED * 2**32 / 3600
    return Fault(
        library="flwr",
        title="A mask of SecAgg+ depends on 32 bits of its key, and comes from a Mersenne Twister.",
        expected="256 bits, of which another key shares none",
        measured=(
            f"a key made of 32 bits draws the same mask; all 2³² seeds take {hours:,.0f} hours of one core "
            "in plain Python"
            if is_equal
            else "another key draws another mask"
        ),
        is_seen=is_equal,
        remark="Whoever knows or guesses a few values of an update, such as zeros of a sparse layer, can test each "
        "seed. Key agreement and secret sharing are not affected.",
        ours="Masks are ChaCha20 with a key of 256 bits (`docs/decisions/0007-secure-aggregation.md`).",
    )
