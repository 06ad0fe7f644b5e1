"""A step of training on a GPU, recorded once as a CUDA graph and replayed: its many small kernels take less time than
launching them one by one from Python.
"""

import gc
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

T = TypeVar("T")
Key: TypeAlias = tuple[Hashable, ...]

RECORD_AFTER = 3  # a shape that comes back so often is recorded: the making costs about as many steps
MAX_RECORDINGS = 8  # each holds a copy of what it is given


@dataclass(frozen=True)
class Recording:
    """One step in fixed shapes. What it gives is overwritten by the next replay of any recording beside it."""

    graph: Any
    inputs: list[Tensor]
    outputs: Any

    @classmethod
    def record(cls, step: Callable[..., T], given: list[Any], form: Any, pool: Any) -> "Recording":
        held = [value.clone() if isinstance(value, Tensor) else value for value in given]
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        drawn = generator.get_state()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries choose their kernels and workspaces before anything is recorded
            for _ in range(2):
                step(*tree_unflatten(held, form))
        torch.cuda.current_stream().wait_stream(side)
        generator.set_state(drawn)  # as if it had not been tried: a resumed run records at another step
        graph = torch.cuda.CUDAGraph()
        with _pause_garbage_collection(), torch.cuda.graph(graph, pool=pool):
            outputs = step(*tree_unflatten(held, form))
        return cls(graph, held, outputs)

    def replay(self, given: list[Any]) -> Any:
        for held, new in zip(self.inputs, given, strict=True):
            if isinstance(held, Tensor) and held is not new:
                held.copy_(new)
        self.graph.replay()
        return self.outputs


@dataclass(eq=False)
class Recordings:
    """The recordings of one network, by what was recorded and in which shapes: the few that were used last."""

    kept: "OrderedDict[Key, Recording]" = field(default_factory=OrderedDict, repr=False)
    seen: Counter[Key] = field(default_factory=Counter, repr=False)

    @cached_property
    def _pool(self) -> Any:
        """Memory that all share, since one is replayed after the other."""
        return torch.cuda.graph_pool_handle()

    def run(self, name: Hashable, step: Callable[..., T], *given: Any) -> T:
        """step(*given). On a GPU it is replayed from the third time on that it comes in these shapes."""
        flat, form = tree_flatten(given)
        if not any(isinstance(value, Tensor) and value.is_cuda for value in flat):
            return step(*given)
        key = (name, *(_shape(value) for value in flat))
        recording = self.kept.get(key)
        if recording is None:
            self.seen[key] += 1
            if self.seen[key] < RECORD_AFTER:
                return step(*given)
            if self.seen[key] > RECORD_AFTER or not self._record(key, step, flat, form):
                return step(*given)  # it can't be recorded: it waits for the device, say
            recording = self.kept[key]
        self.kept.move_to_end(key)
        played: T = recording.replay(flat)
        return played

    def _record(self, key: Key, step: Callable[..., T], flat: list[Any], form: Any) -> bool:
        """Whether it could be recorded. What fails here would fail in every replay, and works as it is."""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # it is what is left of a step that failed
                self.kept[key] = Recording.record(step, flat, form, self._pool)
        except RuntimeError:
            torch.cuda.synchronize()
            return False
        self.seen[key] = 0  # should it be dropped and come back
        if len(self.kept) > MAX_RECORDINGS:
            self.kept.popitem(last=False)
        return True


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Within it no garbage is collected: to free an old recording would spoil the one that is being made."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _shape(value: Any) -> Hashable:
    return (value.shape, value.dtype, value.device) if isinstance(value, Tensor) else value
