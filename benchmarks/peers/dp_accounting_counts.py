"""dp-accounting: repeated randomised response, and Gaussian noise if one unit is replaced."""

import dp_accounting as peer
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from peers.fault import Fault

DELTA = 1e-5
REPLACE = peer.NeighboringRelation.REPLACE_ONE


def measure() -> list[Fault]:
    """Compare the two accountants of the library with each other."""
    return [randomised_response(), replaced_unit()]


def randomised_response() -> Fault:
    """Compose a hundred coin flips by PLD."""
    flip = peer.RandomizedResponseDpEvent(noise_parameter=0.5, num_buckets=2)
    once, often = (PLDAccountant(REPLACE).compose(flip, times).get_epsilon(DELTA) for times in (1, 100))
    renyi = RdpAccountant(neighboring_relation=REPLACE).compose(flip, 100).get_epsilon(DELTA)
    singly = PLDAccountant(REPLACE).compose(peer.ComposedDpEvent([flip] * 100)).get_epsilon(DELTA)
    return Fault(
        library="dp-accounting",
        title="The PLD accountant ignores how often a randomised response is repeated.",
        expected=f"ε = {singly:.1f} for 100 responses, which the same accountant finds for a list of 100 single events "
        f"(Rényi: {renyi:.1f})",
        measured=f"{often:.4f}, the same as for one response ({once:.4f})",
        is_seen=often < 2 * once,
        remark="`SelfComposedDpEvent` and the argument `count` are both affected.",
        ours="A count is handled once, outside of the accountants (`privacy/events.py`, `steps`).",
    )


def replaced_unit() -> Fault:
    """Ask both accountants for one Gaussian release under the relation that replaces a unit."""
    noise = peer.GaussianDpEvent(1.0)
    exact = PLDAccountant(REPLACE).compose(noise).get_epsilon(DELTA)
    renyi = RdpAccountant(neighboring_relation=REPLACE).compose(noise).get_epsilon(DELTA)
    return Fault(
        library="dp-accounting",
        title="For Gaussian noise, the Rényi accountant prices a replaced unit as one that is added or removed.",
        expected=f"ε of at least the PLD accountant's {exact:.3f}",
        measured=f"{renyi:.3f}",
        is_seen=renyi < exact,
        remark="Both are right about what they call sensitivity, and they don't mean the same by it: PLD doubles it "
        "for the caller.",
        ours="An event is priced under its relation by every accountant; RDP below PLD is an error.",
    )
