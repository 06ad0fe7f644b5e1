"""Certificates and keys of servers and clients: creating, writing, reading and checking them."""

import ipaddress
import re
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_ssh_public_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from discreet.durable_files import ANYONE, OWNER, create_secret
from discreet.errors import InvalidInput
from discreet.secure_sums.secagg import key_agreement

YEARS = 3
CURVE = ec.SECP384R1
PLAIN_PEM = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class Authority(NamedTuple):
    """A deployment's certificate authority: its certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls) -> "Authority":
        """Create an authority that is valid for three years."""
        key, name = ec.generate_private_key(CURVE()), _common_name("discreet authority")
        draft = (
            _certificate_builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage("key_cert_sign"), critical=True)
        )
        return cls(_sign(draft, key), key)

    @classmethod
    def read(cls, folder: Path) -> "Authority":
        """Read the authority in a server's folder.

        Raises:
            InvalidInput: ca.crt or ca.key can't be read, or they don't belong together.
        """
        try:
            certificate = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
            key = load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
        except (OSError, ValueError, TypeError):
            key = None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise InvalidInput(
                f"{folder / 'ca.crt'} and {folder / 'ca.key'} must be a certificate and its key, and are not.",
                fix="Restore them from their backup, or create a new authority with --authority.",
            )
        return cls(certificate, key)

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Return the contents of ca.crt and ca.key, with who may read them."""
        return {
            "ca.crt": (self.certificate.public_bytes(Encoding.PEM), ANYONE),
            "ca.key": (self.key.private_bytes(*PLAIN_PEM), OWNER),
        }

    def server_files(self, hosts: Sequence[str]) -> dict[str, tuple[bytes, int]]:
        """Return a new server certificate for these host names and addresses, with its key, as `files` does.

        It has all that strict checks ask for, which Python makes from 3.13 on: key identifiers and key usage. It is
        valid for three years, but not longer than the authority, without which nobody would accept it.
        """
        key = ec.generate_private_key(CURVE())
        end = self.certificate.not_valid_after_utc
        draft = (
            _certificate_builder(_common_name(hosts[0]), self.certificate.subject, key.public_key(), end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage("digital_signature"), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        return {
            "server.crt": (_sign(draft, self.key).public_bytes(Encoding.PEM), ANYONE),
            "server.tls.key": (key.private_bytes(*PLAIN_PEM), OWNER),
        }


def _sign(draft: x509.CertificateBuilder, authority: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    return draft.add_extension(issuer, critical=False).sign(authority, SHA256())


def certificate_hosts(host: str) -> list[str]:
    """Return the names for which a server's certificate is valid: its host, and this machine's own."""
    return list(dict.fromkeys([host, "localhost", "127.0.0.1"]))


def write_certificates(folder: Path, hosts: Sequence[str]) -> None:
    """Write a new certificate authority, and a server certificate for these host names and addresses."""
    authority = Authority.create()
    for name, (content, mode) in {**authority.files(), **authority.server_files(hosts)}.items():
        if mode == OWNER:
            write_secret(folder / name, content)
        else:
            (folder / name).write_bytes(content)


def check_certificates(folder: Path) -> None:
    """Check that the files which `write_certificates` wrote are still valid for a TLS server, on this day too."""
    authority, own, key = folder / "ca.crt", folder / "server.crt", folder / "server.tls.key"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(cafile=authority)
    except OSError:  # the base class of ssl's errors too
        raise InvalidInput(f"{authority} is not a readable certificate.", fix="Restore it from its backup.") from None
    try:
        context.load_cert_chain(own, key, password="")  # nosec B106 # without it OpenSSL would ask for one
    except OSError:
        raise InvalidInput(
            f"{own} and {key} are not a certificate and its key, or can't be read.",
            fix="Restore them from their backup.",
        ) from None
    for path in (authority, own):
        _check_dates(path, datetime.now(UTC))


def _check_dates(path: Path, now: datetime) -> None:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    if now > certificate.not_valid_after_utc:
        raise InvalidInput(
            f"{path} has expired on {certificate.not_valid_after_utc:%Y-%m-%d}, by this machine's clock, which says "
            f"{now:%Y-%m-%d}: no client would connect.",
            fix="If the clock is right, renew it with `discreet deploy renew`.",
        )
    if now < certificate.not_valid_before_utc:
        raise InvalidInput(
            f"{path} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} on, and this machine's clock says "
            f"{now:%Y-%m-%d}.",
            fix="Set the clock.",
        )


def expiry_time(path: Path) -> float:
    """Return when a certificate expires, in seconds since 1970."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        raise InvalidInput(f"{path} is not a readable certificate.", fix="Restore it from its backup.") from None


def write_node_key(path: Path) -> str:
    """Write a new key by which the SuperLink authenticates a node, in Flower's format. Returns its public key."""
    private, public = create_node_key()
    write_secret(path, private)
    return public


def create_node_key() -> tuple[bytes, str]:
    """Return a new node key: the content of its file, and its public key."""
    private = ec.generate_private_key(CURVE())
    content = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return content, _format_node_key(private.public_key())


def _format_node_key(key: ec.EllipticCurvePublicKey) -> str:
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def is_node_key(text: str) -> bool:
    """Whether the text is a public key exactly as `write_node_key` returns it, so that equal keys are equal texts."""
    try:
        key = load_ssh_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        return False
    return isinstance(key, ec.EllipticCurvePublicKey) and _format_node_key(key) == text


def write_signing_key(path: Path) -> str:
    """Write a new Ed25519 signing key. Returns its public key in hexadecimal."""
    return key_agreement.identity_key(write_key(path)).hex()


def write_key(path: Path) -> bytes:
    """Write and return a new secret of 32 bytes; the file has it in hexadecimal."""
    secret = key_agreement.random_bytes(key_agreement.KEY_BYTES)
    write_secret(path, format_key(secret))
    return secret


def format_key(secret: bytes) -> bytes:
    """Return the content of a key's file."""
    return secret.hex().encode() + b"\n"


def read_key(path: Path) -> bytes:
    """Read a key that `write_key` wrote. Errors don't quote the file, since its content may be secret."""
    try:
        digits = path.read_bytes().strip()
    except OSError:
        raise InvalidInput(f"There is no readable key at {path}.", fix="Restore it from its backup.") from None
    if not re.fullmatch(rb"[0-9a-fA-F]{%d}" % (2 * key_agreement.KEY_BYTES), digits):
        raise InvalidInput(
            f"A key must be {2 * key_agreement.KEY_BYTES} hexadecimal digits, and {path} contains something else.",
            fix="Restore it from its backup.",
        )
    return bytes.fromhex(digits.decode())


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner may read. An existing file is never overwritten."""
    try:
        create_secret(path, content)
    except FileExistsError:
        raise InvalidInput(f"{path} already exists, and is left as it is.", fix="Name another folder.") from None


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, end: datetime | None = None
) -> x509.CertificateBuilder:
    """Return a certificate for three years, but not beyond `end`."""
    now = datetime.now(UTC)
    last = now + timedelta(days=365 * YEARS)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks differ
        .not_valid_after(last if end is None else min(last, end))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _key_usage(only: str) -> x509.KeyUsage:
    """Return a key usage that allows one purpose."""
    purposes = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{purpose: purpose == only for purpose in purposes})


def _common_name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
