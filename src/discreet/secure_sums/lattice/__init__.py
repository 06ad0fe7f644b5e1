"""Vectors on a lattice: rotate, scale, round, sum in a ring, and back."""

from discreet.secure_sums.lattice.grid import Grid, Load
from discreet.secure_sums.lattice.lattice_encoding import Encoding, flattened
from discreet.secure_sums.lattice.ring import centred, decoded, wrapped
from discreet.secure_sums.lattice.rotation import Rotation, padded
from discreet.secure_sums.lattice.rounding import (
    l1_of_integers,
    l2_after_rounding,
    l2_of_a_rounded_sum,
    rounded,
    rounded_within,
)
from discreet.secure_sums.lattice.scale import Plan, Scale, check, fewest_bits, fitted, wraparound_at

__all__ = [
    "Encoding",
    "Grid",
    "Load",
    "Plan",
    "Rotation",
    "Scale",
    "centred",
    "check",
    "decoded",
    "fewest_bits",
    "fitted",
    "flattened",
    "l1_of_integers",
    "l2_after_rounding",
    "l2_of_a_rounded_sum",
    "padded",
    "rounded",
    "rounded_within",
    "wraparound_at",
    "wrapped",
]
