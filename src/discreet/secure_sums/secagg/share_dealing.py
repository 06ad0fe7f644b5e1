"""Deal shares of secrets to holders: split, commit to each share, seal it; and open what others have dealt.

A dealt row is the commitments to a holder's shares, which the server reads, and the sealed shares, which it can't. The
commitments are authenticated with the seal, so the holder knows that they are the dealer's. A share that its holder
reveals must match the commitment, so the server sees a wrong one at once and knows who sent it.
"""

from collections.abc import Sequence

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.derivations import SecretKind, seal_key, share_commitment
from discreet.secure_sums.secagg.message_fields import split_row
from discreet.secure_sums.secagg.session_errors import BadShares
from discreet.secure_sums.secagg.session_messages import Table


def split_secret(state: ClientState, secret: bytes) -> dict[int, bytes]:
    """Split the secret into a share for the client itself and for each neighbour.

    A holder's position on the polynomial is its place among all holders in ascending order.
    """
    holders = sorted((state.client, *state.neighbours))
    shares = shamir.split(secret, state.terms.threshold, range(1, len(holders) + 1))
    return dict(zip(holders, shares.values(), strict=True))


def deal_shares(state: ClientState, holder: int, shares: Sequence[bytes], kind: SecretKind, first: int) -> bytes:
    """Return the row that is dealt to a holder: commitments to its shares of consecutive rounds, and the sealed shares.

    Args:
        state: The dealer's state.
        holder: The client that gets the shares.
        shares: One share for each round.
        kind: What the shares open.
        first: The round of the first share.
    """
    commitments = _commitments(state, kind, first, state.client, holder, shares)
    key = seal_key(state.terms, state.roster, state.channels[holder], kind, first, state.client, holder)
    return commitments + key_agreement.seal(key, b"".join(shares), commitments)


def open_shares(state: ClientState, table: Table, kind: SecretKind, first: int) -> dict[int, bytes]:
    """Open what peers have dealt to this client, and leave out what can't be used; `state.complaints` says why.

    Raises:
        BadShares: So few can be used that with this client's own they are fewer than the threshold.
    """
    shares, state.complaints = {}, {}
    for dealer, row in table.items():
        opened = _open_row(state, dealer, row, kind, first)
        if opened is None:
            state.complaints[dealer] = (
                f"Client {dealer} dealt shares of its {kind} that this client can't use: they are not sealed for this "
                "client, round and list of keys, or not what it committed to. It lies, or the server changed them."
            )
        else:
            shares[dealer] = opened
    if len(shares) + 1 < state.terms.threshold:
        raise BadShares(
            " ".join(state.complaints.values()),
            fix="These clients lie, or the server changed or mixed up messages: begin a new session, and find out why.",
        )
    return shares


def _open_row(state: ClientState, dealer: int, row: bytes, kind: SecretKind, first: int) -> bytes | None:
    """Return the shares in a row; None if the seal does not open or a share is not what the dealer committed to."""
    commitments, sealed = split_row(row)
    key = seal_key(state.terms, state.roster, state.channels[dealer], kind, first, dealer, state.client)
    plain = key_agreement.unseal(key, sealed, commitments)
    if plain is None:
        return None
    shares = [plain[place : place + shamir.SHARE_BYTES] for place in range(0, len(plain), shamir.SHARE_BYTES)]
    is_dealt = _commitments(state, kind, first, dealer, state.client, shares) == commitments
    return plain if is_dealt and all(map(shamir.is_share, shares)) else None


def _commitments(
    state: ClientState, kind: SecretKind, first: int, dealer: int, holder: int, shares: Sequence[bytes]
) -> bytes:
    return b"".join(
        share_commitment(state.terms, kind, number, dealer, holder, share) for number, share in enumerate(shares, first)
    )
