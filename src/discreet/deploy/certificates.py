"""Certificates and keys: by which a client knows the server, the server knows its clients, and clients each other."""

import ipaddress
import os
import re
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import key_agreement

YEARS = 3
CURVE = ec.SECP384R1


def write_certificates(folder: Path, hosts: Sequence[str]) -> None:
    """A certificate authority of one's own, and the server's certificate for these names and addresses."""
    authority_key, server_key = ec.generate_private_key(CURVE()), ec.generate_private_key(CURVE())
    authority_name = _common_name("discreet authority")
    about = x509.BasicConstraints(ca=True, path_length=0)
    authority = _certificate_builder(authority_name, authority_name, authority_key.public_key()).add_extension(
        about, critical=True
    )
    server = (
        _certificate_builder(_common_name(hosts[0]), authority_name, server_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    for name, draft in (("ca.crt", authority), ("server.crt", server)):
        (folder / name).write_bytes(draft.sign(authority_key, SHA256()).public_bytes(Encoding.PEM))
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_secret(folder / "ca.key", authority_key.private_bytes(*plain))
    write_secret(folder / "server.tls.key", server_key.private_bytes(*plain))


def check_certificates(folder: Path) -> None:
    """That TLS can be spoken with what `write_certificates` wrote, as long as nobody wrote over it."""
    authority, own, key = folder / "ca.crt", folder / "server.crt", folder / "server.tls.key"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(cafile=authority)
    except OSError:  # which ssl's own errors are too
        raise InvalidInput(
            f"{authority} is no certificate that can be read.", fix="Restore it from its backup."
        ) from None
    try:
        context.load_cert_chain(own, key, password="")  # or it would ask for one
    except OSError:
        raise InvalidInput(
            f"{own} and {key} are not a certificate and its key, or can't be read.",
            fix="Restore them from their backup.",
        ) from None


def write_node_key(path: Path) -> str:
    """The key by which the SuperLink knows a node, as Flower wants it; what is public of it is given back."""
    private = ec.generate_private_key(CURVE())
    write_secret(path, private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def is_node_key(text: str) -> bool:
    """Whether it is what `write_node_key` gives back, or a key like it."""
    try:
        return isinstance(load_ssh_public_key(text.encode()), ec.EllipticCurvePublicKey)
    except (ValueError, UnsupportedAlgorithm):
        return False


def write_signing_key(path: Path) -> str:
    """An Ed25519 key to sign with; what is public of it is given back, in hexadecimal."""
    return key_agreement.identity_key(write_key(path)).hex()


def write_key(path: Path) -> bytes:
    """A new secret of 32 bytes, in hexadecimal."""
    secret = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    write_secret(path, secret.hex().encode() + b"\n")
    return secret


def read_key(path: Path) -> bytes:
    """What `write_key` wrote. What else a file holds may be a secret too, and is not said."""
    try:
        found = path.read_bytes().strip()
    except OSError:
        raise InvalidInput(f"There is no key at {path} that can be read.", fix="Restore it from its backup.") from None
    if not re.fullmatch(rb"[0-9a-fA-F]{%d}" % (2 * key_agreement.KEY_BYTES), found):
        raise InvalidInput(
            f"A key is {2 * key_agreement.KEY_BYTES} hexadecimal digits, and {path} holds something else.",
            fix="Restore it from its backup.",
        )
    return bytes.fromhex(found.decode())


def write_secret(path: Path, content: bytes) -> None:
    """A new file that its owner alone may read; one that is there is never written over."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{path} is there already, and is left as it is.", fix="Name another folder.") from None
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(fd)


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(now + timedelta(days=365 * YEARS))
    )


def _common_name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
