"""Remove the masks from a sum by the revealed shares, and from nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_errors import TooFewClients, WrongShare
from discreet.secure_sums.secagg.session_messages import Revealed


@dataclass(frozen=True)
class Total:
    """The sum modulo 2^bits of the vectors of the survivors, and who they are.

    `complaints` has, by dealer, the clients that could not use the shares that it dealt to them.
    """

    vector: Vector
    survivors: frozenset[int]
    complaints: Mapping[int, frozenset[int]] = field(default_factory=dict)


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
        for peer, pair in pair_masks(cohort.terms, cohort.binding(current), client, private, publics).items():
            (masks.subtract if peer < client else masks.add)(total, pair)
    complaints = {client: _complaints(cohort, current, client) for client in sorted({*seeds, *privates})}
    told = {client: holders for client, holders in complaints.items() if holders}
    return Total(cohort.terms.ring.reduce(total), current.survivors, told)


def _recover_secret(cohort: Cohort, current: Round, client: int) -> bytes:
    """Recover a survivor's seed or a lost client's mask key from the first `threshold` revealed shares."""
    shares = {
        cohort.positions[client][holder]: share
        for holder, revealed in sorted(current.revealed.items())
        if (share := _share(revealed, client)) is not None
    }
    needed, complaints = cohort.terms.threshold, _complaints(cohort, current, client)
    if len(shares) < needed:
        raise TooFewClients(
            f"{len(shares)} shares of client {client}'s secret were revealed, and {needed} are needed.",
            fix="Go on with the next round; this one can't be finished.",
            client=client if len(shares) + len(complaints) >= needed else None,
            complaining=complaints,
            revealed=True,
            is_sure=len(complaints) >= needed,
        )
    secret = shamir.combine({position: shares[position] for position in sorted(shares)[:needed]})
    _check_secret(secret is not None, client)
    assert secret is not None
    return secret


def _share(revealed: Revealed, client: int) -> bytes | None:
    return revealed.self_masks.get(client, revealed.mask_keys.get(client))


def _complaints(cohort: Cohort, current: Round, client: int) -> frozenset[int]:
    """Return the clients that revealed shares, and none of this client's although it dealt them some."""
    holders = cohort.neighbourhood(client) & current.revealed.keys()
    return frozenset(holder for holder in holders if _share(current.revealed[holder], client) is None)


def _check_secret(is_right: bool, client: int) -> None:
    """Refuse a secret that is not its owner's. All shares are those that it dealt, so it is the owner's own doing."""
    if not is_right:
        raise WrongShare(
            f"Client {client} dealt shares that do not give the secret it committed to, so the sum would be wrong.",
            fix="Leave this client out, or find out why its node deals wrong shares.",
            client=client,
            revealed=True,
            is_sure=True,
        )
