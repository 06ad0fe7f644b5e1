"""Read arrays from the file formats of public data sets: idx, CIFAR's binary format, and npz without pickles."""

import io
import math
import zipfile
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput, nearest_names

Bytes = NDArray[np.uint8]

IDX_TYPES: dict[int, np.dtype[Any]] = {0x08: np.dtype(np.uint8), 0x0C: np.dtype(">i4")}
MOST_DIMENSIONS = 32  # a file with more is not an idx file
SIDE = 32  # a CIFAR image has three planes of 32 by 32 pixels
PIXELS = 3 * SIDE * SIDE


class LabelledImages(NamedTuple):
    """Images, and one label for each."""

    images: Bytes
    labels: NDArray[Any]

    def select(self, images: NDArray[Any]) -> "LabelledImages":
        """Return some of the images, by index or by mask, with their labels."""
        return LabelledImages(self.images[images], self.labels[images])


def read_idx(content: bytes, name: str) -> NDArray[Any]:
    """Read an idx file: an array of bytes or of big-endian int32 with any number of dimensions.

    The format is two zero bytes, a type, the number of dimensions, their lengths, and the values.
    """
    head = content[:4]
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in IDX_TYPES or head[3] > MOST_DIMENSIONS:
        raise InvalidInput(
            f"{name} is not an idx file of bytes or int32: it starts with {head.hex() or 'nothing'}.",
            fix="Such a file starts with 000008 or 00000c and the number of dimensions.",
        )
    dtype, dimensions = IDX_TYPES[head[2]], head[3]
    start = 4 + 4 * dimensions
    lengths = tuple(int(length) for length in np.frombuffer(content[4:start], ">u4")) if len(content) >= start else ()
    held, needed = len(content) - start, math.prod(lengths) * dtype.itemsize
    if len(lengths) != dimensions or held != needed:
        raise InvalidInput(
            f"{name} is cut short or too long: after the idx header it must have {needed:,} bytes for the shape "
            f"{lengths}, and has {max(held, 0):,}.",
            fix="Get the file anew.",
        )
    values = np.frombuffer(content, dtype, offset=start).reshape(lengths)
    return values.astype(dtype.newbyteorder("="), copy=False)


def read_cifar(content: bytes, name: str, *, label_bytes: int, column: int = 0) -> LabelledImages:
    """Read CIFAR records: label bytes, then the red, the green and the blue plane of an image.

    Args:
        label_bytes: The number of labels of an image, one byte each.
        column: Which of them to read.
    """
    record = label_bytes + PIXELS
    if not content or len(content) % record:
        raise InvalidInput(
            f"{name} must consist of whole CIFAR records of {record:,} bytes, and has {len(content):,} bytes.",
            fix="Get the file anew.",
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record)
    return LabelledImages(rows[:, label_bytes:].reshape(-1, 3, SIDE, SIDE), rows[:, column])


def read_npz(content: bytes, name: str, *wanted: str) -> list[NDArray[Any]]:
    """Read arrays of an npz file, in the order of `wanted`. Refuse pickled arrays, which could run code."""
    if not content.startswith(b"PK"):  # the start of a zip archive, which an npz file is
        raise InvalidInput(f"{name} is not an npz file: it starts with {content[:4].hex() or 'nothing'}.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            if lacking := [array for array in wanted if array not in arrays]:
                held = nearest_names(list(arrays), lacking[0]) or "none"
                raise InvalidInput(
                    f"{name} lacks the array {lacking[0]!r}, and has {held}.",
                    fix=f"It needs {', '.join(wanted)}.",
                )
            return [arrays[array] for array in wanted]
    except (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{name} is not an npz file of plain arrays ({error}).", fix="Get the file anew.") from None
