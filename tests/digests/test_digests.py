"""Seeded runs leave the models, cards and ledger entries that are kept in `kept/`.

A change that is meant to change numbers rewrites them with `python -m tests.digests.keep`, and says so in its commit.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.verify.path_check import check_path
from tests.digests.cases import CASES, Case
from tests.digests.comparison import differences
from tests.digests.digest import Digest, digest_run
from tests.digests.keep import MACHINE, read_kept
from tests.digests.machine import describe_machine
from tests.digests.run import FinishedRun, run_case

RESUMED = [case for case in CASES if case.stop_after is not None]
FIX = "If this is meant: python -m tests.digests.keep, and say so in the commit."

CaseDigest = tuple[Case, Digest]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def case_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, FinishedRun]:
    case: Case = request.param
    return case, run_case(case, tmp_path_factory.mktemp(case.name))


@pytest.fixture(scope="module")
def case_digest(case_run: tuple[Case, FinishedRun]) -> CaseDigest:
    case, run = case_run
    return case, digest_run(run)


def check(case: Case, digest: Digest, *, exact: bool) -> None:
    changed = differences(read_kept(case.name), digest, exact=exact)
    assert not changed, "\n".join([f"{case.name} changed.", *changed, FIX])


def other_machine() -> list[str]:
    return differences(read_kept(MACHINE), describe_machine(), exact=True)


def test_a_run_leaves_the_numbers_that_are_kept_to_nine_digits(case_digest: CaseDigest) -> None:
    """The model's norm and projections, the card and the ledgers: on every machine."""
    check(*case_digest, exact=False)


def test_a_run_leaves_the_bits_that_are_kept(case_digest: CaseDigest) -> None:
    """Everything to the last bit, the model's hash included: on the kind of machine on which it was stored."""
    if changed := other_machine():
        pytest.skip(f"kept on another kind of machine, so only nine digits are compared: {'; '.join(changed)}")
    check(*case_digest, exact=True)


def test_the_checker_proves_every_card_of_a_run_and_finds_its_steps_in_the_ledger(
    case_run: tuple[Case, FinishedRun],
) -> None:
    for checked in check_path(case_run[1].record.path):
        assert (checked.word, checked.ledger) == ("proved", "agrees"), (checked.reason, checked.ledger_reason)


@pytest.mark.parametrize("case", RESUMED, ids=lambda case: case.name)
def test_a_run_that_was_never_stopped_leaves_what_the_resumed_one_left(case: Case, tmp_path: Path) -> None:
    check(case, digest_run(run_case(replace(case, stop_after=None), tmp_path)), exact=not other_machine())
