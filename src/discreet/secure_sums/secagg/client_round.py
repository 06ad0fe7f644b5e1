"""A client's part in a round: mask its vector, agree on the survivors, and reveal its seed and shares."""

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.client_state import AnswerTable, ClientState
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask, survivors_statement
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_errors import ListsDiffer, WrongList, require_clients
from discreet.secure_sums.secagg.session_messages import Agreed, Agreement, Masked, Revealed, Survivors
from discreet.secure_sums.secagg.share_dealing import deal_shares, open_shares, split_secret


def mask(state: ClientState, total: Vector) -> Masked:
    """Mask the vector with a self-mask and one mask for each partner, and erase this round's mask key.

    `total` is changed in place.
    """
    terms, number, me = state.terms, state.round, state.client
    masks, private = Masks(terms.ring), state.mask_keys.pop(state.round)
    seed = state.seed = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    key, commitment = self_mask(terms, number, me, seed)
    masks.add(total, key)
    place = slice(key_agreement.KEY_BYTES * number, key_agreement.KEY_BYTES * (number + 1))
    publics = {peer: state.mask_publics[peer][place] for peer in state.partners}
    for peer, pair in pair_masks(terms, state.binding, me, private, publics).items():
        (masks.add if me < peer else masks.subtract)(total, pair)
    shares = split_secret(state, seed)
    table = {peer: deal_shares(state, peer, [shares[peer]], "self-mask", number) for peer in state.partners}
    return Masked(me, number, commitment, terms.ring.pack(terms.ring.reduce(total)), table)


def on_survivors(state: ClientState, message: Survivors, identity: bytes | None) -> Agreed | Revealed:
    """Check the survivor list, then sign it or, in a session without signatures, reveal the shares."""
    survivors, partners = message.survivors, set(state.partners)
    if state.client not in survivors or not survivors <= state.members:
        raise WrongList(
            f"The survivor list of round {state.round} lacks this client, which answered, or names one that is "
            "not a member."
        )
    require_clients(len(survivors), state.terms.minimum, "are left in this round")
    require_clients(
        len(survivors & state.neighbourhood), state.terms.threshold, "of this neighbourhood are left in this round"
    )
    if set(message.sealed) != partners & survivors:
        raise WrongList("The server sent the shares of other clients than the neighbours in its survivor list.")
    state.self_shares = open_shares(state, message.sealed, "self-mask", state.round)
    state.survivors = survivors
    if identity is None:
        return _reveal(state)
    return Agreed(state.client, state.round, key_agreement.sign(identity, _statement(state)))


def on_agreement(state: ClientState, message: Agreement, identity: bytes | None) -> Revealed:
    """Reveal the shares, once enough of the neighbourhood have signed the list that this client received."""
    signers = set(message.signatures) | {state.client}
    if not signers <= state.neighbourhood & state.survivors:
        raise WrongList("A signature is not of a neighbour that is in the survivor list.")
    statement = _statement(state)
    for peer, signature in message.signatures.items():
        if not key_agreement.is_signature_valid(state.terms.identities[peer], statement, signature):
            raise ListsDiffer(
                f"Client {peer} did not sign the survivor list that this client was shown for round {state.round}, or "
                "received another broadcast.",
                fix="The server told clients different things, or forged a signature: do not go on before it is clear "
                "why.",
                client=peer,
            )
    require_clients(len(signers), state.terms.threshold, "of this neighbourhood signed the survivor list")
    return _reveal(state)


ANSWERS: AnswerTable = {Survivors: on_survivors, Agreement: on_agreement}


def _statement(state: ClientState) -> bytes:
    return survivors_statement(state.terms, state.binding, state.members, state.survivors)


def _reveal(state: ClientState) -> Revealed:
    """Reveal the seed of the own self-mask, and a share of each other survivor's self-mask and of each lost partner's
    mask key, as far as they could be used.

    Erase both kinds of shares of this round, so that no later message can ask for the other kind.
    """
    size = shamir.SHARE_BYTES
    lost = {peer: shares[:size] for peer, shares in state.key_shares.items() if peer not in state.survivors}
    revealed = Revealed(state.client, state.round, state.seed, state.self_shares, lost)
    state.key_shares = {peer: bytes(size) + shares[size:] for peer, shares in state.key_shares.items()}
    state.seed, state.self_shares = b"", {}
    return revealed
