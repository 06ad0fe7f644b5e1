"""Let the process keep memory that it has freed, where a training step frees and takes the same tensors again."""

import ctypes
import os

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h
LARGEST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Ask the C library to keep freed memory for the next tensors; returns whether it does.

    By default glibc maps every large tensor anew and unmaps it when it is freed. The system then clears each page again
    when it is first written, which took a third of a round of federated averaging on a CPU. Settings of glibc in the
    environment (MALLOC_..., GLIBC_TUNABLES) are left as they are, and so are other C libraries.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # no glibc
        return False
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, LARGEST))
