"""The primitives are the published ones: known answers of their RFCs."""

import hashlib
import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.derivations import RoundBinding, pair_masks
from discreet.secure_sums.secagg.masks import Masks
from discreet.secure_sums.secagg.ring_vectors import Ring
from discreet.secure_sums.secagg.session_errors import WrongKeys
from tests.secure_sums.secagg.cohorts import terms

CHACHA20 = (  # RFC 8439, appendix A.1, test vectors 1 and 2: key 0, nonce 0, blocks 0 and 1
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
    "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
    "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
)


def test_agreement_is_x25519_of_rfc_7748_section_6_1():
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert key_agreement.public_key(alice).hex() == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    assert key_agreement.agree(alice, {7: key_agreement.public_key(bob)})[7].hex() == shared
    assert key_agreement.agree(bob, {8: key_agreement.public_key(alice)})[8].hex() == shared


@pytest.mark.parametrize("point", sorted(key_agreement.SMALL_ORDER_POINTS))
@pytest.mark.parametrize("unused_bit", [0, 1])
def test_a_public_key_of_small_order_is_refused(point: int, unused_bit: int):
    """X25519 ignores the highest bit, so every point has two spellings."""
    public = (point | unused_bit << 255).to_bytes(32, "little")
    assert key_agreement.is_small_order(public)
    with pytest.raises(WrongKeys, match="with everybody"):
        key_agreement.agree(bytes(range(32)), {0: public})


def test_no_other_key_has_small_order():
    """Eight times a point of small order is zero; on the curve and its twist their orders are 1, 2, 4 and 8."""
    prime = 2**255 - 19

    def double(x: int, z: int) -> tuple[int, int]:
        """Double a point of y² = x³ + 486662x² + x in projective coordinates, by its x alone."""
        plus, minus = (x + z) ** 2, (x - z) ** 2
        return plus * minus % prime, (plus - minus) * (minus + 121666 * (plus - minus)) % prime

    def is_killed_by_eight(u: int) -> bool:
        point = u % prime, 1
        for _ in range(3):
            point = double(*point)
        return point[1] == 0

    assert all(map(is_killed_by_eight, key_agreement.SMALL_ORDER_POINTS))
    others = [2, 9, prime - 2, *(int.from_bytes(hashlib.sha256(bytes([each])).digest()) for each in range(50))]
    assert not any(map(is_killed_by_eight, others))
    assert not any(key_agreement.is_small_order((each % 2**255).to_bytes(32, "little")) for each in others)


def test_the_hkdf_is_that_of_rfc_5869_test_case_1():
    info, salt = bytes(range(0xF0, 0xFA)), bytes(range(13))
    made = HKDF(SHA256(), 42, salt=salt, info=info).derive(b"\x0b" * 22)
    assert made.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"


def test_a_derived_key_is_one_block_of_hkdf_over_its_purpose():
    extracted = hmac.digest(b"context", b"secret", hashlib.sha256)
    expanded = hmac.digest(extracted, b"('discreet secagg', 'pair mask', 3, b'x')\x01", hashlib.sha256)
    assert key_agreement.derive(b"secret", b"context", "pair mask", 3, b"x") == expanded


def test_purposes_never_meet():
    purposes: list[tuple[str | int | bytes, ...]] = [
        ("a",),
        (b"a",),
        ("a", 1),
        ("a", "1"),
        ("a1",),
        ("a", 1, 1),
        ("a", 11),
    ]
    assert len({key_agreement.derive(bytes(32), b"", *each) for each in purposes}) == len(purposes)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_a_mask_is_chacha20_of_rfc_8439(bits: int):
    ring = Ring(bits, 128 * 8 // bits)
    total = ring.zeros()
    Masks(ring).add(total, bytes(32))
    assert total.tobytes().hex() == CHACHA20


def test_a_mask_that_is_taken_away_leaves_the_vector():
    ring = Ring(20, 1000)
    masks, given = Masks(ring), np.arange(1000)
    total = ring.to_ring(given)
    masks.add(total, b"k" * 32)
    assert not np.array_equal(ring.reduce(total), given)
    masks.subtract(total, b"k" * 32)
    assert np.array_equal(ring.reduce(total), given)


def test_a_signature_is_ed25519_of_rfc_8032_section_7_1():
    identity = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    signature = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )
    assert key_agreement.identity_key(identity) == public
    assert key_agreement.sign(identity, b"") == signature
    assert key_agreement.is_signature_valid(public, b"", signature)
    assert not key_agreement.is_signature_valid(public, b"x", signature)
    assert not key_agreement.is_signature_valid(public, b"", signature[:-1] + b"\x00")


def test_a_seal_opens_for_its_key_alone_and_shows_any_change():
    sealed = key_agreement.seal(b"k" * 32, b"a share", b"label")
    assert key_agreement.unseal(b"k" * 32, sealed, b"label") == b"a share"
    for place in range(len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        assert key_agreement.unseal(b"k" * 32, changed, b"label") is None
    assert key_agreement.unseal(b"l" * 32, sealed, b"label") is None
    assert key_agreement.unseal(b"k" * 32, sealed, b"lapel") is None


def test_two_seals_of_one_thing_differ():
    assert key_agreement.seal(b"k" * 32, b"a share", b"") != key_agreement.seal(b"k" * 32, b"a share", b"")


def test_two_clients_share_a_mask_of_their_own_in_every_round():
    agreed = terms(4)
    one, other = bytes(range(32)), bytes(range(1, 33))
    publics = {each: key_agreement.public_key(key) for each, key in ((1, one), (2, other))}

    def derive_mask(binding: RoundBinding, client: int, private: bytes, peer: int, public: bytes) -> bytes:
        return pair_masks(agreed, binding, client, private, {peer: public})[peer]

    zero = RoundBinding(b"roster", 0, b"subject")
    first = derive_mask(zero, 1, one, 2, publics[2])
    assert first == derive_mask(zero, 2, other, 1, publics[1])
    assert first != derive_mask(zero._replace(number=1), 1, one, 2, publics[2])
    assert first != derive_mask(zero._replace(roster=b"another"), 1, one, 2, publics[2])
    assert first != derive_mask(zero._replace(subject=b"another"), 1, one, 2, publics[2])
    assert first != derive_mask(zero, 1, one, 3, publics[2])
    assert first != pair_masks(terms(4), zero, 1, one, {2: publics[2]})[2]  # another session
