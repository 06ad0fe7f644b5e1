"""Heikkilä 2025: what the mean of models reveals that were each trained with noise of their own; its Table 1.

What is proved: for one step from a common model the mean is a function of the sum, which has the noise of all clients.
What is wrong: Table 1 counts the noise of all clients also for several steps (by Theorem 4.6), while a model after its
first step carries its own noise alone. What we use: for several steps, the noise of one model.
"""

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
LEAST, MOST = 0.01, 1e12  # noise multipliers: a smaller one protects nobody, a larger one can't be drawn
PRECISION = 1e-7  # relative, of the noise

ONE_MODEL = "one model alone: there is nothing to average, and its own noise is all there is"
ONE_STEP = "one step, from a common model: the mean is a function of the sum, which carries the noise of all"
OWN_STATES = (
    "after its first step a model is trained from its own state, which carries its own noise alone; Theorem 4.6 counts "
    "the noise of all (examples/counterexample.py shows an attack that it rules out)"
)


class ModelAverage(NamedTuple):
    """What the mean of noisy models reveals.

    Attributes:
        local_noise: The noise multiplier of one model.
        total_noise: The noise multiplier of the sum of all models.
        claimed_epsilon: The ε that the paper claims.
        epsilon: The ε that is certified.
        event: The event that `epsilon` was computed for.
        is_sound: Whether the claimed event is the certified one. If not, the paper's ε is only a claim.
        reason: Why.
    """

    local_noise: float
    total_noise: float
    claimed_epsilon: float
    epsilon: float
    event: Event
    is_sound: bool
    reason: str


def evaluate_average(
    local_epsilon: float, clients: int, steps: int, sampling_rate: float, delta: float
) -> ModelAverage:
    """Evaluate the mean of models that are each (local_epsilon, δ)-private for examples, by zero-out, on disjoint data.

    σ_total = √N·σ_LDP (Heikkilä 2025, Section 5 and Table 1), with σ_LDP the least noise at which the paper's
    accountant reports local_epsilon for S steps. The claimed ε is what it reports at σ_total; that is wrong for S > 1
    and N > 1, because the theorem it rests on is. The table is for Skellam noise at 32 bits, where no digit differs
    from Gaussian noise.

    Guarantee: `epsilon` is certified against observers who see only the mean: for one step at σ_total, for more at
    σ_LDP.
    """
    local = calibrate_local_noise(local_epsilon, steps, sampling_rate, delta)
    total = sum_noise(local, clients)
    is_sound = steps == 1 or clients == 1
    certified = sampled_gaussian(total if is_sound else local, sampling_rate, steps)
    return ModelAverage(
        local_noise=local,
        total_noise=total,
        claimed_epsilon=paper_epsilon(sampled_gaussian(total, sampling_rate, steps), delta),
        epsilon=accountant.epsilon(certified, delta),
        event=certified,
        is_sound=is_sound,
        reason=ONE_MODEL if clients == 1 else ONE_STEP if is_sound else OWN_STATES,
    )


def paper_epsilon(event: Event, delta: float) -> float:
    """Return ε by the paper's accountant (Heikkilä 2025, A.5).

    Rényi divergences at orders 2 … 255, amplified by Poisson sampling after Steinke (2022), converted after Mironov
    (2017, Prop. 3): min over α of D_α + ln(1/δ)/(α − 1).
    """
    return rdp.epsilon(event, delta, orders=ORDERS, conversion="mironov")


@lru_cache(maxsize=64)
def calibrate_local_noise(epsilon: float, steps: int, sampling_rate: float, delta: float) -> float:
    """Return the least noise multiplier at which the paper's accountant reports `epsilon` for `steps` steps.

    Raises:
        InvalidInput: No noise is enough; the paper's orders end at 255.
    """

    def epsilon_at(noise_multiplier: float) -> float:
        return paper_epsilon(sampled_gaussian(noise_multiplier, sampling_rate, steps), delta)

    if not epsilon_at(MOST) <= epsilon:
        floor = -math.log(delta) / (ORDERS[-1] - 1)
        raise InvalidInput(
            f"No noise has an ε of {epsilon:g} by the accountant of Heikkilä 2025, which never reports less than "
            f"{floor:.4g} at δ = {compact(delta)}.",
            fix="Ask for a larger local ε.",
        )
    low, high = LEAST, MOST
    if epsilon_at(low) <= epsilon:
        return low
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon_at(middle) <= epsilon else (middle, high)
    return high
