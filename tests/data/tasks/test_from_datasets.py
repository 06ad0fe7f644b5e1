"""Datasets and data loaders become clients, or a sentence says why they can't; shared indices are counted."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

import discreet as d
from discreet.data.tasks import dataset_items
from discreet.data.tasks.from_datasets import clients_from_datasets
from discreet.errors import InvalidInput
from discreet.privacy import accountant
from discreet.privacy.events import GaussianNoise, PoissonSampled, Repeated


class Pairs(Dataset[Any]):
    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([(np.zeros(2), 1), (np.ones(2), 0)])


WHOLE = TensorDataset(torch.arange(12.0).reshape(6, 2), torch.tensor([0, 1, 0, 1, 0, 1]))


def test_one_dataset_a_client():
    known, other = (TensorDataset(torch.zeros(3, 2), torch.tensor([0, 1, 1])) for _ in range(2))
    task = clients_from_datasets([known, Pairs(([1.0, 2.0], 0))], classes=2, test=other, public=known, names=["x", "y"])
    assert (task.client_names, task.train.sizes) == (("x", "y"), (3, 1))
    assert task.train.inputs[3].tolist() == [1, 2]
    assert task.train.inputs.dtype == torch.float32
    assert len(task.test_inputs) == 3
    assert task.public is not None
    assert task.public.sizes == (3,)


@pytest.mark.parametrize(
    ("datasets", "sentence"),
    [
        ([], "no dataset"),
        ([Pairs()], "dataset 0 has none"),
        ([Pairs(1)], r"must be pairs \(input, target\), and item 0 is of the class int"),
        ([Pairs((1, 2, 3))], "item 0 is of the class tuple with 3 values"),
        ([Pairs({"image": [1.0], "label": 1})], "item 0 is of the class dict with 2 values. Return `input, target`"),
        ([Pairs(("text", 1))], "with numbers in both.*transform"),
        ([Pairs(([1.0], None))], "with numbers in both"),
        ([Pairs(([1.0], 0), ([1.0, 2.0], 0))], r"differ in shape: .* has \(1,\), and number 1 of dataset 0 has \(2,\)"),
        ([Pairs(([1.0], 0)), Pairs(([1.0, 2.0], 0))], "number 0 of dataset 1"),
        (
            [Pairs(([1.0], 0)), Pairs(([1.0], 0.5))],
            "targets differ in type: .* is a whole number, and number 0 of data",
        ),
        ([Stream()], "Dataset 0 is an IterableDataset, whose items have no index"),
        ([DataLoader(Stream())], "Dataset 0 is an IterableDataset"),
        (WHOLE, "must be a list with one dataset for each client, and got an object of the class TensorDataset"),
        (DataLoader(WHOLE), "must be a list with one dataset for each client.*class DataLoader.*random_split"),
        ({"a": WHOLE}, r"must be a list, and got a mapping. Pass list\(datasets.values\(\)\), names=list\(datasets\)"),
        (["train"], "Dataset 0 must be a torch Dataset or DataLoader, and got an object of the class str"),
        ([3], "Dataset 0 must be a torch Dataset or DataLoader, and got an object of the class int"),
        (3, "must be a list"),
    ],
)
def test_datasets_that_do_not_fit_are_refused(datasets: Any, sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        clients_from_datasets(datasets)


def mixup(batch: list[Any]) -> Any:
    return batch


class DoubleLoader(DataLoader[Any]):
    def __iter__(self) -> Any:
        return itertools.chain(super().__iter__(), super().__iter__())


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(WHOLE, batch_size=4),
        DataLoader(WHOLE, batch_size=4, shuffle=True, drop_last=True),
        DataLoader(WHOLE, batch_size=None),
        DataLoader(WHOLE, sampler=SequentialSampler(WHOLE)),
        DataLoader(WHOLE, batch_sampler=BatchSampler(RandomSampler(WHOLE), 4, drop_last=False)),
    ],
    ids=["plain", "shuffled", "without batches", "sampler", "batch sampler"],
)
def test_a_loader_is_read_by_index_from_its_dataset(loader: DataLoader[Any]):
    with pytest.warns(UserWarning, match="6 of 6 test examples are also training examples"):
        task = clients_from_datasets([loader], classes=2, test=loader)
    assert torch.equal(task.train.inputs, WHOLE.tensors[0])
    assert torch.equal(task.test_targets, WHOLE.tensors[1])


@pytest.mark.parametrize(
    ("loader", "sentence"),
    [
        (DataLoader(WHOLE, sampler=WeightedRandomSampler([1.0] * 6, 6)), r"\(WeightedRandomSampler\).*by their index"),
        (
            DataLoader(WHOLE, sampler=SubsetRandomSampler([0, 1])),
            r"\(SubsetRandomSampler\).*Subset\(dataset, indices\)",
        ),
        (DataLoader(WHOLE, sampler=RandomSampler(WHOLE, replacement=True)), r"own \(RandomSampler\)"),
        (DataLoader(WHOLE, sampler=RandomSampler(WHOLE, num_samples=3)), r"own \(RandomSampler\)"),
        (DataLoader(WHOLE, batch_sampler=[[0, 1], [2]]), r"own \(list\)"),
        (DataLoader(WHOLE, collate_fn=mixup), r"collate_fn of its own \(mixup\), which may mix the examples"),
        (DoubleLoader(WHOLE), r"class reads in its own way \(DoubleLoader\)"),
    ],
)
def test_a_loader_that_draws_or_joins_examples_in_its_own_way_is_refused(loader: DataLoader[Any], sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        clients_from_datasets([loader])
    with pytest.raises(InvalidInput, match=sentence):
        clients_from_datasets([WHOLE], test=loader)


def test_each_item_is_read_once_so_a_random_augmentation_is_drawn_once():
    class CountedPairs(Pairs):
        reads = 0

        def __getitem__(self, index: int) -> Any:
            self.reads += 1
            return [float(self.reads)], 0

    dataset = CountedPairs(1, 2, 3)
    task = clients_from_datasets([dataset], classes=2)
    assert dataset.reads == 3
    assert task.train.inputs[:, 0].tolist() == [1, 2, 3]


def test_examples_that_do_not_fit_into_memory_are_refused_after_the_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dataset_items, "_free_memory", lambda: 90)
    sentence = r"6 examples like the first one need about 0.1 kB of memory, and 0.1 kB is free"
    with pytest.raises(InvalidInput, match=sentence):  # two floats of 4 bytes and a label of 8: 96 bytes
        clients_from_datasets([WHOLE])


def test_the_bar_says_how_much_memory_the_examples_need(capsys: pytest.CaptureFixture[str]):
    big = TensorDataset(torch.zeros(600, 1000), torch.zeros(600, dtype=torch.int64))
    clients_from_datasets(random_split(big, [300, 300]), progress=True)
    assert "reading 600 examples (about 2.4 MB)" in capsys.readouterr().err
    clients_from_datasets([WHOLE])
    assert capsys.readouterr().err == ""


OVERLAPS = pytest.mark.parametrize(
    ("datasets", "clients"),
    [
        ([WHOLE, WHOLE], 2),
        ([Subset(WHOLE, [0, 1]), Subset(WHOLE, [1, 2]), Subset(WHOLE, [1])], 3),
        ([WHOLE, Subset(WHOLE, [5])], 2),
        ([Subset(Subset(WHOLE, [4, 5]), [0]), Subset(WHOLE, [-2])], 2),
        ([ConcatDataset([Subset(WHOLE, [0]), Subset(WHOLE, [1])]), Subset(WHOLE, [1])], 2),
        ([Subset(WHOLE, torch.tensor([0, 1]).tolist()), Subset(WHOLE, np.array([1]).tolist())], 2),
        ([DataLoader(Subset(WHOLE, [0, 1])), DataLoader(Subset(WHOLE, [1, 2]), shuffle=True)], 2),
    ],
    ids=[
        *("the same twice", "three subsets", "whole and part", "a part's part", "joined parts", "indices of any kind"),
        "loaders",
    ],
)


@OVERLAPS
def test_indices_that_clients_share_are_counted_and_the_card_says_so(datasets: list[Any], clients: int):
    task = clients_from_datasets(datasets, classes=2)
    assert task.train.population.max_multiplicity == clients
    assert f"up to {clients} clients hold the same example, and the guarantee counts all" in " ".join(task.facts)


@OVERLAPS
def test_an_example_that_is_seen_in_more_clients_than_declared_is_refused(datasets: list[Any], clients: int):
    with pytest.raises(
        InvalidInput, match=rf"{clients} datasets contain the same example .* max_multiplicity={clients}"
    ):
        clients_from_datasets(datasets, classes=2, max_multiplicity=clients - 1)
    task = clients_from_datasets(datasets, classes=2, max_multiplicity=clients + 1)
    assert task.train.population.max_multiplicity == clients + 1
    # It is declared, so the card lists it among the owner's declarations.
    assert not any("hold the same example" in fact for fact in task.facts)


def test_parts_of_one_dataset_without_a_common_item_are_disjoint():
    task = clients_from_datasets([Subset(WHOLE, [0, 2, 4]), Subset(WHOLE, [1, 3])], classes=2)
    assert task.train.sizes == (3, 2)
    assert task.train.population.max_multiplicity == 1
    assert "No item of a dataset is in two clients" in " ".join(task.facts)


class Wrapper(Dataset[Any]):
    """A wrapper as many programs have it: each item of another dataset, changed."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        inputs, target = self.dataset[index]
        return 2 * inputs, target


