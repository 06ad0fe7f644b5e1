"""How much noise each accountant asks for at one ε: what a tighter count is worth."""

import math
from collections.abc import Callable

from scipy import optimize

from discreet.planning.theory.kim_noise_bounds import Promise
from discreet.privacy import accountant, classical, rdp
from discreet.privacy.events import Event, sampled_gaussian, steps
from discreet.privacy.release import Relation

DELTA, SAMPLING_RATE, ROUNDS = 1e-5, 0.1, 100  # those of alike.toml, as a test holds
PROMISE = Promise(epsilon=1.0, delta=DELTA, sampling_rate=SAMPLING_RATE, rounds=ROUNDS)
RELATION: Relation = "add_or_remove"
LEAST, MOST = -1.0, 9.0  # logarithms of the noise that is looked at


def _classical(name: str) -> Callable[[Event], float]:
    return lambda event: classical.METHODS[name].epsilon(steps(event), DELTA, RELATION)


EPSILONS: dict[str, Callable[[Event], float]] = {
    "PLD (certified)": lambda event: accountant.epsilon(event, DELTA, RELATION),
    "RDP": lambda event: rdp.epsilon(event, DELTA, RELATION),
    "moments accountant": _classical("moments"),
    "advanced composition": _classical("advanced"),
    "basic composition": _classical("basic"),
}


def noise(name: str, epsilon: float) -> float:
    """The noise multiplier at which this accountant says `epsilon`; infinite where none is enough."""
    if _excess(name, math.exp(MOST), epsilon) > 0:
        return math.inf
    found: float = optimize.brentq(lambda log: _excess(name, math.exp(log), epsilon), LEAST, MOST, xtol=1e-6)
    return math.exp(found)


def _excess(name: str, noise_multiplier: float, epsilon: float) -> float:
    found = EPSILONS[name](sampled_gaussian(noise_multiplier, SAMPLING_RATE, ROUNDS))
    return math.log(found / epsilon)
