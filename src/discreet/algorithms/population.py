"""Public facts about the clients. The card lists them as public."""

from discreet.part import Count, Index, part


@part
class Population:
    """The clients' data sizes.

    Attributes:
        examples: Number of examples of each client.
        max_multiplicity: Number of clients that may hold the same example.
    """

    examples: tuple[Index, ...]
    max_multiplicity: Count = 1

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.examples)
