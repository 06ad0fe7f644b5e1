"""Heikkilä's own settings, as its code has them, and what it says they reach."""

import math
from typing import NamedTuple

from discreet.privacy.events import Repeated, sampled_gaussian


class Settings(NamedTuple):
    """Of each round's clients and server; `noise_multiplier` is one client's, and its momentum restarts each round.

    `sampling_rate` and `steps`, of all rounds, are as its accountant counts them. Batches are then drawn at a rate of
    one over a whole number of steps, which is a little less.
    """

    learning_rate: float
    momentum: float
    clip_norm: float
    server_learning_rate: float
    server_momentum: float
    noise_multiplier: float
    sampling_rate: float
    steps: int

    def claimed_event(self, clients: int) -> Repeated:
        """What Theorem 4.6 counts: every step with the noise of all clients."""
        return self._event(self.sampling_rate, self.noise_multiplier * math.sqrt(clients))

    def sampled_event(self, clients: int) -> Repeated:
        """Return the event at the rate at which batches are drawn. `clients = 1` has one client's own noise."""
        return self._event(1 / math.ceil(1 / self.sampling_rate - 1e-9), self.noise_multiplier * math.sqrt(clients))

    def _event(self, rate: float, noise: float) -> Repeated:
        return sampled_gaussian(noise, rate, self.steps)


FASHION, CIFAR = 5600, 4800  # examples that a client trains on

EPOCH = {  # by data set and rounds: one pass over a client's data in each
    ("fashion", 20): Settings(0.3651, 0.465, 19.076, 0.993, 0.200, 2.1573, 512 / FASHION, 220),
    ("income", 10): Settings(0.5268, 0.801, 14.002, 0.945, 0.579, 0.5165, 0.05, 200),
    ("cifar", 10): Settings(0.4181, 0.652, 13.374, 0.434, 0.681, 1.2101, 256 / CIFAR, 190),
    ("cifar", 20): Settings(0.2861, 0.882, 18.603, 0.985, 0.489, 1.6614, 256 / CIFAR, 380),
    ("cifar", 40): Settings(0.5328, 0.838, 17.680, 0.977, 0.474, 2.3144, 256 / CIFAR, 760),
    ("cifar", 80): Settings(0.2521, 0.883, 18.897, 0.945, 0.789, 3.2480, 256 / CIFAR, 1520),
    ("cifar", 160): Settings(0.4089, 0.818, 9.543, 0.949, 0.394, 4.5758, 256 / CIFAR, 3040),
}
STEP = {  # one step in each round
    ("fashion", 20): Settings(0.2051, 0.132, 12.185, 0.946, 0.898, 0.4327, 128 / FASHION, 20),
    ("income", 10): Settings(0.956, 0.327, 9.245, 0.967, 0.812, 0.2269, 0.05, 10),
    ("cifar", 10): Settings(0.311, 0.749, 9.243, 0.988, 0.897, 0.4371, 128 / CIFAR, 10),
    ("cifar", 20): Settings(0.442, 0.858, 13.328, 0.794, 0.808, 0.4471, 128 / CIFAR, 20),
    ("cifar", 40): Settings(0.375, 0.141, 16.398, 0.832, 0.699, 0.4707, 128 / CIFAR, 40),
    ("cifar", 80): Settings(0.513, 0.787, 8.185, 0.720, 0.756, 0.5157, 128 / CIFAR, 80),
    ("cifar", 160): Settings(0.934, 0.251, 11.296, 0.198, 0.887, 0.6220, 128 / CIFAR, 160),
}

GAINS = {"fashion": 16, "income": 4, "cifar": 4}  # points of accuracy, roughly: an epoch a round less a step a round
