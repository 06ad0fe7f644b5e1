"""What plans and cards say about the data of a task."""

from dataclasses import dataclass
from typing import Literal

from discreet.algorithms.standardisation import Standardisation
from discreet.privacy.release import Person


@dataclass(frozen=True)
class DataFacts:
    """What plans and cards say about the data.

    Attributes:
        facts: Sentences for the card: how inputs are scaled, and what is public.
        not_covered: Sentences for the card about what the guarantee does not cover.
        ranges_from_data: Whether columns are scaled by ranges that were taken from the data.
        distinct_examples: Number of examples, each counted once. None where only the owner of the data knows it.
        person: If set, no person has more than its `at_most` rows in a client, or rows in more than `clients_at_most`.
        rows_left_out: Number of rows that were left out for that. This number is private.
        has_validation: Whether examples are held out for choosing settings.
        public_examples: Number of examples that no client holds. None if there is no public data.
        standardisation: Which numbers are to be standardised by a noisy sum. None for none.
        is_dealt: Whether this program dealt the examples to the clients, and so knows how many hold the same one.
        is_here: Whether the clients' data is here. False if real clients keep it on their own machines.
    """

    kind: Literal["classification", "regression"]
    facts: tuple[str, ...]
    not_covered: tuple[str, ...]
    ranges_from_data: bool
    distinct_examples: int | None
    person: Person | None = None
    rows_left_out: int = 0
    has_validation: bool = False
    public_examples: int | None = None
    standardisation: Standardisation | None = None
    is_dealt: bool = False
    is_here: bool = True
