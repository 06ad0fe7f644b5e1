"""Lending Club: the rate is predicted from what was known before it, and the card says what was fitted."""

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
import torch

from discreet.data.partition import ByGroup, Shards
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.lending_club import LendingClub
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths

ROW = {
    "issue_d": "2007-06",
    "loan_amnt": "500",
    "term": "36",
    "int_rate": "13.75",
    "emp_length": "< 1 year",
    "home_ownership": "RENT",
    "annual_inc": "1000",
    "verification_status": "Not Verified",
    "purpose": "car",
    "addr_state": "MA",
    "dti": "0",
    "delinq_2yrs": "0",
    "earliest_cr_line": "2007-06",
    "inq_last_6mths": "0",
    "mths_since_last_delinq": "0",
    "mths_since_last_record": "0",
    "open_acc": "0",
    "pub_rec": "0",
    "revol_bal": "0",
    "revol_util": "0",
    "total_acc": "0",
    "pub_rec_bankruptcies": "0",
}
HIGHEST = {
    "issue_d": "2011-12",
    "loan_amnt": "99999",
    "term": "60",
    "emp_length": "10+ years",
    "home_ownership": "NONE",
    "annual_inc": "1e9",
    "verification_status": "Verified",
    "purpose": "wedding",
    "earliest_cr_line": "1946-01",
    "revol_bal": "1e7",
    **{name: "999" for name, value in ROW.items() if value == "0" and name != "revol_bal"},
}


PROJECTED, WHOLE = LendingClub(reduction="projection"), LendingClub(reduction="none")
AMOUNTS = [{"loan_amnt": str(500 * n), "addr_state": "MACA"[n % 2 * 2 :][:2]} for n in range(20)]


def load(task: LendingClub, data: Path, seed: int = 0) -> Task:
    return task.load(torch.Generator().manual_seed(seed), Paths.default(data=data))


def write_own_file(tmp_path: Path, *rows: dict[str, str]) -> Path:
    """Write a user's own file, with its checksum."""
    text = "\n".join([",".join(ROW), *(",".join((ROW | row).values()) for row in rows)])
    folder = tmp_path / "lending-club"
    folder.mkdir()
    (folder / "loans_2007_2011.csv").write_text(text)
    (folder / "loans_2007_2011.csv.sha256").write_text(hashlib.sha256(text.encode()).hexdigest())
    return tmp_path


def encode(data: Path) -> torch.Tensor:
    task = load(LendingClub(clients=1, reduction="none", test_fraction=0.001), data)
    return task.train.inputs


@pytest.fixture(scope="module")
def loans(data_dir: Path) -> dict[str, Task]:
    """All loans, for each way to reduce their inputs."""
    return {made.reduction: load(made, data_dir) for made in (LendingClub(), PROJECTED, WHOLE)}


def error_of_least_squares(task: Task) -> float:
    ones, test_ones = torch.ones(len(task.train.inputs), 1), torch.ones(len(task.test_inputs), 1)
    inputs = torch.cat([task.train.inputs, ones], dim=1).double()
    weights = torch.linalg.lstsq(inputs, task.train.targets.double()[:, None], driver="gelsd").solution
    guessed = (torch.cat([task.test_inputs, test_ones], dim=1).double() @ weights)[:, 0]
    return float((guessed - task.test_targets).square().mean())


def test_loans_are_sorted_by_rate_into_clients(loans: dict[str, Task]):
    task = loans["pca"]
    assert (task.kind, task.classes, task.input_shape) == ("regression", 1, (10,))
    assert set(task.train.sizes) == {3402, 3403}
    assert len(task.test_inputs) == 8507
    held = [task.train.examples_at(start + torch.arange(3402))[1] for start in task.train.starts]
    spans = sorted((float(own.min()), float(own.max())) for own in held)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_the_card_says_what_was_fitted_and_what_was_sorted(loans: dict[str, Task]):
    fitted, projected, whole = loans.values()
    assert "10 principal components and their mean were fitted on the clients' data" in fitted.not_covered[0]
    sorted_by = "Which client holds which examples: they were assigned by their interest rate (sorted into shards)."
    assert fitted.not_covered[1:] == projected.not_covered == whole.not_covered == (sorted_by,)
    assert not any("nothing was fitted" in fact for fact in fitted.facts)
    assert any("random matrix of a fixed seed: nothing was fitted" in fact for fact in projected.facts)
    assert any("loan_status" in fact and "grade" in fact and "month in which the loan" in fact for fact in fitted.facts)
    assert fitted.facts[0].startswith("Lending Club's loans of 2007 to 2011 are public data")
    assert (projected.input_shape, whole.input_shape) == ((10,), (39,))


