"""The faults of a drill other than kills: what fails, where, for how long, and how it is done."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from discreet.durable_files import storage_fault
from tests.deploy.real_deployment import CLIENTS
from tests.drill.grounds import FILL, Grounds, fill_disk, make_read_only
from tests.drill.proxy import CUT, HALF_CLOSED, PASS, SILENT, SLOW

DAY = 86400  # seconds
NODE = CLIENTS[0]


class Fault(NamedTuple):
    """A fault that lasts `seconds`.

    Attributes:
        apply: Causes the fault while the block lasts.
        is_possible: Whether it can be caused on this machine.
    """

    name: str
    seconds: float
    apply: Callable[[Grounds], AbstractContextManager[None]]
    is_possible: Callable[[Grounds], bool] = lambda grounds: True


def part_of(grounds: Grounds, where: str) -> Path:
    """Return the folder of the server or of a node."""
    return grounds.site.server if where == "server" else grounds.folder / where


@contextmanager
def network(mode: str, grounds: Grounds) -> Iterator[None]:
    assert grounds.proxy is not None
    grounds.proxy.set_mode(mode)
    try:
        yield
    finally:
        grounds.proxy.set_mode(PASS)


@contextmanager
def full_disk(where: str, grounds: Grounds) -> Iterator[None]:
    part = part_of(grounds, where)
    fill_disk(part)
    assert storage_fault(part)
    try:
        yield
    finally:
        (part / FILL).unlink()


@contextmanager
def read_only(where: str, grounds: Grounds) -> Iterator[None]:
    part = part_of(grounds, where)
    make_read_only(part, on=True)
    assert storage_fault(part)
    try:
        yield
    finally:
        make_read_only(part, on=False)


@contextmanager
def clock(where: str, seconds: int, grounds: Grounds) -> Iterator[None]:
    grounds.set_clock(where, seconds)
    try:
        yield
    finally:
        grounds.set_clock(where, 0)


@contextmanager
def no_memory(role: str, grounds: Grounds) -> Iterator[None]:
    order = grounds.folder / f"no-memory-{role}"
    order.touch()
    try:
        yield
    finally:
        order.unlink()


def _disk_faults(where: str) -> list[Fault]:
    place = "the server" if where == "server" else "a node"
    return [
        Fault(
            f"the disk of {place} is full",
            20,
            partial(full_disk, where),
            lambda grounds: grounds.has_disk(part_of(grounds, where)),
        ),
        Fault(f"the folder of {place} is read-only", 20, partial(read_only, where)),
        *(
            Fault(
                f"the clock of {place} jumps {way} by a day and back",
                20,
                partial(clock, where, seconds),
                lambda grounds: grounds.has_clocks,
            )
            for way, seconds in (("forward", DAY), ("back", -DAY))
        ),
    ]


FAULTS = (
    Fault("the network is cut for 5 s", 5, partial(network, CUT)),
    Fault("the network is cut for 75 s", 75, partial(network, CUT)),
    Fault("the network is silent for 30 s", 30, partial(network, SILENT)),
    Fault("the network is slow for 40 s", 40, partial(network, SLOW)),
    Fault("connections are half closed", 5, partial(network, HALF_CLOSED)),
    *_disk_faults("server"),
    *_disk_faults(NODE),
    Fault("no memory in a block of a node", 10, partial(no_memory, NODE)),
    Fault("no memory in a step of the server", 10, partial(no_memory, "run")),
)
