"""Partitions have the promised overlap, size and skew; Dirichlet's skew is that of its alpha."""

import math
from typing import Literal, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from discreet.data.dirichlet_partition import Dirichlet
from discreet.data.partition import AnyPartition, ByGroup, Iid, OverlappingSplit, Shards, StratifiedSplit
from discreet.data.partition_contract import Labels
from discreet.errors import InvalidInput
from discreet.part import from_plain, part, to_plain


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


alphas = st.floats(1e-4, 1e4)  # far beyond practical values
partitions = st.one_of(
    st.just(Iid()),
    st.just(StratifiedSplit()),
    st.builds(Dirichlet, alpha=alphas, sizes=st.sampled_from(["free", "equal"])),
    st.just(ByGroup()),
    st.builds(Shards, per_client=st.integers(1, 3)),
    st.builds(OverlappingSplit, fraction=st.floats(1e-300, 1)),
)
EXAMPLE = [
    Iid(),
    StratifiedSplit(),
    Dirichlet(alpha=0.3),
    Dirichlet(alpha=0.3, sizes="equal"),
    ByGroup(),
    Shards(),
    Shards(per_client=3),
    OverlappingSplit(),
]


def label_pairs(targets: list[int]) -> Labels:
    """Targets with two examples in each group; the second group is e, the first z, so names are not sorted."""
    groups = torch.arange(len(targets)) // 2
    return Labels(torch.tensor(targets), groups, tuple(f"{'ze'[n % 2]}{n}" for n in range(int(groups.max()) + 1)))


def test_every_partition_is_held_to_the_contract():
    union = get_args(get_args(AnyPartition)[0])
    assert {type(partition) for partition in EXAMPLE} == set(union)


@given(partitions, st.lists(st.integers(0, 9), min_size=3, max_size=80), st.data())
def test_no_client_is_empty_and_none_holds_an_example_twice(
    partition: AnyPartition, targets: list[int], data: st.DataObject
):
    labels = label_pairs(targets)
    clients = data.draw(st.integers(1, len(targets) // 3))
    split = partition.split(labels, clients, generator(data.draw(st.integers(0, 2**32))))
    assert len(split.parts) == clients
    assert all(len(own) == len(own.unique()) > 0 for own in split.parts)
    assert all(0 <= int(own.min()) <= int(own.max()) < len(targets) for own in split.parts)
    dealt = torch.cat(split.parts)
    if partition.is_disjoint:
        assert len(dealt.unique()) == len(dealt)
    if isinstance(partition, Iid | StratifiedSplit | Dirichlet | Shards):  # the others may omit some
        assert sorted(dealt.tolist()) == list(range(len(targets)))


@pytest.mark.parametrize("partition", EXAMPLE)
def test_the_same_generator_gives_the_same_split(partition: AnyPartition):
    labels = label_pairs([number % 7 for number in range(100)])

    def split(seed: int) -> tuple[list[list[int]], tuple[str, ...] | None]:
        parts, names = partition.split(labels, 5, generator(seed))
        return [own.tolist() for own in parts], names

    assert split(3) == split(3)
    assert split(3) != split(4)


@given(
    st.sampled_from(
        [Iid(), StratifiedSplit(), Dirichlet(alpha=0.01, sizes="equal"), Dirichlet(alpha=100, sizes="equal"), Shards()]
    ),
    st.lists(st.integers(0, 4), min_size=1, max_size=120),
    st.data(),
)
def test_equal_sizes_differ_by_one_example_at_most(partition: AnyPartition, targets: list[int], data: st.DataObject):
    clients = data.draw(st.integers(1, len(targets)))
    sizes = [len(own) for own in partition.split(label_pairs(targets), clients, generator()).parts]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == len(targets)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=120), st.data())
def test_stratified_clients_differ_by_one_example_of_a_label_at_most(targets: list[int], data: st.DataObject):
    labels, clients = label_pairs(targets), data.draw(st.integers(1, len(targets)))
    parts = StratifiedSplit().split(labels, clients, generator()).parts
    held = torch.stack([torch.bincount(labels.targets[own], minlength=5) for own in parts])
    assert int((held.max(dim=0).values - held.min(dim=0).values).max()) <= 1


def test_shares_of_several_targets_are_refused():
    with pytest.raises(InvalidInput, match="one target per example"):
        StratifiedSplit().split(Labels(torch.zeros(3, 2)), 2, generator())


def test_by_group_makes_every_group_a_client_under_its_name():
    labels = Labels(torch.zeros(5), torch.tensor([2, 0, 2, 1, 0]), ("Ohio", "Iowa", "Utah"))
    parts, names = ByGroup().split(labels, None, generator())
    assert [own.tolist() for own in parts] == [[1, 4], [3], [0, 2]]
    assert names == ("Ohio", "Iowa", "Utah")