def test_ten_components_explain_a_good_part_of_the_rate(loans: dict[str, Task]):
    """Least squares: 7.4 by ten components, 8.0 by ten projections, 5.6 by all; 13.6 by the mean alone."""
    assert [error_of_least_squares(task) for task in loans.values()] == pytest.approx([7.4, 8.0, 5.6], abs=0.1)


def test_states_are_natural_clients(tmp_path: Path):
    task = load(LendingClub(clients=None, partition=ByGroup(), reduction="none"), write_own_file(tmp_path, *AMOUNTS))
    assert task.client_names == ("CA", "MA")
    assert sum(task.train.sizes) == 16
    assert task.facts[0].startswith("loans_2007_2011.csv is from the data's owner, who vouches")
    assert not any("public data" in fact for fact in task.facts)


def test_bounds_are_public_and_what_lies_outside_is_moved_to_them(tmp_path: Path):
    low, high = encode(write_own_file(tmp_path, {}, HIGHEST))
    assert low[:17].tolist() == [-1] * 17
    assert high[:17].tolist() == pytest.approx([1] * 17)
    assert low[17:].nonzero()[:, 0].tolist() == [0, 5, 8]
    assert high[17:].nonzero()[:, 0].tolist() == [4, 7, 21]


def test_what_is_missing_is_a_public_constant(tmp_path: Path):
    optional = {name: "" for name, value in ROW.items() if value == "0"}
    missing = encode(
        write_own_file(tmp_path, {**optional, "emp_length": "n/a", "annual_inc": "", "earliest_cr_line": ""})
    )[0]
    constants = {"annual_inc": "50000", "dti": "15", "mths_since_last_delinq": "120", "mths_since_last_record": "120"}
    constants |= {"open_acc": "10", "revol_util": "50", "total_acc": "25", "earliest_cr_line": "1992-06"}
    (tmp_path / "other").mkdir()
    assert torch.equal(missing, encode(write_own_file(tmp_path / "other", constants))[0])


@pytest.mark.parametrize("reduction", ["pca", "projection", "none"])
def test_a_seed_gives_the_same_task_again(reduction: Literal["pca", "projection", "none"], tmp_path: Path):
    data, made = write_own_file(tmp_path, *AMOUNTS), LendingClub(clients=2, reduction=reduction, components=2)
    first, again, other = (load(made, data, seed) for seed in (0, 0, 1))
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert not torch.equal(first.train.inputs, other.train.inputs)


def test_a_file_names_it_in_one_line():
    made = from_plain(
        AnyTask, {"kind": "lending_club", "clients": 50, "partition": {"kind": "shards"}, "reduction": "none"}
    )
    assert made == LendingClub(clients=50, partition=Shards(), reduction="none")
    assert from_plain(AnyTask, to_plain(made)) == made


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"dti": "much"}, "dti must be numbers, and got 'much'"),
        ({"emp_length": "ages"}, "emp_length must be numbers, and got 'ages'"),
        ({"issue_d": "June"}, "a date must be a year and a month such as 2007-06, and got 'June'"),
        ({"purpose": "boat"}, "purpose must be one of .* and 9 others, and got 'boat'"),
        ({"int_rate": ""}, "targets contain NaN"),
        ({"dti": "1,2"}, "must have rows, all of 22 cells"),
    ],
)
def test_a_file_of_ones_own_is_checked(row: dict[str, str], sentence: str, tmp_path: Path):
    with pytest.raises(InvalidInput, match=sentence):
        encode(write_own_file(tmp_path, {}, row))


def test_more_components_than_there_are_inputs_or_loans_are_refused(tmp_path: Path):
    with pytest.raises(
        InvalidInput, match="components must be at most 16, because there are 39 inputs and 16 training"
    ):
        load(LendingClub(clients=2, components=40), write_own_file(tmp_path, *AMOUNTS))


def test_a_file_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(InvalidInput, match="lending_club is missing"):
        load(LendingClub(), tmp_path)
