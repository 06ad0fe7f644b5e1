"""Renew a client's keys, and leave its policy, its ledgers and its data as they are."""

from pathlib import Path

from discreet.deploy import certificates
from discreet.deploy.client_node import lock_client_folder
from discreet.deploy.deployment import Card, format_record, read_card
from discreet.deploy.file_switch import replace_files
from discreet.deploy.policy import ClientFolder
from discreet.durable_files import ANYONE, OWNER
from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import key_agreement


def renew_keys(folder: Path, *, identity: bool = False) -> Card:
    """Replace the node key of a client whose node is stopped, and its card. A crash leaves the old files or the new.

    Args:
        folder: The client's folder.
        identity: Whether to replace all its keys: also the one that it signs with, which every other client then has to
            accept, and the one that its noise is drawn with.

    Returns:
        The new card, for the server's operator.

    Raises:
        InvalidInput: The node is running, or the folder has no card.
    """
    owned = ClientFolder.read(folder)
    with lock_client_folder(owned):
        name = owned.policy.client
        card_path = folder / f"{name}.toml"
        if not card_path.is_file():
            raise InvalidInput(f"There is no file {card_path}.", fix="Restore it from its backup.")
        private, node_key = certificates.create_node_key()
        files = {"node.key": (private, OWNER)}
        card = Card(name=name, node_key=node_key, identity=read_card(card_path, name).identity)
        if identity:
            secret = key_agreement.random_bytes(key_agreement.KEY_BYTES)
            files["identity.key"] = (certificates.format_key(secret), OWNER)
            files["noise.key"] = (
                certificates.format_key(key_agreement.random_bytes(key_agreement.KEY_BYTES)),
                OWNER,
            )
            card = Card(name=name, node_key=node_key, identity=key_agreement.identity_key(secret).hex())
        replace_files(folder, folder, {**files, card_path.name: (format_record(card), ANYONE)})
        return card
