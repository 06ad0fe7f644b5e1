"""Partitions deal out everything once; Dirichlet's skew is the one its alpha names."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from discreet.errors import InvalidInput
from discreet.part import part, plain, read
from discreet.partition import AnyPartition, Dirichlet, Iid, Labels


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


partitions = st.one_of(
    st.just(Iid()),
    st.floats(1e-4, 1e4).map(lambda alpha: Dirichlet(alpha=alpha)),  # far past what anybody uses
)


@given(partitions, st.lists(st.integers(0, 9), min_size=1, max_size=80), st.data())
def test_clients_are_disjoint_cover_everything_and_none_is_empty(
    partition: Iid | Dirichlet, labels: list[int], data: st.DataObject
):
    clients = data.draw(st.integers(1, len(labels)))
    parts = partition.split(Labels(torch.tensor(labels)), clients, seeded(data.draw(st.integers(0, 2**32)))).parts
    assert len(parts) == clients
    assert all(len(own) for own in parts)
    assert sorted(torch.cat(parts).tolist()) == list(range(len(labels)))


@given(st.integers(1, 200), st.data())
def test_iid_clients_differ_by_one_example_at_most(examples: int, data: st.DataObject):
    clients = data.draw(st.integers(1, examples))
    sizes = [len(own) for own in Iid().split(Labels(torch.zeros(examples)), clients, seeded()).parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("partition", [Iid(), Dirichlet(alpha=0.3)])
def test_the_same_generator_gives_the_same_split(partition: Iid | Dirichlet):
    labels = torch.arange(100) % 7

    def split(seed: int) -> list[list[int]]:
        return [own.tolist() for own in partition.split(Labels(labels), 5, seeded(seed)).parts]

    assert split(3) == split(3)
    assert split(3) != split(4)


def concentration(partition: Dirichlet, labels: Tensor, clients: int) -> Tensor:
    """Σ_k p_k² over the clients' shares of each label, one value a label."""
    counts = torch.stack(
        [
            torch.bincount(labels[own], minlength=int(labels.max()) + 1)
            for own in partition.split(Labels(labels), clients, seeded()).parts
        ]
    ).double()
    return (counts / counts.sum(dim=0)).square().sum(dim=0)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_the_skew_is_the_one_that_alpha_names(alpha: float):
    """E Σ p² = (alpha+1)/(K·alpha+1): 0.55, 0.182 and 0.109 here.

    Each label's value lies in [0, 1], so by Hoeffding the mean of 8,000 strays past the bound with probability 1e-6
    at most. Power: another of the three alphas lies 0.073 away, more than twice the bound and the rounding (0.0702),
    so it would be told apart with probability 1 - 1e-6 at least.
    """
    kinds, each, clients = 8000, 200, 10
    labels = torch.arange(kinds).repeat_interleave(each)
    bound = math.sqrt(math.log(2e6) / (2 * kinds))
    rounding = 2 / each  # each share is off by one example at most
    expected = (alpha + 1) / (clients * alpha + 1)
    assert abs(float(concentration(Dirichlet(alpha=alpha), labels, clients).mean()) - expected) <= bound + rounding


def test_a_large_alpha_is_nearly_iid_and_a_small_one_gives_each_label_to_one_client():
    labels = torch.arange(20).repeat_interleave(100)
    assert float(concentration(Dirichlet(alpha=1e6), labels, 4).mean()) == pytest.approx(0.25, abs=0.005)
    assert float(concentration(Dirichlet(alpha=1e-3), labels, 4).mean()) > 0.95


@part
class Holder:
    partition: AnyPartition = Iid()


def test_a_word_is_short_for_a_partition_without_numbers():
    assert read(Holder, {"partition": "iid"}) == Holder()
    assert read(Holder, {"partition": {"kind": "dirichlet", "alpha": 0.5}}) == Holder(partition=Dirichlet(alpha=0.5))
    assert read(Holder, plain(Holder(partition=Dirichlet(alpha=2)))) == Holder(partition=Dirichlet(alpha=2))


@pytest.mark.parametrize("wrong", ["dirichlet", "sorted", {"kind": "dirichlet", "alpha": 0}, {"alpha": 1}, 3])
def test_what_is_no_partition_is_refused(wrong: object):
    with pytest.raises(InvalidInput):
        read(Holder, {"partition": wrong})


@pytest.mark.parametrize("partition", [Iid(), Dirichlet(alpha=1.0)])
def test_more_clients_than_examples_are_refused(partition: Iid | Dirichlet):
    with pytest.raises(InvalidInput, match="3 examples can't be dealt out to 4 clients"):
        partition.split(Labels(torch.tensor([0, 1, 2])), 4, seeded())


def test_dirichlet_needs_class_labels():
    with pytest.raises(InvalidInput, match="iid"):
        Dirichlet(alpha=1.0).split(Labels(torch.tensor([0.5, 1.5])), 2, seeded())
