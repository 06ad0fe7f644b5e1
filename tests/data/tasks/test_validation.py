"""A validation split: a share of each client's training examples, which nobody trains on and no test example is in."""

from pathlib import Path
from typing import Any

import pytest
import torch

from discreet.data.partition import Iid, OverlappingSplit
from discreet.data.tables.table_task import TableTask, clients_from_csv
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.data.tasks.from_datasets import clients_from_datasets
from discreet.data.tasks.task import Task, training_size
from discreet.errors import InvalidInput
from discreet.paths import Paths

RANGES = {"age": {"min": 0, "max": 100}, "ill": {"values": ["no", "yes"]}}
FACT = "25% of each client's training examples are held out for validation."


def numbered_task(sizes: tuple[int, ...], **more: Any) -> Task:
    """Return a task whose inputs are 0, 1, 2, …, and whose test inputs are negative."""
    inputs = torch.arange(float(sum(sizes)))[:, None]
    test = (-1 - torch.arange(3.0)[:, None], torch.zeros(3, dtype=torch.int64))
    return clients_from_arrays(inputs, torch.zeros(len(inputs), dtype=torch.int64), sizes=sizes, test=test, **more)


def training_inputs(task: Task, client: int) -> set[float]:
    start, size = task.train.starts[client], task.train.sizes[client]
    return set(task.train.examples_at(torch.arange(start, start + size))[0].flatten().tolist())


def validation_inputs(task: Task) -> set[float]:
    assert task.validation is not None
    return set(task.validation[0].flatten().tolist())


def write_table(folder: Path, name: str, rows: int, clients: int = 2) -> Path:
    lines = [f"{'abc'[row % clients]},{row},{'yes' if row % 3 else 'no'}" for row in range(rows)]
    (folder / name).write_text("\n".join(["ward,age,ill", *lines]) + "\n")
    return folder / name


def test_a_share_of_each_client_is_held_out_and_the_clients_are_smaller_by_it():
    before, task = numbered_task((8, 4, 3)), numbered_task((8, 4, 3), validation_fraction=0.25)
    held_out = validation_inputs(task)
    assert task.train.sizes == task.train.population.examples == (6, 3, 3)
    for client in range(3):
        kept = training_inputs(task, client)
        assert not kept & held_out
        assert kept | held_out >= training_inputs(before, client)
    assert len(held_out) == 3
    assert torch.equal(task.test_inputs, before.test_inputs)
    assert not held_out & set(task.test_inputs.flatten().tolist())
    assert task.facts[-1] == FACT


def test_no_fraction_draws_nothing_and_holds_out_nothing():
    generator = torch.Generator().manual_seed(5)
    state, task = generator.get_state(), numbered_task((4, 4))
    assert task.hold_out_validation(0.0, generator) is task
    assert torch.equal(generator.get_state(), state)
    assert task.validation is None


def test_the_test_examples_and_the_partition_stay_as_they_are_without_a_split():
    without, task = (
        Digits(validation_fraction=share).load(torch.Generator().manual_seed(1), Paths.default()) for share in (0, 0.1)
    )
    assert torch.equal(without.test_inputs, task.test_inputs)
    assert without.train.order is not None
    assert task.train.order is not None
    assert set(task.train.order.tolist()) < set(without.train.order.tolist())
    assert sum(task.train.sizes) + len(validation_examples(task)) == sum(without.train.sizes)


def validation_examples(task: Task) -> torch.Tensor:
    assert task.validation is not None
    return task.validation[1]


@pytest.mark.parametrize("public", [None, 100])
def test_a_plan_without_torch_knows_the_smaller_clients(public: int | None):
    task = Digits(clients=7, validation_fraction=0.15, public_examples=public)
    population, data = task.describe()
    loaded = task.load(torch.Generator().manual_seed(0), Paths.default())
    assert population == loaded.train.population
    assert data.facts == loaded.facts
    assert data.has_validation
    assert data.distinct_examples == sum(loaded.train.sizes)


