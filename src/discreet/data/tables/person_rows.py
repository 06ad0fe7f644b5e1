"""Select the rows to use when the privacy unit is a person: at most a few of each person in each of a few clients."""

from discreet.errors import InvalidInput
from discreet.privacy.release import Person


class PersonRows:
    """Decide for each row, in the order of the table, whether it is used.

    Of one person, the first rows of each client are used, at most `at_most`. Where all rows of a person must be in one
    client, it is the client of the first row.

    Guarantee: no person has more used rows in a client, or used rows in more clients, than `person` says. Whether a row
    is used depends on the rows of the same person alone, so adding or removing a person changes nothing for the others.
    """

    def __init__(self, person: Person) -> None:
        self._person = person
        self._counts: dict[str, dict[str, int]] = {}

    def uses(self, person: str, client: str) -> bool:
        """Return whether the next row, of this person in this client, is used.

        Raises:
            InvalidInput: The person is in more clients than was declared.
        """
        counts = self._counts.setdefault(person, {})
        if client not in counts and len(counts) == self._person.clients_at_most:
            if self._person.clients_at_most == 1:
                return False
            raise self._too_many_clients()
        counts[client] = counts.get(client, 0) + 1
        return counts[client] <= self._person.at_most

    def _too_many_clients(self) -> InvalidInput:
        most = self._person.clients_at_most
        return InvalidInput(
            f"Rows of one person, by column {self._person.column!r}, are in more than {most} clients, and "
            f"clients_at_most = {most} was declared.",
            fix="Declare as many clients as hold rows of one person, or take rows out of the table.",
        )
