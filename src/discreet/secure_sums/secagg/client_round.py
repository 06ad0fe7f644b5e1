"""What a client does in a round: mask its vector, agree on who is left, and reveal one share of each neighbour."""

from discreet.secure_sums.secagg import key_agreement, shamir
from discreet.secure_sums.secagg.client_setup import require, sealed, split, unsealed
from discreet.secure_sums.secagg.client_state import ClientState
from discreet.secure_sums.secagg.derivations import pair_masks, self_mask, survivors_statement
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.ring_vectors import Vector
from discreet.secure_sums.secagg.session_errors import ListsDiffer, WrongList
from discreet.secure_sums.secagg.session_messages import Agreed, Agreement, Masked, Revealed, Survivors


def mask(state: ClientState, total: Vector) -> Masked:
    """The vector under its own mask and one for each partner; `total` is used up. This round's mask key is erased."""
    terms, number, me = state.terms, state.round, state.client
    masks, seed, private = (
        Masks(terms.ring),
        key_agreement.random_bytes(key_agreement.KEY_BYTES),
        state.mask_keys.pop(state.round),
    )
    key, commitment = self_mask(terms, number, me, seed)
    masks.add(total, key)
    place = slice(key_agreement.KEY_BYTES * number, key_agreement.KEY_BYTES * (number + 1))
    publics = {peer: state.mask_publics[peer][place] for peer in state.partners}
    for peer, pair in pair_masks(terms, number, me, private, publics).items():
        (masks.add if me < peer else masks.subtract)(total, pair)
    shares = split(state, seed)
    state.self_shares, state.stage = {me: shares[me]}, "masked"
    table = {peer: sealed(state, peer, shares[peer], "self-mask", number) for peer in state.partners}
    return Masked(me, number, commitment, terms.ring.pack(terms.ring.reduce(total)), table)


def on_survivors(state: ClientState, message: Survivors, identity: bytes | None) -> Agreed | Revealed:
    """Check the list; then sign it, or, in a session without signatures, reveal at once."""
    survivors, partners = message.survivors, set(state.partners)
    if state.client not in survivors or not survivors <= state.members:
        raise WrongList(
            f"The survivor list of round {state.round} lacks this client, which answered, or names one that is no "
            "member."
        )
    require(len(survivors), state.terms.minimum, "are left in this round")
    require(len(survivors & state.around), state.terms.threshold, "of this neighbourhood are left in this round")
    if set(message.sealed) != partners & survivors:
        raise WrongList("The server sent the shares of other clients than the neighbours in its survivor list.")
    state.self_shares |= unsealed(state, message.sealed, "self-mask", state.round)
    state.survivors = survivors
    if identity is None:
        return _reveal(state)
    state.stage = "agreed"
    return Agreed(state.client, state.round, key_agreement.sign(identity, _statement(state)))


def on_agreement(state: ClientState, message: Agreement) -> Revealed:
    """Reveal, once enough of the neighbourhood have signed the very list that this client was shown."""
    signers = set(message.signatures) | {state.client}
    if not signers <= state.around & state.survivors:
        raise WrongList("A signature is not of a neighbour that is in the survivor list.")
    statement = _statement(state)
    for peer, signature in message.signatures.items():
        if not key_agreement.is_signature_valid(state.terms.identities[peer], statement, signature):
            raise ListsDiffer(
                f"Client {peer} did not sign the survivor list that this client was shown for round {state.round}.",
                fix="The server showed different lists, or forged a signature: do not go on before it is clear why.",
            )
    require(len(signers), state.terms.threshold, "of this neighbourhood signed the survivor list")
    return _reveal(state)


def _statement(state: ClientState) -> bytes:
    return survivors_statement(state.terms, state.roster, state.members, state.round, state.survivors)


def _reveal(state: ClientState) -> Revealed:
    """A share of the self-mask of each survivor, and of the mask key of each that was lost: one or the other.

    What was revealed or withheld is erased, so that no later message can ask for the other.
    """
    size = shamir.SHARE_BYTES
    lost = {each: state.held[each][:size] for each in state.partners if each not in state.survivors}
    revealed = Revealed(state.client, state.round, state.self_shares, lost)
    state.held = {each: bytes(size) + shares[size:] for each, shares in state.held.items()}
    state.self_shares, state.stage = {}, "revealed"
    return revealed
