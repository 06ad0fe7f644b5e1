"""Examples are divided among clients, and the card says what that used: labels, and overlapping clients."""

from dataclasses import replace

import pytest
import torch

from discreet.data.dirichlet_partition import Dirichlet
from discreet.data.federation import Federation
from discreet.data.partition import AnyPartition, ByGroup, Iid, OverlappingSplit, Shards, StratifiedSplit
from discreet.data.partition_contract import Labels
from discreet.data.tasks.examples import Examples
from discreet.data.tasks.task import Task
from discreet.errors import InvalidInput

EXAMPLES = Examples(
    name="loans",
    inputs=torch.zeros(12, 2),
    targets=torch.arange(12) % 3,
    test_inputs=torch.zeros(1, 2),
    test_targets=torch.zeros(1, dtype=torch.int64),
    kind="classification",
    classes=3,
    groups=torch.arange(12) % 2,
    group_names=("a", "b"),
    label="grade",
    not_covered=("Something else.",),
)


def deal(partition: AnyPartition) -> Task:
    return EXAMPLES.build_task(2, partition, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("partition", "how"), [(Shards(), "sorted into shards"), (Dirichlet(alpha=1.0), "a Dirichlet draw")]
)
def test_a_deal_by_label_is_not_covered_and_names_the_label(partition: AnyPartition, how: str):
    said = f"Which client holds which examples: they were assigned by their grade ({how})."
    assert deal(partition).not_covered == ("Something else.", said)


@pytest.mark.parametrize("partition", [Iid(), ByGroup(), OverlappingSplit(fraction=0.5)])
def test_a_deal_that_looks_at_no_label_says_nothing(partition: AnyPartition):
    assert deal(partition).not_covered == ("Something else.",)


def test_the_last_groups_are_set_apart_as_public_whole_and_nobody_gets_their_examples():
    task = EXAMPLES.with_public(2).build_task(1, ByGroup(), torch.Generator().manual_seed(0))
    assert task.public is not None
    assert (task.public.sizes, task.public.targets.tolist()) == ((6,), [1, 0, 2, 1, 0, 2])
    assert (task.client_names, task.train.targets.tolist()) == (("a",), [0, 2, 1, 0, 2, 1])


def test_where_nobody_is_known_the_last_examples_are_public():
    examples = replace(EXAMPLES, groups=None, inputs=torch.arange(24.0).reshape(12, 2)).with_public(5)
    assert examples.public is not None
    assert examples.public[0][:, 0].tolist() == [14, 16, 18, 20, 22]
    assert examples.inputs[:, 0].tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert EXAMPLES.with_public(None) is EXAMPLES
    assert deal(Iid()).public is None


@pytest.mark.parametrize(("groups", "count"), [(None, 12), (None, 99), (EXAMPLES.groups, 7)])
def test_not_all_examples_can_be_public(groups: torch.Tensor | None, count: int):
    with pytest.raises(InvalidInput, match=rf"Of 12 training examples {count} can't be public"):
        replace(EXAMPLES, groups=groups).with_public(count)


def test_public_examples_must_look_like_the_clients():
    one = Federation(torch.zeros(1, 3), torch.tensor([0]), (1,))
    with pytest.raises(InvalidInput, match=r"A public input has the shape \(3,\), and a training input \(2,\)"):
        replace(deal(Iid()), public=one)
    with pytest.raises(InvalidInput, match="the public labels are between 3 and 3"):
        replace(deal(Iid()), public=Federation(torch.zeros(1, 2), torch.tensor([3]), (1,)))


def test_clients_who_overlap_are_counted():
    assert deal(OverlappingSplit(fraction=1.0)).train.max_multiplicity == 2


NUMBERED = replace(  # 15 for training, then 5 for testing; each holds its own index, and each label occurs four times
    EXAMPLES,
    inputs=torch.arange(15.0)[:, None],
    targets=torch.arange(15) % 5,
    test_inputs=torch.arange(15.0, 20.0)[:, None],
    test_targets=torch.arange(5),
    classes=5,
    groups=None,
    group_names=(),
    test_fraction=0.2,
)


def test_a_test_fraction_deals_the_test_examples_out_too_and_holds_out_a_share_of_each_clients():
    task = NUMBERED.build_task(2, StratifiedSplit(), torch.Generator().manual_seed(0))
    assert task.train.sizes == (8, 8)
    inputs, targets = task.train.examples_at(torch.arange(16))
    seen = torch.cat([inputs, task.test_inputs]).flatten()
    assert sorted(seen.tolist()) == list(range(20))
    assert torch.equal(torch.cat([targets, task.test_targets]), seen.long() % 5)
    assert task.train.max_multiplicity == 1
    whole = replace(NUMBERED, test_fraction=None).build_task(2, Iid(), torch.Generator())
    assert whole.train.sizes == (8, 7)
    assert whole.test_inputs.flatten().tolist() == [15, 16, 17, 18, 19]


def test_every_client_has_its_own_share_among_the_test_examples_in_the_order_of_clients():
    hundred = replace(NUMBERED, inputs=torch.arange(95.0)[:, None], targets=torch.arange(95) % 5)
    merged = replace(hundred, test_inputs=torch.arange(95.0, 100.0)[:, None])
    for seed in range(5):
        task = merged.build_task(10, StratifiedSplit(), torch.Generator().manual_seed(seed))
        same = StratifiedSplit().split(Labels(torch.arange(100) % 5), 10, torch.Generator().manual_seed(seed)).parts
        for held, own in zip(task.test_inputs.flatten().split(2), same, strict=True):
            assert set(held.tolist()) <= set(own.tolist())


def test_the_card_says_how_the_test_examples_were_dealt():
    merged = "The official test examples are assigned to clients with the others"
    assert (
        f"{merged}, and 20% of each client's examples are held out for evaluation."
        in NUMBERED.build_task(2, Iid(), torch.Generator()).facts
    )


def test_a_share_of_clients_who_overlap_or_of_unknown_owners_is_refused():
    with pytest.raises(InvalidInput, match="one client trains on what another holds out"):
        NUMBERED.build_task(2, OverlappingSplit(fraction=0.5), torch.Generator())
    with pytest.raises(InvalidInput, match="The groups of loans's test examples are not known"):
        replace(EXAMPLES, test_fraction=0.2).build_task(2, Iid(), torch.Generator())
