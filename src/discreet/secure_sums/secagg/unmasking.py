"""Remove the masks from a sum by the revealed shares, and from nothing else."""

from dataclasses import dataclass

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_errors import TooFewClients, WrongShare
from discreet.secure_sums.secagg.session_messages import Revealed


@dataclass(frozen=True)
class Total:
    """The sum modulo 2^bits of the vectors of the survivors, and who they are."""

    vector: Vector
    survivors: frozenset[int]


def unmask(cohort: Cohort, current: Round) -> Total:
    """Return the sum without each survivor's self-mask and the masks it shared with lost clients.

    The masks that two survivors share have cancelled in the sum.
    """
    lost = {client for client in cohort.members - current.survivors if cohort.partners(client) & current.survivors}
    seeds = {client: _recover_secret(cohort, current, client) for client in sorted(current.survivors)}
    privates = {client: _recover_secret(cohort, current, client) for client in sorted(lost)}
    masks, total = Masks(cohort.terms.ring), current.total
    for client, seed in seeds.items():
        key, commitment = self_mask(cohort.terms, current.number, client, seed)
        _check_secret(commitment == current.commitments[client], client)
        masks.subtract(total, key)
    for client, private in privates.items():
        _check_secret(key_agreement.public_key(private) == cohort.mask_public(client, current.number), client)
        peers = cohort.partners(client) & current.survivors
        publics = {peer: cohort.mask_public(peer, current.number) for peer in peers}
        for peer, pair in pair_masks(cohort.terms, current.number, client, private, publics).items():
            (masks.subtract if peer < client else masks.add)(total, pair)
    return Total(cohort.terms.ring.reduce(total), current.survivors)


def _recover_secret(cohort: Cohort, current: Round, client: int) -> bytes:
    """Recover a survivor's seed or a lost client's mask key from the first `threshold` revealed shares."""
    shares = {
        cohort.positions[client][holder]: _share(current.revealed[holder], client)
        for holder in sorted(cohort.neighbourhood(client) & current.revealed.keys())
    }
    needed = cohort.terms.threshold
    if len(shares) < needed:
        raise TooFewClients(
            f"{len(shares)} shares of client {client}'s secret were revealed, and {needed} are needed.",
            fix="Go on with the next round; this one can't be finished.",
            revealed=True,
        )
    secret = shamir.combine({position: shares[position] for position in sorted(shares)[:needed]})
    _check_secret(secret is not None, client)
    assert secret is not None
    return secret


def _share(revealed: Revealed, client: int) -> bytes:
    return revealed.self_masks[client] if client in revealed.self_masks else revealed.mask_keys[client]


def _check_secret(right: bool, client: int) -> None:
    if not right:
        raise WrongShare(
            f"The shares that were revealed do not give the secret of client {client}, so the sum would be wrong.",
            fix="A client answered wrongly: find out which before the next session.",
            revealed=True,
        )