def test_a_table_is_split_in_three_parts_that_share_no_row(tmp_path: Path):
    path = write_table(tmp_path, "rows.csv", 90, clients=3)
    table = TableTask(
        kind="csv",
        path=str(path),
        client="ward",
        label="ill",
        ranges=RANGES,
        test_fraction=0.2,
        validation_fraction=0.25,
    )
    task = table.load(torch.Generator().manual_seed(0), Paths.default())
    parts = [*(training_inputs(task, client) for client in range(3)), validation_inputs(task)]
    parts.append(set(task.test_inputs.flatten().tolist()))
    assert [len(part) for part in parts] == [18, 18, 18, 18, 18]
    assert len(set().union(*parts)) == 90
    population, data = table.describe(Paths.default())
    assert population == task.train.population
    assert data.facts == task.facts
    assert FACT in task.facts
    assert task.facts.count(FACT) == 1


def test_validation_rows_may_be_a_file_that_needs_no_clients(tmp_path: Path):
    path = write_table(tmp_path, "rows.csv", 20)
    (tmp_path / "chosen.csv").write_text("ill,age\nyes,50\nno,100\n")
    arguments: dict[str, Any] = {"client": "ward", "label": "ill", "ranges": RANGES}
    task = clients_from_csv(path, **arguments, validation_path=tmp_path / "chosen.csv")
    assert task.validation is not None
    assert task.validation[0].flatten().tolist() == [0.0, 1.0]
    assert task.validation[1].tolist() == [1, 0]
    assert task.train.sizes == (8, 8)
    assert any("chosen.csv" in fact for fact in task.facts)
    with pytest.raises(InvalidInput, match="both are set"):
        clients_from_csv(path, **arguments, validation_path=tmp_path / "chosen.csv", validation_fraction=0.1)
    (tmp_path / "chosen.csv").write_text("age\n50\n")
    with pytest.raises(InvalidInput, match=r"chosen\.csv lacks the label, column 'ill'"):
        clients_from_csv(path, **arguments, validation_path=tmp_path / "chosen.csv")
    (tmp_path / "chosen.csv").write_text("age,ill\n")
    with pytest.raises(InvalidInput, match="has no rows"):
        clients_from_csv(path, **arguments, validation_path=tmp_path / "chosen.csv")


def test_clients_that_share_examples_cannot_hold_some_out():
    with pytest.raises(InvalidInput, match="one client would train on what another holds out"):
        numbered_task((4, 4), max_multiplicity=2, validation_fraction=0.5)
    inputs, targets = torch.zeros(12, 2), torch.arange(12) % 3
    examples = Examples("few", inputs, targets, inputs[:1], targets[:1], "classification", 3)
    with pytest.raises(InvalidInput, match="clients hold the same example"):
        examples.build_task(3, OverlappingSplit(fraction=0.9), torch.Generator().manual_seed(0), 0.2)
    assert examples.build_task(3, Iid(), torch.Generator().manual_seed(0), 0.25).train.sizes == (3, 3, 3)


def test_clients_that_are_too_small_are_told():
    with pytest.raises(
        InvalidInput, match=r"validation_fraction of 0\.1 holds out no example: the largest client has 4"
    ):
        numbered_task((4, 3), validation_fraction=0.1)
    with pytest.raises(InvalidInput, match="at least 0 and below 1, and got 1"):
        numbered_task((4, 3), validation_fraction=1)


def test_validation_examples_may_be_passed_in():
    more = torch.tensor([[7.0], [8.0]]), torch.tensor([0, 1])
    task = numbered_task((4, 3), classes=2, validation=more)
    assert validation_inputs(task) == {7.0, 8.0}
    assert task.train.sizes == (4, 3)
    data = torch.utils.data.TensorDataset
    same = clients_from_datasets([data(torch.zeros(2, 1), torch.tensor([0, 1]))], validation=data(*more), classes=2)
    assert validation_inputs(same) == {7.0, 8.0}
    with pytest.raises(InvalidInput, match="either passed in or a share"):
        numbered_task((4, 3), validation=more, validation_fraction=0.5)
    with pytest.raises(InvalidInput, match=r"A validation input has the shape \(2,\), and a training input \(1,\)"):
        numbered_task((4, 3), validation=(torch.zeros(1, 2), torch.tensor([0])))


def test_each_share_is_taken_of_what_is_left():
    assert training_size(10, 0.2) == 8
    assert training_size(10, 0.2, 0.25) == 6
    assert training_size(1, 0.9, 0.9) == 1
