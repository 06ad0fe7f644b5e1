"""Twelve seeded runs leave the models, cards and ledger entries that are kept in `kept/`.

A change that is meant to change numbers rewrites them with `python -m tests.digests.keep`, and says so in its commit.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.digests.cases import CASES, Case
from tests.digests.comparison import differences
from tests.digests.digest import digest_run
from tests.digests.keep import MACHINE, read_kept
from tests.digests.machine import describe_machine
from tests.digests.run import run_case

RESUMED = [case for case in CASES if case.stop_after is not None]


def changes(case: Case, folder: Path) -> list[str]:
    """How the run differs from what is kept: to the last bit where the machine is alike, else beyond the tolerance."""
    found = digest_run(run_case(case, folder))
    return differences(read_kept(case.name), found, exact=read_kept(MACHINE) == describe_machine())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_run_leaves_the_model_the_card_and_the_ledger_that_are_kept(case: Case, tmp_path: Path) -> None:
    assert changes(case, tmp_path) == []


@pytest.mark.parametrize("case", RESUMED, ids=lambda case: case.name)
def test_a_run_that_was_never_stopped_leaves_what_the_resumed_one_left(case: Case, tmp_path: Path) -> None:
    assert changes(replace(case, stop_after=None), tmp_path) == []


def test_bits_are_compared_on_the_kind_of_machine_that_they_were_kept_on() -> None:
    """Elsewhere this is skipped, and says why; all other tests here still compare every number to nine digits."""
    changed = differences(read_kept(MACHINE), describe_machine(), exact=True)
    if changed:
        pytest.skip(f"bits were kept on another kind of machine, so numbers are compared to nine digits: {changed}")