def test_by_group_draws_so_many_groups_at_random_and_leaves_the_others_out():
    labels = Labels(torch.zeros(5), torch.tensor([2, 0, 2, 1, 0]), ("Ohio", "Iowa", "Utah"))
    drawn = [ByGroup().split(labels, 2, generator(seed)).names for seed in range(60)]
    assert set(drawn) == {("Ohio", "Iowa"), ("Ohio", "Utah"), ("Iowa", "Utah")}  # missing one: 3·(2/3)^60 = 8e-11


def test_by_group_passes_over_groups_without_examples():
    labels = Labels(torch.zeros(2), torch.tensor([2, 0]), ("Ohio", "Iowa", "Utah", "Guam"))
    assert ByGroup().split(labels, None, generator()).names == ("Ohio", "Utah")
    with pytest.raises(InvalidInput, match="there are 2 groups for 3 clients"):
        ByGroup().split(labels, 3, generator())


def test_by_group_needs_groups():
    with pytest.raises(InvalidInput, match="needs data with groups"):
        ByGroup().split(Labels(torch.zeros(5)), None, generator())


def test_shards_sort_numbers_so_that_each_client_holds_neighbours():
    rates = torch.tensor([9.5, 6.0, 21.0, 7.5, 14.0, 8.0])
    held = [sorted(rates[own].tolist()) for own in Shards().split(Labels(rates), 3, generator()).parts]
    assert sorted(held) == [[6.0, 7.5], [8.0, 9.5], [14.0, 21.0]]


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32))
def test_a_client_of_two_shards_sees_few_labels(clients: int, per_client: int, seed: int):
    """Ten examples for each label and each shard: a shard is one label, so a client sees one label for each shard."""
    targets = torch.arange(clients * per_client).repeat(10)
    parts = Shards(per_client=per_client).split(Labels(targets), clients, generator(seed)).parts
    assert [len(targets[own].unique()) for own in parts] == [per_client] * clients


def test_shards_are_dealt_at_random_and_equal_targets_are_shuffled():
    targets = torch.arange(4).repeat_interleave(50)
    first, other = (Shards().split(Labels(targets), 4, generator(seed)).parts for seed in (0, 1))
    assert [int(targets[own][0]) for own in first] != [int(targets[own][0]) for own in other]
    parts = Shards().split(Labels(torch.zeros(100)), 2, generator()).parts
    assert parts[0].tolist() != sorted(parts[0].tolist())
    assert max(parts[0].tolist()) > 50 > min(parts[1].tolist())


@given(st.integers(1, 300), st.floats(1e-300, 1), st.integers(1, 5))
def test_overlapping_clients_hold_the_fraction_they_name(examples: int, fraction: float, clients: int):
    parts = OverlappingSplit(fraction=fraction).split(Labels(torch.zeros(examples)), clients, generator()).parts
    assert [len(own.unique()) for own in parts] == [len(own) for own in parts]
    assert {len(own) for own in parts} == {max(1, math.floor(fraction * examples))}


def test_overlapping_clients_draw_independently():
    """Two halves of 10,000 share 2,500 on average; being off by 250 has a probability below 1e-20 (Serfling 1974)."""
    first, second = OverlappingSplit(fraction=0.5).split(Labels(torch.zeros(10_000)), 2, generator()).parts
    assert abs(int(torch.isin(first, second).sum()) - 2500) < 250


