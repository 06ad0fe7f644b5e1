"""Errors of secure sums: one class for each reason.

A refused message changes nothing. A round that is over leaves the session ready for the next one. An abort ends the
session: the other side broke the protocol, and the secrets are erased. None of these errors reveals an update, or
releases more than a sum that was paid for; `RoundOver.revealed` says whether that sum may still be opened.
"""

from collections.abc import Mapping

from discreet.errors import DiscreetError


class SecaggError(DiscreetError):
    """A secure sum could not be made.

    `client` is the client that caused it, by its number in the session; None if nobody can say.
    """

    def __init__(self, problem: str, *, fix: str = "", client: int | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.client = client


class BadMessage(SecaggError):
    """The bytes are not a message or a saved state of this protocol under these terms; nothing changed."""


class OutOfTurn(SecaggError):
    """This stage of the session does not expect the message or the call; nothing changed."""


class WrongRound(OutOfTurn):
    """The message is of another round; nothing changed, and nothing is revealed for that round."""


class WrongSender(SecaggError):
    """A client sent a message in another one's name, or did not sign its own; nothing changed."""


class NotAMember(SecaggError):
    """The client is not in this session or not in this round; nothing changed."""


class RoundOver(SecaggError):
    """The round is over without a sum.

    `revealed` says whether clients had already been asked for shares. If not, the masks are never removed, and nothing
    was released. If so, some have answered, and a late answer would open the sum for anyone who kept the others: the
    sum must count as released.

    Attributes:
        revealed: As above.
        blamed: The clients by whose shares it was lost, each with those that say that they can't use them. Where nobody
            says so, the client's own commitments prove it. Else the client did not answer, so that its secret had to be
            opened by shares: either it lies, or more clients lie or are silent than the session withstands.
        is_mended: Whether they are left out of the later rounds, so that none of these is lost for the same reason.
    """

    def __init__(
        self,
        problem: str,
        *,
        fix: str = "",
        revealed: bool = False,
        blamed: Mapping[int, frozenset[int]] | None = None,
    ) -> None:
        super().__init__(problem, fix=fix)
        self.revealed, self.blamed, self.is_mended = revealed, dict(blamed or {}), False


class TooFewClients(RoundOver):
    """Fewer clients are left than are needed."""


class WrongShare(RoundOver):
    """A client dealt shares that do not give the secret that it committed to."""


class SessionOver(SecaggError):
    """The session was aborted earlier and holds no secrets."""


class Abort(SecaggError):
    """The other side broke the protocol: the session is over and its secrets are erased."""


class WrongKeys(Abort):
    """The list of keys is not one that an honest server could have sent."""


class BadSignature(Abort):
    """A key is not signed by the client that it is attributed to."""


class WrongList(Abort):
    """A list of members or survivors lacks this client, although it answered, or contains a client it must not."""


class BothShares(Abort):
    """A second survivor list came in one round; answering it would reveal both shares of a client, and its update."""


class ListsDiffer(Abort):
    """A neighbour did not sign the survivor list that this client received."""


class BadShares(Abort):
    """Too many of the sealed shares were changed, or are for another client, round or session."""


def require_clients(count: int, needed: int, what: str) -> None:
    """Raise TooFewClients unless `count` clients reach `needed`. `what` completes the sentence "N clients ..."."""
    if count < needed:
        raise TooFewClients(
            f"{count} clients {what}, and {needed} are needed.",
            fix="Wait for more clients, or begin a session with a lower threshold.",
        )
