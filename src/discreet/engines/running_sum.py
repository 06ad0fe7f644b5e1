"""The sum over a cohort as blocks of uploads arrive, in double precision and with what each addition rounds off."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.params import Params, map_params, sum_clients, zeros_like


@dataclass
class RunningSum:
    """Adds up blocks in their order. Its memory does not grow with their number.

    Guarantee: the rounding of all additions together is at most (b + 2)·2⁻⁵³ of the sum of all absolute values, where b
    is the number of rows in the largest block, up to terms of n²·2⁻¹⁰⁶ (docs/notes/numerics.md). Integers stay exact.

    Attributes:
        whole: The rounded sum; None before the first block.
        rest: What was rounded off.
    """

    whole: Params | None = None
    rest: Params | None = None

    def add(self, rows: Params) -> None:
        """Add the rows of a block: the sum with its error, by Knuth's TwoSum."""
        block = sum_clients(rows)
        if self.whole is None:
            self.whole = block
            return
        whole, self.whole = self.whole, map_params(lambda left, right: left + right, self.whole, block)
        self.rest = self.rest or zeros_like(block)
        for name, rest in self.rest.items():
            moved = self.whole[name] - whole[name]
            rest += whole[name] - (self.whole[name] - moved)
            rest += block[name] - moved

    def total(self) -> Params | None:
        """Return the sum of all blocks; None without one."""
        if self.whole is None or self.rest is None:
            return self.whole
        return {name: value + self.rest[name].nan_to_num(0.0, 0.0, 0.0) for name, value in self.whole.items()}
