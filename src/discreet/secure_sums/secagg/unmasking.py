"""Remove the masks from a sum by the revealed seeds and shares, and from nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_errors import RoundOver, TooFewClients, WrongShare
from discreet.secure_sums.secagg.session_messages import Revealed


@dataclass(frozen=True)
class Total:
    """The sum modulo 2^bits of the vectors of the survivors, and who they are.

    `complaints` has, by dealer, the clients that could not use the shares that it dealt to them.
    """

    vector: Vector
    survivors: frozenset[int]
    complaints: Mapping[int, frozenset[int]] = field(default_factory=dict)


class Fault(NamedTuple):
    """Why the secret of `client` could not be opened. `is_proven` says that its own commitments show that it lies."""

    client: int
    problem: str
    complaining: frozenset[int]
    is_blamed: bool
    is_proven: bool = False


def unmask(cohort: Cohort, current: Round) -> Total:
    """Return the sum without each survivor's self-mask and the masks it shared with lost clients.

    The masks that two survivors share have cancelled in the sum.

    Raises:
        RoundOver: The secrets of some clients could not be opened. It blames all of them that it can.
    """
    lost = {client for client in cohort.members - current.survivors if cohort.partners(client) & current.survivors}
    opened = {client: _open_secret(cohort, current, client) for client in sorted(current.survivors | lost)}
    if faults := [found for found in opened.values() if isinstance(found, Fault)]:
        raise _lost_round(faults)
    secrets = {client: secret for client, secret in opened.items() if isinstance(secret, bytes)}
    masks, total = Masks(cohort.terms.ring), current.total
    for client in sorted(current.survivors):
        masks.subtract(total, self_mask(cohort.terms, current.number, client, secrets[client])[0])
    for client in sorted(lost):
        peers = cohort.partners(client) & current.survivors
        publics = {peer: cohort.mask_public(peer, current.number) for peer in peers}
        for peer, pair in pair_masks(cohort.terms, cohort.binding(current), client, secrets[client], publics).items():
            (masks.subtract if peer < client else masks.add)(total, pair)
    complaints = {client: _complaints(cohort, current, client) for client in sorted(opened)}
    told = {client: holders for client, holders in complaints.items() if holders}
    return Total(cohort.terms.ring.reduce(total), current.survivors, told)


def _open_secret(cohort: Cohort, current: Round, client: int) -> bytes | Fault:
    """Return a survivor's seed, or a lost client's mask key: as it revealed it, or from `threshold` revealed shares."""
    own = current.revealed.get(client)
    if own is not None:
        return own.seed  # it was compared with the commitment when it came
    needed, complaints = cohort.terms.threshold, _complaints(cohort, current, client)
    shares = {
        cohort.positions[client][holder]: share
        for holder, revealed in sorted(current.revealed.items())
        if (share := _share(revealed, client)) is not None
    }
    if len(shares) < needed:
        problem = f"{len(shares)} shares of client {client}'s secret were revealed, and {needed} are needed."
        return Fault(client, problem, complaints, is_blamed=len(shares) + len(complaints) >= needed)
    secret = shamir.combine({position: shares[position] for position in sorted(shares)[:needed]})
    if secret is not None and _is_committed(cohort, current, client, secret):
        return secret
    problem = f"Client {client} dealt shares that do not give the secret it committed to, so the sum would be wrong."
    return Fault(client, problem, frozenset(), is_blamed=True, is_proven=True)


def _is_committed(cohort: Cohort, current: Round, client: int, secret: bytes) -> bool:
    """Whether this is the client's secret. All shares are those that it dealt, so if not it is the client's doing."""
    if client in current.survivors:
        return self_mask(cohort.terms, current.number, client, secret)[1] == current.commitments[client]
    return key_agreement.public_key(secret) == cohort.mask_public(client, current.number)


def _lost_round(faults: list[Fault]) -> RoundOver:
    is_proven = all(fault.is_proven for fault in faults)
    fix = (
        "Leave these clients out, or find out why their nodes deal wrong shares."
        if is_proven
        else "Go on with the next round; this one can't be finished."
    )
    return (WrongShare if is_proven else TooFewClients)(
        " ".join(fault.problem for fault in faults),
        fix=fix,
        revealed=True,
        blamed={fault.client: fault.complaining for fault in faults if fault.is_blamed},
    )


def _share(revealed: Revealed, client: int) -> bytes | None:
    return revealed.self_masks.get(client, revealed.mask_keys.get(client))


def _complaints(cohort: Cohort, current: Round, client: int) -> frozenset[int]:
    """Return the clients that revealed shares, and none of this client's although it dealt them some."""
    holders = cohort.partners(client) & current.revealed.keys()
    return frozenset(holder for holder in holders if _share(current.revealed[holder], client) is None)
