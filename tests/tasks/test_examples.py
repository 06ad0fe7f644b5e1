"""Examples are dealt out, and the card says what that took: labels, and clients who overlap."""

import pytest
import torch

from discreet.partition import AnyPartition, ByGroup, Dirichlet, Iid, Overlapping, Shards
from discreet.tasks import Task
from discreet.tasks.examples import Examples

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


def dealt(partition: AnyPartition) -> Task:
    return EXAMPLES.dealt(2, partition, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("partition", "how"), [(Shards(), "sorted into shards"), (Dirichlet(alpha=1.0), "a Dirichlet draw")]
)
def test_a_deal_by_label_is_not_covered_and_names_the_label(partition: AnyPartition, how: str):
    said = f"Who holds which examples: they were dealt out by their grade ({how})."
    assert dealt(partition).not_covered == ("Something else.", said)


@pytest.mark.parametrize("partition", [Iid(), ByGroup(), Overlapping(fraction=0.5)])
def test_a_deal_that_looks_at_no_label_says_nothing(partition: AnyPartition):
    assert dealt(partition).not_covered == ("Something else.",)


def test_clients_who_overlap_are_told():
    assert dealt(Overlapping(fraction=1.0)).facts == (
        "Clients overlap: one example lies in up to 2 of them, and the guarantee counts all of them.",
    )
