"""The fields that all data sets of images have whose examples are assigned to clients."""

from dataclasses import dataclass

from discreet.data.partition import AnyPartition, Iid
from discreet.part import Count, Share


@dataclass(frozen=True, kw_only=True)
class ImageTask:
    """How the examples of a data set of images are assigned to clients.

    Attributes:
        clients: Number of clients. Only a partition by group can do without it.
        partition: How examples are assigned to clients.
        validation_fraction: The share of each client's training examples that is held out for choosing settings.
        public_examples: Number of examples, from the end, that are public and belong to no client.
    """

    kind: str
    clients: Count | None = 10
    partition: AnyPartition = Iid()  # noqa: RUF009 - a frozen record
    validation_fraction: Share = 0.0
    public_examples: Count | None = None
