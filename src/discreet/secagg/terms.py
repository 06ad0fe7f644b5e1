"""What all clients and the server agree on before the first message of a session."""

from functools import cached_property
from typing import Annotated

from pydantic import Strict

from discreet.errors import InvalidInput, UnsoundCombination
from discreet.part import Count, part
from discreet.secagg import keys
from discreet.secagg.degree import Assumed, all_pairs, degree_for
from discreet.secagg.ring import LEAST_BITS, MOST_BITS, Ring
from discreet.secagg.wire import VERSION, Reader, Writer

SESSION_BYTES = 16
MOST_CLIENTS, MOST_ROUNDS, MOST_NUMBERS = 10**5, 10**5, 2**32
NUMBERS = ("clients", "length", "bits", "rounds", "neighbours", "threshold", "minimum")
Octets = Annotated[bytes, Strict()]


@part
class Terms:
    """A cohort of `clients`, numbered from 0, sums vectors of `length` numbers modulo 2^`bits`, in `rounds` rounds.

    Each client has `neighbours` neighbours (all others: all pairs), and `threshold` of the shares that it and they hold
    open a secret. A sum is made only over `minimum` clients or more.

    Guarantee: an honest-but-curious server, with fewer than `threshold` colluding clients in any neighbourhood, learns
    from a round nothing but the sum over the survivors; on a graph, but for the chance that `degree.insecurity` bounds,
    which assumes no more leavers than `minimum` allows. With `identities`, one Ed25519 public key for each client, the
    same holds against a server that forges keys or shows clients different lists, as long as it controls at most
    `split_views` of each neighbourhood's clients. Without them, nobody knows whose keys the server hands on: a server
    that breaks the rules can put itself in a client's place. `signed` says which.
    """

    session: Octets
    clients: Count
    length: Count
    bits: Count = 32
    rounds: Count = 1
    neighbours: Count
    threshold: Count
    minimum: Count
    identities: tuple[Octets, ...] = ()

    @classmethod
    def chosen(
        cls,
        *,
        clients: int,
        length: int,
        bits: int = 32,
        rounds: int = 1,
        threshold: int | None = None,
        identities: tuple[bytes, ...] = (),
        assumed: Assumed | None = None,
    ) -> "Terms":
        """Terms of a new session: all pairs in small cohorts, a random graph in large ones.

        A `threshold` of one's own is a number of clients, and asks for all pairs.
        """
        degree = degree_for(clients, assumed or Assumed()) if threshold is None else all_pairs(clients, threshold)
        return cls(
            session=keys.fresh(SESSION_BYTES),
            clients=clients,
            length=length,
            bits=bits,
            rounds=rounds,
            neighbours=degree.neighbours,
            threshold=degree.threshold,
            minimum=degree.minimum,
            identities=identities,
        )

    def __post_init__(self) -> None:
        _within("clients", self.clients, 3, MOST_CLIENTS)
        _within("bits", self.bits, LEAST_BITS, MOST_BITS)
        _within("rounds", self.rounds, 1, MOST_ROUNDS)
        _within("length", self.length, 1, MOST_NUMBERS)
        _within("neighbours", self.neighbours, 2, self.clients - 1)
        if len(self.session) != SESSION_BYTES:
            raise InvalidInput(f"Terms: session must have {SESSION_BYTES} bytes, and got {len(self.session)}.")
        if self.neighbours % 2 and self.neighbours != self.clients - 1:
            raise InvalidInput(f"Terms: neighbours must be even or all {self.clients - 1}, and got {self.neighbours}.")
        self._check_thresholds()
        self._check_identities()

    def _check_thresholds(self) -> None:
        holders = self.neighbours + 1
        if not holders / 2 < self.threshold <= holders:
            raise UnsoundCombination(
                f"Terms: threshold must be more than half of the {holders} holders of a share, and at most all, "
                f"and got {self.threshold}: with half, two halves could be asked for the two shares of one client.",
                fix="Leave the threshold out, or raise it.",
            )
        if not max(self.clients / 2, self.threshold - 1) < self.minimum <= self.clients:
            raise UnsoundCombination(
                f"Terms: minimum must be more than half of the {self.clients} clients, and at least the threshold "
                f"{self.threshold}, and got {self.minimum}."
            )

    def _check_identities(self) -> None:
        if not self.identities:
            return
        if len(self.identities) != self.clients or any(len(each) != keys.KEY_BYTES for each in self.identities):
            raise InvalidInput(
                f"Terms: identities must be one Ed25519 public key of {keys.KEY_BYTES} bytes for each of "
                f"{self.clients} clients, and got {len(self.identities)}."
            )
        if len(set(self.identities)) != self.clients:
            raise UnsoundCombination("Terms: identities must differ, or one client could speak for two.")

    @property
    def signed(self) -> bool:
        """Whether keys and survivor lists are signed, so that the server can't forge them."""
        return bool(self.identities)

    @property
    def split_views(self) -> int:
        """So many of a neighbourhood may side with the server, and still no two lists can both be answered."""
        return 2 * self.threshold - (self.neighbours + 1) - 1

    @cached_property
    def ring(self) -> Ring:
        return Ring(self.bits, self.length)

    @cached_property
    def context(self) -> bytes:
        """The digest of all terms. It is in every message and under every key: other terms, other keys."""
        return keys.digest(self.to_bytes())

    def to_bytes(self) -> bytes:
        writer = Writer().number(VERSION, 1).raw(self.session)
        for number in self._numbers():
            writer.number(number, 8)
        return writer.number(len(self.identities), 4).raw(b"".join(self.identities)).done()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Terms":
        reader = Reader(data)
        if reader.number(1) != VERSION:
            reader.refuse(f"is not of version {VERSION}")
        session, numbers = reader.raw(SESSION_BYTES), {name: reader.number(8) for name in NUMBERS}
        identities = tuple(reader.raw(keys.KEY_BYTES) for _ in range(min(reader.number(4), MOST_CLIENTS)))
        reader.done()
        return cls(session=session, identities=identities, **numbers)

    def _numbers(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in NUMBERS)


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"Terms: {name} must be between {least} and {most}, and got {value}.")