def test_wrappers_of_one_dataset_share_its_items():
    whole = TensorDataset(torch.rand(6, 2), torch.tensor([0, 1] * 3))
    assert clients_from_datasets([Wrapper(whole), Wrapper(whole)], classes=2).train.max_multiplicity == 2
    halves = [Wrapper(Subset(whole, range(4))), Wrapper(Subset(whole, range(3, 6)))]
    assert clients_from_datasets(halves, classes=2).train.max_multiplicity == 2
    apart = [Wrapper(Subset(whole, range(3))), Wrapper(Subset(whole, range(3, 6)))]
    assert clients_from_datasets(apart, classes=2).train.max_multiplicity == 1


def test_the_card_says_that_other_wrappers_were_not_looked_into():
    whole = TensorDataset(torch.rand(6, 2), torch.tensor([0, 1] * 3))
    task = clients_from_datasets([Subset(whole, [0, 1]), Subset(whole, [2, 3])], classes=2)
    assert "other wrappers of one dataset, and copies of examples, were not looked for" in " ".join(task.facts)


def test_a_client_who_holds_an_example_twice_is_refused_whatever_is_declared():
    with pytest.raises(InvalidInput, match="Dataset 1 contains item 3 of its underlying dataset 2 times"):
        clients_from_datasets([Subset(WHOLE, [0]), Subset(WHOLE, [3, 3])], classes=2, max_multiplicity=5)


