"""Record a training step on a GPU as a CUDA graph and replay it, compiled if that is asked for.

A step has many small kernels, and launching them one by one from Python takes longer than running them.
"""

from __future__ import annotations

import gc
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from discreet.algorithms.training.compiled_step import steps_are_compiled, try_to_compile
from discreet.client_layers.precision import precision_in_force
from discreet.lazy_torch import Tensor, torch

T = TypeVar("T")
Key: TypeAlias = tuple[Hashable, ...]

RECORD_AFTER = 3  # times that a shape must occur: recording costs about as many steps
MAX_RECORDINGS = 8  # each holds a copy of its inputs
LARGE_SHARE = 0.25  # of the device's memory


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
        graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):  # libraries choose kernels and workspaces before the recording
                step(*torch.utils._pytree.tree_unflatten(inputs, form))
            generator.set_state(random_state)  # a resumed run records at another step, and must draw the same
            with _capture(graph, pool):
                outputs = step(*torch.utils._pytree.tree_unflatten(inputs, form))
        torch.cuda.current_stream().wait_stream(side)
        return cls(graph, inputs, outputs)

    def replay(self, arguments: list[Any]) -> Any:
        """Copy the arguments into the recorded inputs and replay the graph."""
        changed: dict[torch.dtype, list[tuple[Tensor, Tensor]]] = {}
        for recorded, new in zip(self.inputs, arguments, strict=True):
            if isinstance(recorded, torch.Tensor) and recorded is not new:
                changed.setdefault(recorded.dtype, []).append((recorded, new))
        for pairs in changed.values():
            torch._foreach_copy_([recorded for recorded, _ in pairs], [new for _, new in pairs])
        self.graph.replay()
        return self.outputs


@dataclass(eq=False)
class Recordings:
    """The recordings of one network by step and shapes, of which the last used are kept, and its compiled steps.

    A copy in another process starts empty.

    Attributes:
        may_compile: Whether steps are compiled where that is asked for. Not if these recordings are soon forgotten.
    """

    may_compile: bool = True
    kept: OrderedDict[Key, RecordedStep] = field(default_factory=OrderedDict, repr=False)
    compiled: dict[Key, Callable[..., Any]] = field(default_factory=dict, repr=False)
    seen: Counter[Key] = field(default_factory=Counter, repr=False)

    def __reduce__(self) -> tuple[type[Recordings], tuple[bool]]:
        return Recordings, (self.may_compile,)

    @cached_property
    def _pool(self) -> Any:
        """Memory that all recordings share, because they are replayed one after the other."""
        return torch.cuda.graph_pool_handle()

    def run(self, name: Hashable, step: Callable[..., T], *arguments: Any) -> T:
        """Return step(*arguments). On a GPU, from the third call in the same shapes on, replay a recording."""
        flat, form = torch.utils._pytree.tree_flatten(arguments)
        if not any(isinstance(value, torch.Tensor) and value.is_cuda for value in flat):
            return step(*arguments)
        key = recording_key((name, str(form)), flat)
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

    def run_compiled(self, name: Hashable, step: Callable[..., T], *arguments: Any) -> T:
        """Return step(*arguments), computed by compiled code where steps are compiled.

        It is compiled at the first call in these shapes, so that a run that is resumed has the same bits.
        """
        if not (self.may_compile and steps_are_compiled()):
            return step(*arguments)
        flat, form = torch.utils._pytree.tree_flatten(arguments)
        strides = tuple(value.stride() for value in flat if isinstance(value, torch.Tensor))
        key = recording_key((name, str(form), strides), flat)
        if key not in self.compiled:
            self.compiled[key] = try_to_compile(step, flat, form)
        found: T = self.compiled[key](*arguments)
        return found

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
def _capture(graph: torch.cuda.CUDAGraph, pool: Any) -> Iterator[None]:
    """Record what the current stream is given. torch's own context also collects garbage and gives all memory back.

    That takes several times as long as the recording. Garbage must not be collected meanwhile: to free an earlier
    recording would spoil this one.
    """
    torch.cuda.synchronize()
    if torch.cuda.memory_reserved() > torch.cuda.mem_get_info()[1] * LARGE_SHARE:
        torch.cuda.empty_cache()  # a recording has memory of its own
    enabled = gc.isenabled()
    gc.disable()
    try:
        graph.capture_begin(pool=pool)
        try:
            yield
        except BaseException:
            with suppress(RuntimeError):  # that the recording is not valid
                graph.capture_end()
            raise
        graph.capture_end()
    finally:
        if enabled:
            gc.enable()


def recording_key(name: Hashable, values: list[Any]) -> Key:
    """Return what a recording is found by: the step, the settings that it is computed under, and its inputs' shapes."""
    return (name, precision_in_force(), steps_are_compiled(), *(_shape(value) for value in values))


def _shape(value: Any) -> Hashable:
    return (value.shape, value.dtype, value.device) if isinstance(value, torch.Tensor) else value
