"""The process keeps memory that training has freed, where the C library lets it, and leaves a user's settings alone."""

import subprocess
import sys

import pytest

GROWTH = """
import resource, torch
from discreet.freed_memory import keep_freed_memory
kept = keep_freed_memory()
for _ in range(3):
    torch.ones(2**22)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(2**22)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(int(kept), faults)
"""
PAGES = 2**24 // 4096  # of one such tensor


def run(**environment: str) -> tuple[bool, int]:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True, env={"PATH": "", **environment}
    )
    kept, faults = done.stdout.split()
    return bool(int(kept)), int(faults)


def test_a_freed_tensor_is_not_cleared_again_page_by_page() -> None:
    kept, faults = run()
    if not kept:
        pytest.skip("another C library is running here, not glibc")
    assert faults < PAGES


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"])
def test_settings_of_the_environment_stay(name: str) -> None:
    kept, _ = run(**{name: "glibc.malloc.arena_max=1" if name == "GLIBC_TUNABLES" else "1"})
    assert not kept
