"""The noise that the public code of Heikkilä (2025) draws, at the rates that it computes for its own settings.

Its file skellam_utils.py (mixheikk/DPFL-with-SecAgg-paper at commit 39a206f) draws torch.poisson(rate) twice in single
precision and takes the difference, at a rate of (s·B/C)²·(σC)²: s is the scale of the lattice, C the clip and B the
bound on a rounded vector, which is about s·C already. So s enters to the fourth power. Skellam noise of that variance
takes two Poisson numbers at half of s²(σC)² each.
"""

import math
from typing import Any, NamedTuple

import torch

from experiments.distributed.paper_settings import EPOCH, STEP, Settings

BITS, CLIENTS, DEVIATIONS = 32, 10, 3  # of its ring, of its data sets with iid clients, and that fit into the ring
DRAWS = 100_000
PLAIN_RATES = (1e8, 1e12, 2.6e16)  # the last is what its setting for Fashion-MNIST would take, with the right power


class Setting(NamedTuple):
    """One of its settings, with how many parameters the network has."""

    name: str
    settings: Settings
    parameters: int


SETTINGS = (
    Setting("Fashion-MNIST, one epoch a round", EPOCH["fashion", 20], 26_010),
    Setting("Fashion-MNIST, one step a round", STEP["fashion", 20], 26_010),
    Setting("CIFAR-10, one epoch, 10 rounds", EPOCH["cifar", 10], 10_250),
    Setting("CIFAR-10, one step, 160 rounds", STEP["cifar", 160], 10_250),
)


def scale(setting: Setting, clients: int = CLIENTS) -> float:
    """s, in closed form: so that the sum of all clients, with its noise, fits into the ring."""
    clip, noise = setting.settings.clip_norm, setting.settings.noise_multiplier * setting.settings.clip_norm
    spread = clip**2 * clients**2 / setting.parameters + clients * noise**2
    return math.sqrt(2 ** (2 * BITS) - clients * DEVIATIONS**2) / (2 * DEVIATIONS * math.sqrt(spread))


def rate(setting: Setting) -> float:
    """Of each of the two Poisson numbers, as its code computes it."""
    s, clip = scale(setting), setting.settings.clip_norm
    padded = 2 ** math.ceil(math.log2(setting.parameters))
    bound = math.sqrt((s * clip) ** 2 + padded / 4 + s * clip + math.sqrt(padded) / 2)
    return float((s * bound / clip) ** 2 * (setting.settings.noise_multiplier * clip) ** 2)


def measure(device: str) -> list[dict[str, Any]]:
    """What is drawn for each setting and at some plain rates; deviations in units of a gradient, or of the lattice."""
    found = []
    for setting in SETTINGS:
        s, intended = scale(setting), setting.settings.noise_multiplier * setting.settings.clip_norm
        found.append({"setting": setting.name, "intended": intended} | _draw_difference(rate(setting), s, device))
    for plain in PLAIN_RATES:
        found.append({"setting": None, "intended": math.sqrt(2 * plain)} | _draw_difference(plain, 1.0, device))
    return found


def _draw_difference(rate: float, s: float, device: str) -> dict[str, Any]:
    rates = torch.full((DRAWS,), rate, dtype=torch.float32, device=device)
    difference = torch.poisson(rates) - torch.poisson(rates)
    return {
        "rate": rate,
        "draws": DRAWS,
        "deviation": float(difference.double().std()) / s,
        "zeros": int((difference == 0).sum()),
        "distinct": len(set(difference.tolist())),
        "device": torch.device(device).type,
        "torch": torch.__version__,
    }
