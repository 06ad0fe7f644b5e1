"""What the server checks in a client's reply before it takes it. A refusal names the client, and changes nothing."""

from collections.abc import Collection

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.derivations import are_keys_signed, has_weak_key, self_mask, share_commitment
from discreet.secure_sums.secagg.message_signatures import SignedMessage
from discreet.secure_sums.secagg.server_state import Cohort, Round
from discreet.secure_sums.secagg.session_errors import BadMessage, WrongSender
from discreet.secure_sums.secagg.session_messages import Agreed, Keys, Revealed
from discreet.secure_sums.secagg.session_terms import Terms


def check_sender(named: int, signed: SignedMessage, sender: int, terms: Terms) -> None:
    """Refuse a message that its sender sent in another client's name, or did not sign."""
    if named != sender:
        raise WrongSender(f"Client {sender} sent a message in the name of client {named}.")
    if not signed.is_signed_by(sender, terms):
        raise WrongSender(f"Client {sender} sent a message that it did not sign.")


def check_keys(terms: Terms, message: Keys) -> None:
    """Refuse keys that the other clients would refuse, and leave the session for."""
    client, published = message.client, message.published
    if not are_keys_signed(terms, client, published):
        raise BadMessage(f"The keys that claim to be client {client}'s are not signed by it.")
    if has_weak_key(terms, published):
        raise BadMessage(
            f"Client {client} sent a public key of small order, with which it would agree on the same secret with "
            "everybody."
        )


def check_holders(named: Collection[int], expected: Collection[int]) -> None:
    """Check that a message deals a share to exactly the clients it must."""
    if set(named) != set(expected):
        raise BadMessage(
            f"A message must hold one share for each of {len(expected)} clients, and is about {len(named)} or others."
        )


def check_agreed(cohort: Cohort, current: Round, message: Agreed) -> None:
    """Refuse a signature of another list or broadcast, because of which the other clients would leave the session."""
    terms, client = cohort.terms, message.client
    if not terms.has_signatures or not key_agreement.is_signature_valid(
        terms.identities[client], cohort.statement(current), message.signature
    ):
        raise BadMessage(f"Client {client} did not sign this round's survivor list, or received another broadcast.")


def check_revealed(cohort: Cohort, current: Round, message: Revealed) -> None:
    """Refuse a seed that this client did not commit to, and shares that it does not hold or was not dealt.

    A client has compared what it was dealt with the dealer's commitment, and reveals nothing that differs. So a share
    that does not match is the revealer's own doing.
    """
    holder, partners = message.client, cohort.partners(message.client)
    survivors = partners & current.survivors
    if not message.self_masks.keys() <= survivors or not message.mask_keys.keys() <= partners - survivors:
        raise BadMessage(
            f"Client {holder} revealed a share of a client that is not its neighbour, or of the wrong kind: self-masks "
            "of survivors and mask keys of lost clients are due."
        )
    if self_mask(cohort.terms, current.number, holder, message.seed)[1] != current.commitments[holder]:
        raise BadMessage(f"Client {holder} revealed another seed of its self-mask than the one that it committed to.")
    for dealer, share in message.self_masks.items():
        given = share_commitment(cohort.terms, "self-mask", current.number, dealer, holder, share)
        _check_share(given == current.dealt[dealer][holder], dealer, holder)
    for dealer, share in message.mask_keys.items():
        given = share_commitment(cohort.terms, "mask key", current.number, dealer, holder, share)
        _check_share(given == cohort.key_commitment(dealer, holder, current.number), dealer, holder)


def _check_share(is_right: bool, dealer: int, holder: int) -> None:
    if not is_right:
        raise BadMessage(
            f"Client {holder} revealed a share of client {dealer}'s secret that is not the one it was dealt."
        )
