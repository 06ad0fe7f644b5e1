"""Which rows are used when the privacy unit is a person: a few of each person, all in one client."""


class PersonRows:
    """Decides row by row, in the order of the table.

    A person's rows are used in the client of the first of them, up to `most`; the others are left out.

    Guarantee: nobody has more than `most` used rows, or used rows in two clients. Whether a row is used depends on the
    rows of the same person alone, so one person more or less changes nothing for the others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: dict[str, tuple[str, int]] = {}

    def uses(self, person: str, client: str) -> bool:
        first, count = self._used.get(person, (client, 0))
        if client != first or count == self._most:
            return False
        self._used[person] = first, count + 1
        return True
