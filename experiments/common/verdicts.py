"""A claim held against what was run, as a page says it."""

from typing import NamedTuple


class Verdict(NamedTuple):
    claim: str
    verdict: str
    numbers: str

    def line(self) -> str:
        return f"- {self.claim} **{self.verdict}.** {self.numbers}"
