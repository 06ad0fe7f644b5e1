"""Flower: noise for an unweighted mean on an average that is weighted by numbers of examples."""

import logging
import statistics

import numpy as np
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

from peers.fault import Fault

EXAMPLES = (100,) * 9 + (8100,)
CLIP, WRITTEN = 1.0, 1.0
REPETITIONS = 2000


def measure() -> Fault:
    """Compare the noise with the distance by which the largest client moves the average."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    moved = release(update=CLIP, noise_multiplier=0.0) - release(update=0.0, noise_multiplier=0.0)
    np.random.seed(0)
    deviation = statistics.stdev(release(update=0.0, noise_multiplier=WRITTEN) for _ in range(REPETITIONS))
    real = deviation / moved
    return Fault(
        library="flwr",
        title="The noise of the differential privacy wrappers is that of an unweighted mean, also where the strategy "
        "that they wrap weighs clients by their numbers of examples.",
        expected=f"noise multiplier {WRITTEN:g}, as it is written in the configuration",
        measured=f"{real:.2f}, if one client holds {EXAMPLES[-1]:,} of {sum(EXAMPLES):,} examples "
        f"({REPETITIONS:,} releases)",
        is_seen=real < WRITTEN / 2,
        remark="`FedAvg` is the strategy of Flower's own example. Clients that all report the same number of examples "
        "are not affected. The newer `flwr.serverapp` wrapper refuses unequal weights if an accountant is passed, "
        "and not without one.",
        ours='`weighting = "by_examples"` under a clip is refused, or the weights are public and applied before the '
        "clip (`tests/algorithms/test_algorithm.py`).",
    )


def release(update: float, noise_multiplier: float) -> float:
    """Return the released parameter if the largest client sends `update` and all others send 0."""
    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), noise_multiplier, CLIP, len(EXAMPLES))
    strategy.current_round_params = [np.zeros(1)]
    tiny = 1e-9  # an update of exactly 0 is divided by its norm
    sent = [tiny] * (len(EXAMPLES) - 1) + [update or tiny]
    results = [
        (None, FitRes(Status(Code.OK, ""), ndarrays_to_parameters([np.array([value])]), examples, {}))
        for value, examples in zip(sent, EXAMPLES, strict=True)
    ]
    released, _ = strategy.aggregate_fit(1, results, [])
    return float(parameters_to_ndarrays(released)[0][0])
