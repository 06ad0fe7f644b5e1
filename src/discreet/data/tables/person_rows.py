"""Select the rows to use when the privacy unit is a person: at most a few of each person, all in one client."""


class PersonRows:
    """Decide for each row, in the order of the table, whether it is used.

    The first row of a person decides the client. Of this person, at most `most` rows of this client are used.

    Guarantee: no person has more than `most` used rows, or used rows in two clients. Whether a row is used depends on
    the rows of the same person alone, so adding or removing a person changes nothing for the others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[str, tuple[str, int]] = {}

    def uses(self, person: str, client: str) -> bool:
        """Return whether the next row, of this person in this client, is used."""
        first, count = self._counts.get(person, (client, 0))
        if client != first or count == self._most:
            return False
        self._counts[person] = first, count + 1
        return True
