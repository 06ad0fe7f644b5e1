"""Clients with equal settings, and the algorithm that each such group runs."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from discreet.algorithms import per_client

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm

ClientGroups: TypeAlias = "tuple[tuple[tuple[int, ...] | None, Algorithm], ...]"


@lru_cache(maxsize=32)
def group_clients(algorithm: "Algorithm", clients: int) -> ClientGroups:
    """Group clients whose settings are equal, and give each group an algorithm with single values."""
    trainer, mechanism = algorithm.trainer, algorithm.mechanism
    settings = [getattr(part, name) for part in (trainer, mechanism) for name in per_client.client_fields(part)]
    groups: dict[tuple[float, ...], list[int]] = {}
    for client in range(clients):
        groups.setdefault(tuple(values[client] for values in settings), []).append(client)
    return tuple(
        (
            tuple(group),
            replace(
                algorithm,
                trainer=per_client.for_client(trainer, group[0]),
                mechanism=per_client.for_client(mechanism, group[0]),
            ),
        )
        for group in groups.values()
    )
