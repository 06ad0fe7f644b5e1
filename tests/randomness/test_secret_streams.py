"""What a real client relies on: a key for every place, standard ChaCha20, and refusals with a sentence."""

import ast
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from randomgen import ChaCha

from discreet.errors import InvalidInput, MissingExtra, UnsoundCombination, Unsupported
from discreet.randomness import secret_streams
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

KEY = RunKey(b"a secret of exactly 32 bytes ...")
DIGEST = bytes(range(32))
NAMES = st.lists(st.integers() | st.text(max_size=5), max_size=3).map(tuple)


@given(st.tuples(st.integers(), st.binary(max_size=4), st.integers(), NAMES))
def test_what_a_key_is_made_from_can_be_read_back(place: tuple[object, ...]) -> None:
    """So no two places make one message, and keys differ unless BLAKE2b collides."""
    assert ast.literal_eval(ascii(place)) == place


def test_every_place_has_a_key_of_its_own() -> None:
    here = KEY.secret_rows(1, DIGEST, 11)
    places = [here, KEY.secret_rows(11, DIGEST, 1), KEY.secret_rows(1, DIGEST[::-1], 11), replace(here, name=(11,))]
    names = [("a", "b"), ("ab",), ("a", "", "b"), ("a, b",), ("",), (1,), ("1",), (-1,)]
    places += [replace(here, name=name) for name in names]
    keys = {tuple(g.bit_generator.state["state"]["keysetup"]) for rows in places for g in rows.generators()}
    assert len(keys) == len(places) == 12
    assert here.for_purpose(Purpose.LOCAL, 1).for_purpose(Purpose.NOISE).name == ("local", 1, "noise")


def test_all_256_bits_of_a_key_count() -> None:
    assert len({ChaCha(key=1 << bit).random_raw(8).tobytes() for bit in range(256)}) == 256


RFC_8439 = {  # words 12 to 15 of the state (counter and nonce, little-endian): key, counter, nonce and the key stream
    "2.3.2": (
        bytes(range(32)),
        (1, "000000090000004a00000000"),
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    "A.1 #2": (
        bytes(32),
        (1, "000000000000000000000000"),
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
}


@pytest.mark.parametrize("vector", RFC_8439)
def test_the_generator_is_chacha20_as_the_standard_has_it(vector: str) -> None:
    """randomgen counts words of 32 bits, 16 to a block, and has no nonce: its counter runs through all four words."""
    key, (counter, nonce), expected = RFC_8439[vector]
    place = counter | int.from_bytes(bytes.fromhex(nonce), "little") << 32
    words = ChaCha(key=int.from_bytes(key, "little"), counter=16 * place, rounds=20).random_raw(8)
    assert words.astype("<u8").tobytes().hex() == expected


def test_a_stream_is_the_key_stream_from_its_first_block_on() -> None:
    """Numbers are the upper 53 bits of consecutive words, which another test compares with the standard."""
    (generator,) = KEY.secret_rows(0, DIGEST, 0).generators()
    key = generator.bit_generator.state["state"]["keysetup"].astype("<u4").tobytes()
    words = ChaCha(key=int.from_bytes(key, "little"), counter=0, rounds=20).random_raw(20)
    drawn = KEY.secret_rows(0, DIGEST, 0).open().uniform([20])[0]
    assert drawn.tolist() == ((words >> np.uint64(11)) * 2.0**-53).tolist()


def test_a_seed_is_no_secret() -> None:
    with pytest.raises(UnsoundCombination, match="A seed protects nobody"):
        RunKey.from_seed(7).secret_rows(0, DIGEST, 0)


def test_a_client_without_randomgen_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "randomgen", None)
    secret_streams._chacha20.cache_clear()
    with pytest.raises(MissingExtra, match=r"needs randomgen.*discreet\[train\]"):
        KEY.secret_rows(0, DIGEST, 0)


def test_a_generator_that_is_not_chacha20_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    short = SimpleNamespace(ChaCha=lambda **fields: ChaCha(**(fields | {"rounds": 8})))
    monkeypatch.setitem(sys.modules, "randomgen", short)
    secret_streams._chacha20.cache_clear()
    with pytest.raises(Unsupported, match="other bytes than ChaCha20"):
        KEY.secret_rows(0, DIGEST, 0)


@pytest.mark.parametrize("name", [0.5, True, np.int64(3), None, object()])
def test_a_name_that_is_not_written_in_one_way_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match="named by whole numbers and strings"):
        KEY.secret_rows(0, DIGEST, 0).for_purpose(Purpose.LOCAL, name)  # type: ignore[arg-type]


def test_noise_without_a_whole_secret_or_a_broadcast_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be 32 bytes long, and this one has 5"):
        RunKey(b"short").secret_rows(0, DIGEST, 0)
    with pytest.raises(InvalidInput, match="two broadcasts could share their noise"):
        KEY.secret_rows(0, b"", 0)
