"""A client's part in the set-up: publish keys, check the others' keys, share its own and store the others' shares."""

from discreet.secure_sums.secagg import graph, key_agreement
from discreet.secure_sums.secagg.client_state import AnswerTable, ClientState
from discreet.secure_sums.secagg.derivations import are_keys_signed, has_weak_key, keys_statement, roster_digest
from discreet.secure_sums.secagg.session_errors import BadSignature, WrongKeys, WrongList, require_clients
from discreet.secure_sums.secagg.session_messages import Keys, Members, Roster, Shares
from discreet.secure_sums.secagg.share_dealing import deal_shares, open_shares, split_secret


def publish(state: ClientState, identity: bytes | None) -> Keys:
    """Generate keys, one to seal shares and one for the masks of each round, and return their public halves."""
    terms = state.terms
    state.sealing_key = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    state.mask_keys = {number: key_agreement.random_bytes(key_agreement.KEY_BYTES) for number in range(terms.rounds)}
    published = b"".join(key_agreement.public_key(key) for key in (state.sealing_key, *state.mask_keys.values()))
    if identity is not None:
        published += key_agreement.sign(identity, keys_statement(terms, state.client, published))
    state.published = published
    return Keys(state.client, published)


def on_roster(state: ClientState, roster: Roster, identity: bytes | None) -> Shares:
    """Check everybody's keys, and share this client's mask keys among its neighbours."""
    terms = state.terms
    if roster.digests.get(state.client) != key_agreement.digest(state.published):
        raise WrongKeys("The list of keys shows other keys for this client than it sent.")
    if len(set(roster.digests.values())) != len(roster.digests):
        raise WrongKeys("Two clients in the list of keys have the same keys.")
    require_clients(len(roster.digests), terms.minimum, "sent their keys")
    digest = roster_digest(roster.digests)
    neighbours = graph.neighbours(state.client, graph.place_on_circle(roster.digests, digest), terms.neighbours)
    if set(roster.published) != set(neighbours):
        raise WrongKeys("The server sent the keys of other clients than this one's neighbours.")
    require_clients(len(neighbours) + 1, terms.threshold, "of this neighbourhood sent their keys")
    for peer, published in roster.published.items():
        _check_keys(state, peer, published, roster.digests[peer])
    own, end = key_agreement.KEY_BYTES, key_agreement.KEY_BYTES * (1 + terms.rounds)
    state.roster, state.present, state.neighbours = digest, frozenset(roster.digests), neighbours
    state.channels = key_agreement.agree(
        state.sealing_key, {peer: keys[:own] for peer, keys in roster.published.items()}
    )
    state.mask_publics = {peer: keys[own:end] for peer, keys in roster.published.items()}
    return Shares(state.client, _share_mask_keys(state))


def on_members(state: ClientState, message: Members, identity: bytes | None) -> None:
    """Store the shares of the neighbours that belong to the session."""
    if state.client not in message.members or not message.members <= state.present:
        raise WrongList("The list of members lacks this client, or names one that sent no keys.")
    partners = {peer for peer in state.neighbours if peer in message.members}
    require_clients(len(message.members), state.terms.minimum, "shared their keys")
    require_clients(len(partners) + 1, state.terms.threshold, "of this neighbourhood shared their keys")
    if set(message.sealed) != partners:
        raise WrongList("The server sent the shares of other clients than the neighbours in its list of members.")
    state.key_shares = open_shares(state, message.sealed, "mask key", 0)
    state.members = message.members


ANSWERS: AnswerTable = {Roster: on_roster, Members: on_members}


def _check_keys(state: ClientState, peer: int, published: bytes, expected: bytes) -> None:
    if key_agreement.digest(published) != expected:
        raise WrongKeys(f"The keys of client {peer} are not those in the list of everybody's keys.")
    if not are_keys_signed(state.terms, peer, published):
        raise BadSignature(
            f"The keys that are said to be of client {peer} are not signed by it.",
            fix="Compare the identity keys in the terms with their owners.",
            client=peer,
        )
    if has_weak_key(state.terms, published):
        raise WrongKeys(
            f"A public key of client {peer} has small order, so everybody would know the secrets shared with it.",
            fix="An honest server would have refused it: ask both for the reason.",
            client=peer,
        )


def _share_mask_keys(state: ClientState) -> dict[int, bytes]:
    """Return for each neighbour what is dealt to it: its shares of the mask keys of all rounds."""
    rounds = [split_secret(state, key) for key in state.mask_keys.values()]
    return {
        peer: deal_shares(state, peer, [shares[peer] for shares in rounds], "mask key", 0) for peer in state.neighbours
    }
