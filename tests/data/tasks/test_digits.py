"""The built-in digits: real data, no network, disjoint clients."""

import pytest
import torch
from sklearn.datasets import load_digits

from discreet.data.dirichlet_partition import Dirichlet
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput
from discreet.part import from_plain, to_plain
from discreet.paths import Paths


def load(task: Digits, seed: int = 0) -> Task:
    return task.load(torch.Generator().manual_seed(seed), Paths.default())


def all_examples(task: Task) -> torch.Tensor:
    """Return the examples of all clients, one client after the other."""
    return task.train.examples_at(torch.arange(sum(task.train.sizes)))[0]


def test_ten_clients_and_a_test_share_all_1797_digits():
    task = load(Digits())
    assert (task.kind, task.classes, task.input_shape) == ("classification", 10, (64,))
    assert len(task.train.sizes) == len(task.client_names) == 10
    assert sum(task.train.sizes) + len(task.test_inputs) == 1797
    assert len(task.test_inputs) == 359
    assert max(task.train.sizes) - min(task.train.sizes) <= 1


def test_no_digit_is_both_trained_and_tested_on():
    task = load(Digits())
    known = torch.from_numpy(load_digits().data).to(torch.float32)
    seen = torch.cat([task.train.inputs, task.test_inputs])
    assert sorted(map(tuple, known.tolist())) == sorted(map(tuple, ((seen + 0.3) * 16).round().tolist()))


def test_pixels_are_scaled_by_public_constants_and_the_card_says_so():
    task = load(Digits())
    assert task.train.inputs.dtype == torch.float32
    assert float(task.train.inputs.min()) == pytest.approx(-0.3)
    assert float(task.train.inputs.max()) == pytest.approx(0.7)
    assert any("0.3" in fact and "public" in fact for fact in task.facts)
    assert task.not_covered == ()


def test_a_seed_gives_the_same_task_again():
    first, again, other = load(Digits()), load(Digits()), load(Digits(), seed=1)
    assert torch.equal(all_examples(first), all_examples(again))
    assert not torch.equal(all_examples(first), all_examples(other))


def test_clients_may_be_skewed_by_label():
    task = load(Digits(clients=5, partition=Dirichlet(alpha=0.05)))
    first = task.train.examples_at(torch.arange(task.train.sizes[0]))[1]
    assert len(first.unique()) < 10


def test_a_file_names_it_in_one_line():
    made = from_plain(AnyTask, {"kind": "digits", "clients": 3, "partition": "iid"})
    assert made == Digits(clients=3)
    assert from_plain(AnyTask, to_plain(made)) == made


@pytest.mark.parametrize("wrong", [{"clients": 1439}, {"test_fraction": 0.0001}])
def test_every_client_and_the_test_need_an_example(wrong: dict[str, float]):
    with pytest.raises(InvalidInput, match="1,797 examples"):
        load(from_plain(AnyTask, {"kind": "digits", **wrong}))
