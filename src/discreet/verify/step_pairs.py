"""Which dominating pair belongs to which step, by the name of its theorem."""

import math
from collections import Counter
from typing import NamedTuple

from flint import arb

from discreet.verify.balls import middle, normal_mass
from discreet.verify.card_reader import Step, UnknownEvent
from discreet.verify.loss_pairs import GaussianMixtures, Pair, Replacement, ReversedPair, SampledLaplace

LARGEST_PIECE = 4.0  # shift of unsampled Gaussian noise above which it is divided
LARGEST_SHIFT = 250.0  # of the noise, in its own units; beyond it masses are too small for doubles
UNLISTED = 1e-40  # chance of a number of group members below which it counts as an infinite loss

GAUSSIAN = "Gaussian: N(μ, 1) against N(0, 1), with all unsampled releases taken together (Dong, Roth & Su 2019)"
LAPLACE = "Laplace: shifted against centred noise on one coordinate (docs/notes/laplace.md)"
POISSON = "{}, Poisson-sampled: (1−q)Q + qP against Q and backwards (Zhu, Dong & Wang 2022, Thm 11)"
ANTIPODAL = "Gaussian, Poisson-sampled, replaced: (1−q)N(0) + qN(μ) against (1−q)N(0) + qN(−μ) (docs/notes/verify.md)"
REPLACEMENT = "{}, sampled, replaced: δ'(log(1 + q(e^ε − 1))) = q·δ(ε) (Balle, Barthe & Gaboardi 2018, Thm 2)"
GROUP = "Gaussian, a group under Poisson sampling: Σ P[j join]·N(jμ) against N(0) and backwards (Ganesh 2024)"


class CountedPair(NamedTuple):
    """A step's dominating pair in both directions, how often it happens, and its name."""

    forward: Pair
    backward: Pair
    times: int
    name: str


def squared_shift(steps: Counter[Step], relation: str) -> arb:
    """Enclose the square of the shift of all unsampled Gaussian noise together: Σ (Δ/σ)²."""
    factor = 4 if relation == "replace" else 1
    return sum((factor * count / arb(step[1]) ** 2 for step, count in steps.items() if step[0] == "gaussian"), arb(0))


def counted_pairs(steps: Counter[Step], relation: str) -> list[CountedPair]:
    """Return the dominating pairs of all steps, or raise UnknownEvent. Unsampled Gaussians are one pair."""
    found = [(*_find_pair(step, relation), count) for step, count in steps.items() if step[0] != "gaussian"]
    if (squared := squared_shift(steps, relation)) > 0:
        pieces = math.ceil(float(squared.mid()) / LARGEST_PIECE**2)  # of equal shift: one of √pieces times as much
        found.append((_gaussian(middle((squared / pieces).sqrt())), GAUSSIAN, pieces))
    return [CountedPair(pair, _reverse(pair, name), count, name) for pair, name, count in found]


def _reverse(pair: Pair, name: str) -> Pair:
    symmetric = name in (ANTIPODAL, LAPLACE, GAUSSIAN) or isinstance(pair, Replacement)
    return pair if symmetric else ReversedPair(pair)


def _find_pair(step: Step, relation: str) -> tuple[Pair, str]:
    match step:
        case ("laplace", scale):
            return SampledLaplace(_shift(2 if relation == "replace" else 1, scale)), LAPLACE
        case ("poisson", rate, ("gaussian", z)) if relation == "replace":
            p, q = ((1 - rate, 0.0), (rate, _shift(1, z))), ((rate, -_shift(1, z)), (1 - rate, 0.0))
            return GaussianMixtures(p, q), ANTIPODAL
        case (("poisson" | "fixed_size"), rate, ("gaussian", z)) if relation == "replace":
            half = 1 / z
            advantage = middle(normal_mass(-half, half))
            return Replacement(_gaussian(_shift(2, z)), rate, advantage), REPLACEMENT.format("Gaussian")
        case (("poisson" | "fixed_size"), rate, ("laplace", scale)) if relation == "replace":
            base = SampledLaplace(_shift(2, scale))
            return Replacement(base, rate, -math.expm1(-1 / scale)), REPLACEMENT.format("Laplace")
        case ("poisson", rate, ("gaussian", z)):
            mixture = ((1 - rate, 0.0), (rate, _shift(1, z)))
            return GaussianMixtures(mixture, ((1.0, 0.0),)), POISSON.format("Gaussian")
        case ("poisson", rate, ("laplace", scale)):
            return SampledLaplace(_shift(1, scale), rate), POISSON.format("Laplace")
        case ("group", rate, size, ("gaussian", z)) if relation != "replace" and rate < 1:
            mu, joins = _shift(size, z) / size, arb(rate)
            chances = [math.comb(size, j) * joins**j * (1 - joins) ** (size - j) for j in range(size + 1)]
            listed = [(middle(chance), j * mu) for j, chance in enumerate(chances) if j == 0 or chance > UNLISTED]
            return GaussianMixtures(tuple(listed), ((1.0, 0.0),), unlisted=1.01 * size * UNLISTED), GROUP
        case _:
            words = " ".join(str(part) for part in step if isinstance(part, str | tuple))
            raise UnknownEvent(f"No dominating pair is built in for {words} under the relation {relation}.")


def _gaussian(mu: float) -> GaussianMixtures:
    return GaussianMixtures(p=((1.0, _shift(mu, 1.0)),), q=((1.0, 0.0),))


def _shift(factor: float, scale: float) -> float:
    if factor > LARGEST_SHIFT * scale:
        raise UnknownEvent(f"Noise of {scale / factor:.3g} sensitivities is too small for this checker's lattice.")
    return factor / scale
