"""How long a reservation takes in a plan ledger whose clients all differ: one line for each number of clients."""

import argparse
import json
import tempfile
import time
from functools import partial
from pathlib import Path

from discreet.privacy import accountant
from discreet.privacy.calibration import EpsilonTarget, calibrate_noise
from discreet.privacy.events import Event, sampled_gaussian
from discreet.privacy.ledger.entries import Budget
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.release import Release

DELTA = 1e-5
EPSILON = 4.0
PLANNED = 200  # rounds that each client's noise is made for
ROUNDS = 5  # that are reserved and timed, after all but these have been reserved at once
GOAL = 1.0  # seconds for 100 clients


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the measurements as one object")
    parser.add_argument("--clients", type=int, nargs="+", default=[25, 100], help="numbers of clients (25 100)")
    options = parser.parse_args()
    seconds = {count: measure(count) for count in options.clients}
    if options.json:
        print(json.dumps(seconds))
        return
    for count, each in seconds.items():
        goal = f", goal for 100: {GOAL:g} s" if count == 100 else ""
        print(f"{count} unlike clients: {max(each):.2f} s for the slowest reservation{goal}; all: {each}")


def measure(clients: int) -> list[float]:
    """Return the processor seconds of each reservation near the end of the budget, where quick bounds don't suffice."""
    rates = [0.02 + 0.02 * i / clients for i in range(clients)]
    target = EpsilonTarget(epsilon=EPSILON, delta=DELTA)
    events = [partial(_event, calibrate_noise(partial(_whole_event, rate), target), rate) for rate in rates]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        ledger = Ledger.create(
            path, [Budget(unit="example", relation="zero_out", view="server", epsilon=EPSILON, delta=DELTA)]
        )
        ledger.reserve("most", [_release(i, event(PLANNED - ROUNDS)) for i, event in enumerate(events)])
        seconds = []
        for number in range(ROUNDS):
            accountant.forget_results()
            ledger = Ledger.open(path)  # as another process would: nothing is remembered
            start = time.process_time()
            ledger.reserve(f"round {number}", [_release(i, event(1)) for i, event in enumerate(events)])
            seconds.append(round(time.process_time() - start, 3))
    return seconds


def _event(noise: float, rate: float, rounds: int) -> Event:
    return sampled_gaussian(noise, rate, rounds)


def _whole_event(rate: float, noise: float) -> Event:
    return _event(noise, rate, PLANNED)


def _release(client: int, event: Event) -> Release:
    return Release(unit="example", relation="zero_out", view="server", event=event, clients=(client,))


if __name__ == "__main__":
    main()
