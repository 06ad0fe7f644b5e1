"""Secure aggregation: ours beside the arithmetic of Flower's SecAgg+, and how its cost grows with the cohort.

10 clients with 1,000,000 numbers each, in turns. Ours is timed whole: key agreement, shares, seals, packing, parsing.
Of Flower only masks, sums and bytes are timed, by its own functions: no key agreement, no shares, no encryption.
"""

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import results

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_client import Client
from discreet.secure_sums.secagg.session_messages import SETUP, round_stages
from discreet.secure_sums.secagg.session_server import Server
from discreet.secure_sums.secagg.session_terms import Terms

CLIENTS, LENGTH, BITS = 10, 1_000_000, 32
LOST = 9  # this client's vector does not come
COHORTS = (10, 20, 50, 100, 200, 500, 1000)
ALL_PAIRS = (10, 20, 50, 100, 200)
COHORT_LENGTH = 100_000
OURS, FLOWER = "discreet", "flower"
MASK, ADD, UNMASK, RECOVER = "client: mask", "server: add up", "server: unmask", "server: unmask, one client lost"
GOAL_BYTES = 4_100_000

Seconds = dict[str, float]


def ours(vectors: list[Vector], rounds: int) -> Callable[[], tuple[Seconds, int]]:
    """A session that was set up; each call is two rounds, the second without the vector of one client."""
    terms = Terms.choose(clients=CLIENTS, length=LENGTH, bits=BITS, rounds=2 * rounds)
    session = Session(terms)
    numbers = iter(range(2 * rounds))

    def run() -> tuple[Seconds, int]:
        whole, sent = session.round(next(numbers), vectors)
        lost, _ = session.round(next(numbers), vectors, without=LOST)
        return {
            MASK: whole["mask"] / CLIENTS,
            ADD: whole["add"],
            UNMASK: whole["unmask"],
            RECOVER: lost["unmask"],
        }, sent

    return run


