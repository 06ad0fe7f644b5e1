"""The readers return what was written, and refuse truncated or other files."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from discreet.data.datasets.file_formats import read_cifar, read_idx, read_npz
from discreet.errors import InvalidInput
from tests.data.datasets.small_datasets import idx_of

SHAPES = arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)


@given(st.one_of(arrays.arrays(np.uint8, SHAPES), arrays.arrays(np.int32, SHAPES)))
def test_an_idx_file_holds_bytes_or_int32_of_any_shape(values: NDArray[np.uint8]):
    read = read_idx(idx_of(values), "some file")
    assert read.dtype == values.dtype
    assert np.array_equal(read, values)


@given(arrays.arrays(np.uint8, SHAPES), st.data())
def test_an_idx_file_cut_short_anywhere_is_refused(values: NDArray[np.uint8], data: st.DataObject):
    whole = idx_of(values)
    with pytest.raises(InvalidInput):
        read_idx(whole[: data.draw(st.integers(0, len(whole) - 1))], "some file")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "starts with nothing"),
        (b"\x1f\x8b\x08\x00 still compressed", "starts with 1f8b0800"),
        (b"\0\0\x0d\x01\0\0\0\0", "starts with 00000d01"),
        (b"\0\0\x08\xff" + bytes(2000), "starts with 000008ff"),
        (b"\0\0\x08\x01\0\0\0\x05abc", r"must have 5 bytes for the shape \(5,\), and has 3"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "must have 2 bytes"),
        (b"\0\0\x08\x03\0\0\0\x02", "cut short"),
    ],
)
def test_what_is_no_idx_file_is_refused_in_a_sentence(content: bytes, sentence: str):
    with pytest.raises(InvalidInput, match=f"some file.*{sentence}"):
        read_idx(content, "some file")


@pytest.mark.parametrize(("label_bytes", "column"), [(1, 0), (2, 0), (2, 1)])
def test_a_cifar_record_is_its_labels_and_three_planes(label_bytes: int, column: int):
    written = np.random.default_rng(0).integers(0, 256, (3, label_bytes + 3072), np.uint8)
    images, labels = read_cifar(written.tobytes(), "some file", label_bytes=label_bytes, column=column)
    assert images.shape == (3, 3, 32, 32)
    assert np.array_equal(labels, written[:, column])
    assert images[1, 2, 31, 30] == written[1, label_bytes + 2 * 1024 + 31 * 32 + 30]  # blue, last row


@pytest.mark.parametrize("size", [0, 1, 3072, 3074, 3073 * 2 - 1])
def test_half_a_cifar_record_is_refused(size: int):
    with pytest.raises(
        InvalidInput, match=f"some file must consist of whole CIFAR records of 3,073 bytes, and has {size:,}"
    ):
        read_cifar(bytes(size), "some file", label_bytes=1)


def pack(**held: NDArray[np.generic]) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **held)  # type: ignore[arg-type]
    return out.getvalue()


def test_an_npz_file_gives_the_arrays_that_were_asked_for():
    second, first = read_npz(pack(a=np.arange(3), b=np.array(["x"])), "some file", "b", "a")
    assert (second.tolist(), first.tolist()) == (["x"], [0, 1, 2])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (pack(a=np.arange(3)), "some file lacks the array 'b', and has a. It needs a, b."),
        (pack(a=np.array([{}], dtype=object), b=np.arange(1)), "some file is not an npz file of plain arrays"),
        (pack(a=np.arange(3), b=np.arange(3))[:-40], "some file is not an npz file of plain arrays"),
        (b"", "some file is not an npz file: it starts with nothing"),
        (b"neither", "some file is not an npz file: it starts with 6e656974"),
    ],
)
def test_what_is_no_npz_file_of_these_arrays_is_refused(content: bytes, sentence: str):
    with pytest.raises(InvalidInput, match=sentence):
        read_npz(content, "some file", "a", "b")


def test_a_single_array_is_no_npz_file():
    out = io.BytesIO()
    np.save(out, np.arange(3))
    with pytest.raises(InvalidInput, match="not an npz file"):
        read_npz(out.getvalue(), "some file", "a")