@pytest.mark.parametrize(("split", "times"), [(([0, 1, 2], [3, 4, 5]), 1), (([0, 1, 2], [2, 3, 4]), 2)])
def test_an_example_in_two_subsets_counts_twice_in_the_composition(
    split: tuple[list[int], list[int]], times: int, tmp_path: Path
):
    """Each client that holds the example releases a noisy sum of its own in every round: 2 rounds, `times` releases."""
    run = d.train(
        torch.nn.Linear(2, 2),
        clients_from_datasets([Subset(WHOLE, indices) for indices in split], classes=2),
        rounds=2,
        algorithm=d.pfl(local_steps=1, sampling_rate=0.5, clip_norm=1.0, learning_rate=0.1, noise_multiplier=3.0),
        out=tmp_path / "run",
    )
    one_release = PoissonSampled(sampling_rate=0.5, event=GaussianNoise(noise_multiplier=3.0))
    expected = accountant.epsilon(Repeated(count=2 * times, event=one_release), run.guarantee.delta, "zero_out")
    card = next(card for card in run.guarantees if (card.unit, card.view) == ("example", "server"))
    assert card.epsilon == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("use", ["test", "validation"])
def test_held_out_items_that_a_client_trains_on_are_warned_of(use: str):
    clients = [Subset(WHOLE, [0, 1]), Subset(WHOLE, [2, 3])]
    held_out: dict[str, Any] = {use: Subset(WHOLE, [3, 0, 5])}
    with pytest.warns(UserWarning, match=f"2 of 3 {use} examples are also training examples of a client"):
        task = clients_from_datasets(clients, classes=2, **held_out)
    assert task.train.sizes == (2, 2)


def test_held_out_items_that_no_client_has_are_not_warned_of():
    clients = [Subset(WHOLE, [0, 1]), Subset(WHOLE, [2, 3])]
    assert len(clients_from_datasets(clients, classes=2, test=Subset(WHOLE, [4, 5])).test_inputs) == 2


def test_two_clients_of_one_name_are_refused():
    with pytest.raises(InvalidInput, match="Two clients have the name 'north'"):
        clients_from_datasets([Subset(WHOLE, [0]), Subset(WHOLE, [1])], classes=2, names=["north", "north"])


def test_a_share_that_leaves_nothing_is_refused_by_its_name():
    with pytest.raises(InvalidInput, match="validation_fraction must be at least 0 and below 1, and got 1"):
        clients_from_datasets([WHOLE], classes=2, validation_fraction=1.0)
