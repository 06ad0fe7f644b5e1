"""Encode vectors on a lattice (rotate, scale, round), sum them in a ring, and decode the sum."""

from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding, flatten_block
from discreet.secure_sums.lattice.ring import decode_sum, to_signed, wrap_into_ring
from discreet.secure_sums.lattice.rotation import Rotation, padded_dimension
from discreet.secure_sums.lattice.rounding import (
    l1_of_integers,
    l2_after_rounding,
    l2_of_rounded_sum,
    round_conditionally,
    round_stochastically,
)
from discreet.secure_sums.lattice.scale import (
    Scale,
    SumPlan,
    check_scale,
    fewest_bits,
    fit_scale,
    wraparound_probability,
)

__all__ = [
    "Encoding",
    "Grid",
    "Load",
    "Rotation",
    "Scale",
    "SumPlan",
    "check_scale",
    "decode_sum",
    "fewest_bits",
    "fit_scale",
    "flatten_block",
    "l1_of_integers",
    "l2_after_rounding",
    "l2_of_rounded_sum",
    "padded_dimension",
    "round_conditionally",
    "round_stochastically",
    "to_signed",
    "wrap_into_ring",
    "wraparound_probability",
]
