"""All cases, in the order of the page."""

from speed import averaging_cases, dp_sgd_cases, other_cases
from speed.case import Case

CASES: dict[str, Case] = {case.name: case for case in (*averaging_cases.CASES, *dp_sgd_cases.CASES, *other_cases.CASES)}