class Session:
    """Clients and their server, with the seconds that each side took by this clock."""

    def __init__(
        self, terms: Terms, identities: tuple[bytes, ...] = (), clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.clock = clock
        own: tuple[bytes | None, ...] = identities or (None,) * terms.clients
        self.terms, self.server = terms, Server(terms)
        self.seconds: Seconds = defaultdict(float)
        self.clients = [Client(terms, number, identity=key) for number, key in enumerate(own)]
        self._send(
            {number: self._time_step("set-up", client.start) for number, client in enumerate(self.clients)}, "server"
        )
        for _ in SETUP:
            self._send(self._answers(self._time_step("server", self.server.close_stage), "set-up"), "server")

    def round(self, number: int, vectors: list[Vector], without: int | None = None) -> tuple[Seconds, int]:
        """One round; the seconds of its parts, and the bytes of the largest message of a client."""
        self.seconds = defaultdict(float)
        self.server.open_round(number)
        present = [each for each in range(self.terms.clients) if each != without]
        sent = 0
        for each in present:
            client, vector = self.clients[each], vectors[each % len(vectors)]
            message = self._time_step("mask", client.mask, number, vector)
            sent = max(sent, len(message))
            self._send({each: message}, "add")
        for _ in round_stages(signed=self.terms.has_signatures)[:-1]:
            answers = self._answers(self._time_step("server", self.server.close_stage), "agree and reveal")
            self._send(answers, "server")
        total = self._time_step("unmask", self.server.unmask)
        expected = np.sum([vectors[each % len(vectors)] for each in present], axis=0)
        assert np.array_equal(total.vector, self.terms.ring.to_ring(expected))
        return dict(self.seconds), sent

    def _time_step(self, what: str, call: Callable[..., Any], *given: Any) -> Any:
        begun = self.clock()
        result = call(*given)
        self.seconds[what] += self.clock() - begun
        return result

    def _send(self, messages: dict[int, bytes], what: str) -> None:
        for sender, message in messages.items():
            self._time_step(what, self.server.receive, message, sender)

    def _answers(self, messages: dict[int, bytes], what: str) -> dict[int, bytes]:
        replies = {
            number: self._time_step(what, self.clients[number].receive, message) for number, message in messages.items()
        }
        return {number: reply for number, reply in replies.items() if reply is not None}


def flower(vectors: list[Vector]) -> Callable[[], tuple[Seconds, int]]:
    """The masks, sums and bytes of Flower's `secaggplus_mod` and `secaggplus_workflow`, in their order."""
    from flwr.common import bytes_to_ndarray, ndarray_to_bytes
    from flwr.common.secure_aggregation.ndarrays_arithmetic import (
        factor_combine,
        get_parameters_shape,
        parameters_addition,
        parameters_mod,
        parameters_subtraction,
    )
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen

    modulus = 2**BITS
    rng = np.random.default_rng(0)
    own = [rng.bytes(32) for _ in range(CLIENTS)]
    pair = {(one, other): rng.bytes(32) for other in range(CLIENTS) for one in range(other)}

    def mask(client: int) -> list[bytes]:
        quantized = factor_combine(1, [vectors[client]])
        shapes = get_parameters_shape(quantized)
        quantized = parameters_addition(quantized, pseudo_rand_gen(own[client], modulus, shapes))
        for peer in range(CLIENTS):
            if peer != client:
                shared = pseudo_rand_gen(pair[min(client, peer), max(client, peer)], modulus, shapes)
                change = parameters_addition if client > peer else parameters_subtraction
                quantized = change(quantized, shared)
        return [ndarray_to_bytes(each) for each in parameters_mod(quantized, modulus)]

    def add(messages: list[list[bytes]]) -> Any:
        total = None
        for message in messages:
            arrays = [bytes_to_ndarray(each) for each in message]
            total = arrays if total is None else parameters_addition(total, arrays)
        return parameters_mod(total, modulus)

    def unmask(total: Any, lost: int | None) -> Any:
        for client in range(CLIENTS):
            shapes = get_parameters_shape(total)
            if client != lost:
                total = parameters_subtraction(total, pseudo_rand_gen(own[client], modulus, shapes))
                continue
            for peer in range(CLIENTS):
                if peer != client:
                    shared = pseudo_rand_gen(pair[min(client, peer), max(client, peer)], modulus, shapes)
                    total = (parameters_addition if client > peer else parameters_subtraction)(total, shared)
        return parameters_mod(total, modulus)

    def run() -> tuple[Seconds, int]:
        marks = [time.perf_counter()]
        messages = [mask(client) for client in range(CLIENTS)]
        marks.append(time.perf_counter())
        total = add(messages)
        marks.append(time.perf_counter())
        whole = unmask(total, None)
        marks.append(time.perf_counter())
        rest = add([message for client, message in enumerate(messages) if client != LOST])
        begun = time.perf_counter()
        less = unmask(rest, LOST)
        lost = time.perf_counter() - begun
        assert np.array_equal(whole[1], sum(vectors) % modulus)
        assert np.array_equal(less[1], sum(vectors[:LOST]) % modulus)
        took = np.diff(marks)
        sent = sum(len(each) for each in messages[0])
        return {MASK: took[0] / CLIENTS, ADD: took[1], UNMASK: took[2], RECOVER: lost}, sent

    return run


def race(turns: int, *, alone: bool) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Medians of seconds over turns taken alternately, and the bytes a client sends. The first turn warms up."""
    rng = np.random.default_rng(0)
    vectors = [rng.integers(0, 2**20, LENGTH, dtype=np.int64) for _ in range(CLIENTS)]
    sides = {OURS: ours(vectors, turns + 1)} | ({} if alone else {FLOWER: flower(vectors)})
    found: dict[str, list[Seconds]] = {who: [] for who in sides}
    sent: dict[str, int] = {}
    for turn in range(turns + 1):
        for who, run in sides.items():
            seconds, sent[who] = run()
            if turn:
                found[who].append(seconds)
    medians = {
        who: {what: float(statistics.median(each[what] for each in values)) for what in values[0]}
        for who, values in found.items()
    }
    return medians, sent


def measure_round(clients: int, *, all_pairs: bool) -> dict[str, Any]:
    """What one signed round costs in a cohort of this size."""
    identities = tuple(key_agreement.random_bytes(32) for _ in range(clients))
    publics = tuple(key_agreement.identity_key(each) for each in identities)
    terms = Terms.choose(
        clients=clients,
        length=COHORT_LENGTH,
        bits=BITS,
        identities=publics,
        threshold=-(-2 * clients // 3) if all_pairs else None,
    )
    session = Session(terms, identities, clock=time.process_time)
    set_up = session.seconds
    vectors = [np.arange(COHORT_LENGTH) + each for each in range(3)]
    seconds, sent = session.round(0, vectors)
    return {
        "clients": clients,
        "neighbours": terms.neighbours,
        "threshold": terms.threshold,
        "set_up": set_up["set-up"] / clients,
        "client": (seconds["mask"] + seconds["agree and reveal"]) / clients,
        "server": seconds["add"] + seconds["server"] + seconds["unmask"],
        "beyond_the_vector": sent - terms.ring.packed_bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--turns", type=int, default=7, help="of each side; medians are shown (7)")
    parser.add_argument("--largest", type=int, default=max(COHORTS), help=f"cohort ({max(COHORTS)})")
    results.add_options(parser, "secagg")
    options = parser.parse_args()
    results.publish("secagg", options, lambda: measure(options.turns, options.largest), page)
    if options.write or options.merge is not None:
        draw()


def measure(turns: int, largest: int) -> results.Entry:
    alone = find_spec("flwr") is None
    if alone:
        print("flwr isn't installed here (pip install flwr==1.41.0), so only ours is measured.", file=sys.stderr)
    seconds, sent = race(turns, alone=alone)
    rows: dict[str, list[dict[str, Any]]] = {"default": [], "all_pairs": []}
    for clients in COHORTS:
        for kind, sizes in (("default", COHORTS), ("all_pairs", ALL_PAIRS)):
            if clients <= largest and clients in sizes:
                rows[kind].append(measure_round(clients, all_pairs=kind == "all_pairs"))
                print(f"{kind}: {rows[kind][-1]}", file=sys.stderr)
    return {
        "device": "cpu",
        "machine": results.machine(),
        "versions": results.versions("discreet", "cryptography", "numpy", "flwr"),
        "turns": turns,
        "seconds": seconds,
        "bytes": sent,
        "cohorts": rows,
    }


# The page.


def page(entries: results.Entries) -> str:
    entry = entries["cpu"]
    return "\n".join(
        [
            "# What secure aggregation costs",
            "",
            "Written by `benchmarks/secagg.py --write`.",
            results.provenance(entry["machine"], entry["versions"]),
            "",
            "## Beside Flower's SecAgg+",
            "",
            f"{CLIENTS} clients, all pairs, {LENGTH:,} numbers modulo 2^{BITS} each; medians of {entry['turns']} "
            "turns, taken alternately after one that warms up. Ours is timed whole: key agreement, shares, seals, "
            "commitments, packing and parsing, with ChaCha20 under 256-bit keys. Of Flower only masks, sums and bytes "
            "are timed, by its own functions; its masks are numpy's Mersenne Twister from a seed of 32 bits.",
            "",
            "| | discreet | Flower | goal: less than Flower |",
            "|---|---:|---:|---|",
            *_comparison_lines(entry["seconds"], entry["bytes"]),
            "",
            "No goal was set for adding up. Ours also hashes each message there, to know it if it comes again.",
            "",
            "## Against the size of the cohort",
            "",
            f"One signed round, {COHORT_LENGTH:,} numbers, nobody leaves, one process with one thread; times are the "
            "processor's. A client's time is that of one client; the server's is for all of them. Neighbours are "
            "chosen as `Terms.choose` does by default: all pairs in small cohorts; in large ones as many as chances of "
            "2⁻⁴⁰ (security) and 2⁻³⁰ (correctness) ask for, with a fifth of the cohort colluding and another fifth "
            "leaving. Extra bytes are those of a client's largest message beyond its packed vector.",
            "",
            *_cohorts(entry["cohorts"]["default"]),
            "",
            "All pairs, for comparison:",
            "",
            *_cohorts(entry["cohorts"]["all_pairs"]),
            "",
            *_growth(entry["cohorts"]["default"]),
            "",
            "![A client's time in a round against the size of the cohort](secagg.svg)",
            "",
        ]
    )


def _comparison_lines(seconds: dict[str, Seconds], sent: dict[str, int]) -> Iterator[str]:
    for what, mine in seconds[OURS].items():
        theirs = seconds.get(FLOWER, {}).get(what)
        if theirs is None:
            yield f"| {what} | {1000 * mine:.1f} ms | – | not measured |"
        else:
            verdict = "" if what == ADD else results.verdict(mine < theirs)
            yield f"| {what} | {1000 * mine:.1f} ms | {1000 * theirs:.1f} ms | {verdict} |"
    other = f"{sent[FLOWER] / 1e6:.2f} MB" if FLOWER in sent else "–"
    met = results.verdict(sent[OURS] <= GOAL_BYTES)
    yield f"| one client's masked vector on the wire | {sent[OURS] / 1e6:.4f} MB | {other} | ≤ 4.1 MB: {met} |"


def _cohorts(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield "| clients | neighbours | threshold | set-up, ms a client | round, ms a client | server, s | extra bytes |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        times = f"{1000 * row['set_up']:.1f} | {1000 * row['client']:.1f} | {row['server']:.2f}"
        yield (
            f"| {row['clients']} | {row['neighbours']} | {row['threshold']} | {times} | {row['beyond_the_vector']:,} |"
        )


def _growth(rows: list[dict[str, Any]]) -> Iterator[str]:
    """How a client's time grows over the last step of the table, as a power of the cohort's size."""
    if len(rows) >= 2:
        before, last = rows[-2], rows[-1]
        size, cost = last["clients"] / before["clients"], last["client"] / before["client"]
        pairs = last["neighbours"] / before["neighbours"]
        yield (
            f"From {before['clients']} to {last['clients']} clients ({size:.1f}×) a client has {pairs:.2f}× as many "
            f"neighbours, and a round takes it {cost:.2f}× as long; with all pairs both would be {size:.1f}×, and the "
            f"whole cohort's work {size**2:.1f}×."
        )


def draw() -> None:
    """The picture, from the measurements that were kept."""
    import json

    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    rows = json.loads((results.FOLDER / "secagg.json").read_text(encoding="utf-8"))["cpu"]["cohorts"]
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    for kind, label, style in (("default", "chosen by default", "o-"), ("all_pairs", "all pairs", "s--")):
        sizes = [row["clients"] for row in rows[kind]]
        axes.plot(sizes, [1000 * row["client"] for row in rows[kind]], style, label=label)
    ticks = [row["clients"] for row in rows["default"]]
    axes.set(xscale="log", yscale="log", xlabel="clients in the cohort", ylabel="one client's round, ms")
    axes.set_xticks(ticks, labels=[str(each) for each in ticks])
    heights = (2, 5, 10, 20, 50, 100)
    axes.set_yticks(heights, labels=[str(each) for each in heights])
    axes.minorticks_off()
    axes.set_title("What a round costs a client")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    with matplotlib.rc_context({"svg.hashsalt": "secagg"}):  # the same names within the picture each time
        figure.savefig(results.FOLDER / "secagg.svg", metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
