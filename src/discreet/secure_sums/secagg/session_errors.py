"""Why a secure sum was not made: one class for each reason.

Three kinds differ in what is left. A message that was refused changed nothing. A round that is over leaves the session
fit for the next one. An abort ends the session: the other side broke the rules, and the secrets are erased.
In none of them was an update revealed, and no more was released than a sum that was paid for. Whether even that could
still be opened, `RoundOver` says.
"""

from discreet.errors import DiscreetError


class SecaggError(DiscreetError):
    """A secure sum was not made."""


class BadMessage(SecaggError):
    """These bytes are no message, or no saved state, of this protocol and these terms; nothing changed."""


class OutOfTurn(SecaggError):
    """A message, or a call, that this stage of the session does not expect; nothing changed."""


class WrongRound(OutOfTurn):
    """A message of another round, sent again or too late; nothing changed, and nothing is revealed for that round."""


class NotAMember(SecaggError):
    """A message of, or to, a client that is not in this session or not in this round; nothing changed."""


class RoundOver(SecaggError):
    """This round is over, without a sum.

    `revealed` says whether clients had been asked for shares by then. If not, its masks stay on for good, and nothing
    was released. If so, some have answered, and an answer that comes too late would open the sum for whoever kept the
    others: it must count as released.
    """

    def __init__(self, problem: str, *, fix: str = "", revealed: bool = False) -> None:
        super().__init__(problem, fix=fix)
        self.revealed = revealed


class TooFewClients(RoundOver):
    """Fewer clients are left than are needed."""


class WrongShare(RoundOver):
    """Revealed shares do not give the secret that their owner committed to."""


class SessionOver(SecaggError):
    """The session was aborted before; it holds no secrets any more."""


class Abort(SecaggError):
    """The other side broke the rules: the session is over and its secrets are erased."""


class WrongKeys(Abort):
    """The list of keys is not one that an honest server could have sent."""


class BadSignature(Abort):
    """A key is not signed by the client whose it is said to be."""


class WrongList(Abort):
    """A list of members or survivors that can't be: this client, who answered, is missing, or a stranger is in it."""


class BothShares(Abort):
    """A second survivor list in one round: to answer it would hand over both shares of a client, and so its update."""


class ListsDiffer(Abort):
    """A neighbour did not sign the survivor list that this client was shown."""


class BadShares(Abort):
    """Encrypted shares that were changed, or meant for another client, round or session."""


def require_clients(count: int, needed: int, what: str) -> None:
    """Raise TooFewClients unless `count` clients reach `needed`. `what` completes the sentence "N clients ..."."""
    if count < needed:
        raise TooFewClients(
            f"{count} clients {what}, and {needed} are needed.",
            fix="Wait for more clients, or begin a session with a lower threshold.",
        )
