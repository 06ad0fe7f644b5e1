"""What the mean of models reveals that were each trained with their own noise: paper 002's Table 1, and what holds."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.errors import InvalidInput
from discreet.planning.theory.heikkila_noise_shares import sum_noise
from discreet.privacy import accountant, rdp
from discreet.privacy.events import Event, sampled_gaussian
from discreet.privacy.wording import compact

ORDERS = np.arange(2.0, 256.0)  # those of the paper's accountant
LEAST, MOST = 0.01, 1e12  # of a noise multiplier: less protects nobody, more can't be had
PRECISION = 1e-7  # relative, of the noise

ONE_MODEL = "one model alone: there is nothing to average, and its own noise is all there is"
ONE_STEP = "one step, from a common model: the mean is a function of the sum, which carries the noise of all"
OWN_STATES = (
    "after its first step a model is trained from its own state, which carries its own noise alone; Theorem 4.6 counts "
    "the noise of all (examples/counterexample.py shows an attack that it rules out)"
)


class ModelAverage(NamedTuple):
    """Noise multipliers of one model and of the sum; the ε that the paper claims, and the one that is certified."""

    local_noise: float
    total_noise: float
    claimed: float
    epsilon: float
    event: Event  # what `epsilon` is of
    sound: bool  # whether the event claimed is the one certified; if not, the claim is one
    reason: str


def evaluate_average(
    local_epsilon: float, clients: int, steps: int, sampling_rate: float, delta: float
) -> ModelAverage:
    """The mean of models that are each (local_epsilon, δ)-private for examples, by zero-out, on disjoint data.

    σ_total = √N·σ_LDP (paper 002, Section 5 and Table 1), with σ_LDP the least noise at which the paper's accountant
    says local_epsilon for S steps. Claimed is what it says at σ_total; that is wrong for S > 1 and N > 1, since the
    theorem it rests on is. The table is for Skellam noise at 32 bits, where no digit differs from Gaussian noise.

    Guarantee: `epsilon` is certified against those who see only the mean: for one step at σ_total, for more at σ_LDP.
    """
    local = calibrate_local_noise(local_epsilon, steps, sampling_rate, delta)
    total = sum_noise(local, clients)
    sound = steps == 1 or clients == 1
    certified = _trained(total if sound else local, steps, sampling_rate)
    return ModelAverage(
        local_noise=local,
        total_noise=total,
        claimed=paper_epsilon(_trained(total, steps, sampling_rate), delta),
        epsilon=accountant.epsilon(certified, delta),
        event=certified,
        sound=sound,
        reason=ONE_MODEL if clients == 1 else ONE_STEP if sound else OWN_STATES,
    )


def paper_epsilon(event: Event, delta: float) -> float:
    """ε as paper 002 counts it (A.5): Rényi divergences at orders 2 … 255, amplified by Poisson sampling as Steinke
    (2022) has it, converted as Mironov (2017, Prop. 3) has it: min over α of D_α + ln(1/δ)/(α − 1).
    """
    return rdp.epsilon(event, delta, orders=ORDERS, conversion="mironov")


@lru_cache(maxsize=64)
def calibrate_local_noise(epsilon: float, steps: int, sampling_rate: float, delta: float) -> float:
    """The least noise multiplier at which the paper's accountant says `epsilon` for so many steps of one model."""

    def at(noise_multiplier: float) -> float:
        return paper_epsilon(_trained(noise_multiplier, steps, sampling_rate), delta)

    if not at(MOST) <= epsilon:
        floor = -math.log(delta) / (ORDERS[-1] - 1)
        raise InvalidInput(
            f"No noise has an ε of {epsilon:g} by paper 002's accountant, which never says less than {floor:.4g} at "
            f"δ = {compact(delta)}.",
            fix="Ask for a larger local ε.",
        )
    low, high = LEAST, MOST
    if at(low) <= epsilon:
        return low
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle) <= epsilon else (middle, high)
    return high


def _trained(noise_multiplier: float, steps: int, sampling_rate: float) -> Event:
    return sampled_gaussian(noise_multiplier, sampling_rate, steps)