def concentration(partition: Dirichlet, labels: Tensor, clients: int) -> Tensor:
    """Σ_k p_k² over the clients' fractions of each label, one value for each label."""
    counts = torch.stack(
        [
            torch.bincount(labels[own], minlength=int(labels.max()) + 1)
            for own in partition.split(Labels(labels), clients, generator()).parts
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


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_with_equal_sizes_each_clients_own_labels_have_that_skew(alpha: float):
    """Of n draws n_c have label c, and Σ n_c(n_c-1)/(n(n-1)) has the mean (alpha+1)/(C·alpha+1): as above, per client.

    It lies in [0, 1], so the mean over K clients strays past `bound` with probability 5e-7 at most (Hoeffding). The
    share f of draws that find their label run out moves it by 2f at most. f is half of Σ_c |demand - supply| over
    K·n, so its mean is at most ½·sqrt(C/K); one client moves it by 1/K, so it strays past `redrawn` with probability
    5e-7 at most (McDiarmid). Power: the closest other alpha lies 0.073 away, more than twice the tolerance (0.0715),
    so it would be told apart with probability 1 - 1e-6 at least.
    """
    kinds, each, clients = 10, 10, 100_000
    labels = torch.arange(kinds).repeat(each * clients // kinds)
    parts = Dirichlet(alpha=alpha, sizes="equal").split(Labels(labels), clients, generator()).parts
    counts = torch.nn.functional.one_hot(labels[torch.stack(parts)], kinds).sum(dim=1).double()
    same = (counts * (counts - 1)).sum(dim=1) / (each * (each - 1))
    bound = math.sqrt(math.log(4e6) / (2 * clients))
    redrawn = 0.5 * math.sqrt(kinds / clients) + math.sqrt(math.log(2e6) / (2 * clients))
    assert abs(float(same.mean()) - (alpha + 1) / (kinds * alpha + 1)) <= bound + 2 * redrawn


def test_with_equal_sizes_the_mixtures_keep_to_how_frequent_labels_are():
    """One label has 90 % of all examples: with a large alpha every client gets nine of ten."""
    labels = (torch.arange(100_000) % 10 == 0).to(torch.int64)
    parts = Dirichlet(alpha=1e6, sizes="equal").split(Labels(labels), 10, generator()).parts
    assert [float(labels[own].double().mean()) for own in parts] == pytest.approx([0.1] * 10, abs=0.02)


def test_a_large_alpha_is_nearly_iid_and_a_small_one_gives_each_label_to_one_client():
    labels = torch.arange(20).repeat_interleave(100)
    assert float(concentration(Dirichlet(alpha=1e6), labels, 4).mean()) == pytest.approx(0.25, abs=0.005)
    assert float(concentration(Dirichlet(alpha=1e-3), labels, 4).mean()) > 0.95


@part
class Holder:
    partition: AnyPartition = Iid()


def test_a_word_is_short_for_a_partition_without_numbers():
    assert from_plain(Holder, {"partition": "iid"}) == Holder()
    assert from_plain(Holder, {"partition": {"kind": "dirichlet", "alpha": 0.5}}) == Holder(
        partition=Dirichlet(alpha=0.5)
    )
    assert from_plain(Holder, {"partition": "by_group"}) == Holder(partition=ByGroup())


@pytest.mark.parametrize("partition", EXAMPLE)
def test_a_partition_is_read_back_from_its_plain_data(partition: AnyPartition):
    assert from_plain(Holder, to_plain(Holder(partition=partition))) == Holder(partition=partition)


@pytest.mark.parametrize(
    "wrong",
    [
        "dirichlet",
        "sorted",
        {"kind": "dirichlet", "alpha": 0},
        {"kind": "dirichlet", "alpha": 1, "sizes": "same"},
        {"kind": "shards", "per_client": 0},
        {"kind": "overlapping", "fraction": 1.5},
        {"kind": "iid", "disjoint": False},
        {"alpha": 1},
        3,
    ],
)
def test_what_is_no_partition_is_refused(wrong: object):
    with pytest.raises(InvalidInput):
        from_plain(Holder, {"partition": wrong})


@pytest.mark.parametrize(
    "partition", [Iid(), StratifiedSplit(), Dirichlet(alpha=1.0), Dirichlet(alpha=1.0, sizes="equal"), Shards()]
)
def test_more_clients_than_examples_are_refused(partition: AnyPartition):
    with pytest.raises(InvalidInput, match="3 examples can't be assigned to 4 clients so that each gets one"):
        partition.split(Labels(torch.tensor([0, 1, 2])), 4, generator())


def test_more_shards_than_examples_are_refused():
    with pytest.raises(InvalidInput, match="3 examples can't be assigned to 2 clients so that each gets 2"):
        Shards(per_client=2).split(Labels(torch.tensor([0, 1, 2])), 2, generator())
    with pytest.raises(InvalidInput, match="one target per example"):
        Shards().split(Labels(torch.zeros(3, 2)), 2, generator())


@pytest.mark.parametrize("partition", [partition for partition in EXAMPLE if not isinstance(partition, ByGroup)])
def test_without_groups_the_number_of_clients_must_be_given(partition: AnyPartition):
    with pytest.raises(InvalidInput, match="the number of clients"):
        partition.split(Labels(torch.tensor([0, 1, 2])), None, generator())


@pytest.mark.parametrize("sizes", ["free", "equal"])
@pytest.mark.parametrize("alpha", [1e-300, 1e300])
def test_the_farthest_alphas_still_deal_everything_out(alpha: float, sizes: Literal["free", "equal"]):
    parts = Dirichlet(alpha=alpha, sizes=sizes).split(Labels(torch.arange(30) % 3), 4, generator()).parts
    assert sorted(torch.cat(parts).tolist()) == list(range(30))


def test_dirichlet_needs_class_labels():
    with pytest.raises(InvalidInput, match="iid"):
        Dirichlet(alpha=1.0).split(Labels(torch.tensor([0.5, 1.5])), 2, generator())
