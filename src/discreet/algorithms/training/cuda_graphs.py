"""Record a training step on a GPU as a CUDA graph and replay it.

A step has many small kernels, and launching them one by one from Python takes longer than running them.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from discreet.client_layers.precision import precision_in_force
from discreet.lazy_torch import Tensor, torch

T = TypeVar("T")
Key: TypeAlias = tuple[Hashable, ...]

RECORD_AFTER = 3  # times that a shape must occur: recording costs about as many steps
MAX_RECORDINGS = 8  # each holds a copy of its inputs


@dataclass(frozen=True)
class RecordedStep:
    """One step in fixed shapes. The next replay of any recording in the same pool overwrites its outputs."""

    graph: Any
    inputs: list[Tensor]
    outputs: Any

    @classmethod
    def record(cls, step: Callable[..., T], arguments: list[Any], form: Any, pool: Any) -> RecordedStep:
        """Run the step twice to warm up, then record it. The random state is as if the warm-up had not happened."""
        inputs = [value.clone() if isinstance(value, torch.Tensor) else value for value in arguments]
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        random_state = generator.get_state()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries choose kernels and workspaces before the recording
            for _ in range(2):
                step(*torch.utils._pytree.tree_unflatten(inputs, form))
        torch.cuda.current_stream().wait_stream(side)
        generator.set_state(random_state)  # a resumed run records at another step, and must draw the same
        graph = torch.cuda.CUDAGraph()
        with _pause_garbage_collection(), torch.cuda.graph(graph, pool=pool):
            outputs = step(*torch.utils._pytree.tree_unflatten(inputs, form))
        return cls(graph, inputs, outputs)

    def replay(self, arguments: list[Any]) -> Any:
        """Copy the arguments into the recorded inputs and replay the graph."""
        for recorded, new in zip(self.inputs, arguments, strict=True):
            if isinstance(recorded, torch.Tensor) and recorded is not new:
                recorded.copy_(new)
        self.graph.replay()
        return self.outputs


@dataclass(eq=False)
class Recordings:
    """The recordings of one network by step and shapes; only the most recently used are kept."""

    kept: OrderedDict[Key, RecordedStep] = field(default_factory=OrderedDict, repr=False)
    seen: Counter[Key] = field(default_factory=Counter, repr=False)

    @cached_property
    def _pool(self) -> Any:
        """Memory that all recordings share, because they are replayed one after the other."""
        return torch.cuda.graph_pool_handle()

    def run(self, name: Hashable, step: Callable[..., T], *arguments: Any) -> T:
        """Return step(*arguments). On a GPU, from the third call in the same shapes on, replay a recording."""
        flat, form = torch.utils._pytree.tree_flatten(arguments)
        if not any(isinstance(value, torch.Tensor) and value.is_cuda for value in flat):
            return step(*arguments)
        key = recording_key(name, flat)
        recording = self.kept.get(key)
        if recording is None:
            self.seen[key] += 1
            if self.seen[key] < RECORD_AFTER:
                return step(*arguments)
            if self.seen[key] > RECORD_AFTER or not self._record(key, step, flat, form):
                return step(*arguments)  # it can't be recorded, for example because it waits for the device
            recording = self.kept[key]
        self.kept.move_to_end(key)
        outputs: T = recording.replay(flat)
        return outputs

    def _record(self, key: Key, step: Callable[..., T], flat: list[Any], form: Any) -> bool:
        """Try to record a step, and return whether that worked. A step that can't be recorded still runs normally."""
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The CUDA Graph is empty")  # what remains of a step that failed
                self.kept[key] = RecordedStep.record(step, flat, form, self._pool)
        except RuntimeError:
            torch.cuda.synchronize()
            return False
        self.seen[key] = 0  # count again if it is dropped and comes back
        if len(self.kept) > MAX_RECORDINGS:
            self.kept.popitem(last=False)
        return True


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection: freeing an old recording would spoil the one in progress."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def recording_key(name: Hashable, values: list[Any]) -> Key:
    """Return what a recording is found by: the step, the precision of its gradients, and the shapes of its inputs."""
    return (name, precision_in_force(), *(_shape(value) for value in values))


def _shape(value: Any) -> Hashable:
    return (value.shape, value.dtype, value.device) if isinstance(value, torch.Tensor) else value
