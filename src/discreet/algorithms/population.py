"""What is public about the clients, by declaration: the card says so."""

from discreet.part import Count, Index, part


@part
class Population:
    """How many examples each client holds, and in how many clients one example may lie."""

    examples: tuple[Index, ...]
    max_multiplicity: Count = 1

    @property
    def clients(self) -> int:
        return len(self.examples)
