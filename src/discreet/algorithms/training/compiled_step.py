"""Compile a local step: its many small operations become few kernels, each of which reads and writes memory once.

A step is traced with the arguments of its first call, as a CUDA graph records it, and compiled by torch's inductor.
Matrix products and convolutions stay what they are, and so do the random numbers that a network draws.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from discreet.client_layers.precision import precision_in_force
from discreet.lazy_torch import Tensor, torch
from discreet.logs import get_log

log = get_log(__name__)
ENABLED: ContextVar[bool] = ContextVar("steps are compiled", default=False)
TENSOR = object()

OPTIONS = {  # of inductor; those that a version of torch does not have are left out
    "deterministic": True,  # nothing that changes bits is chosen by measuring
    "shape_padding": False,
    "fallback_random": True,  # dropout draws what it draws without being compiled
}


@contextmanager
def compile_steps(*, enabled: bool) -> Iterator[None]:
    """Compile the local steps of this thread, or not."""
    token = ENABLED.set(enabled)
    try:
        yield
    finally:
        ENABLED.reset(token)


def steps_are_compiled() -> bool:
    """Return whether local steps of this thread are compiled."""
    return ENABLED.get()


@dataclass(frozen=True)
class CompiledStep:
    """A step for arguments of the same shapes, types and other values as those that it was compiled with.

    Attributes:
        run: Takes and returns tensors alone.
        outputs: What the step returned, flat, with TENSOR in place of each tensor.
        form: How it was nested.
    """

    run: Callable[..., list[Tensor]]
    outputs: list[Any]
    form: Any

    @classmethod
    def compile(cls, step: Callable[..., Any], flat: list[Any], form: Any) -> CompiledStep:
        """Trace the step with these arguments and compile it. Whatever the compiler raises goes to the caller."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's notes on itself
            return cls(*_compile(step, flat, form))

    def __call__(self, *arguments: Any) -> Any:
        flat = torch.utils._pytree.tree_leaves(arguments)
        with torch.no_grad():
            found = iter(self.run(*(value for value in flat if isinstance(value, torch.Tensor))))
        kept = [next(found) if value is TENSOR else value for value in self.outputs]
        return torch.utils._pytree.tree_unflatten(kept, self.form)


def _compile(
    step: Callable[..., Any], flat: list[Any], form: Any
) -> tuple[Callable[..., list[Tensor]], list[Any], Any]:
    """Return the compiled code, what the step returned besides tensors, and how that was nested."""
    from torch._inductor import compile as compile_graph
    from torch._inductor import config
    from torch.fx.experimental.proxy_tensor import make_fx

    returned: list[Any] = []

    def on_tensors(*tensors: Tensor) -> list[Tensor]:
        values = iter(tensors)
        arguments = [next(values) if isinstance(value, torch.Tensor) else value for value in flat]
        found, shape = torch.utils._pytree.tree_flatten(step(*torch.utils._pytree.tree_unflatten(arguments, form)))
        returned[:] = [[TENSOR if isinstance(value, torch.Tensor) else value for value in found], shape]
        return [value for value in found if isinstance(value, torch.Tensor)]

    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    prepare_kernels({value.device for value in tensors})
    graph = make_fx(on_tensors, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)
    options = {name: value for name, value in OPTIONS.items() if hasattr(config, name)}
    with torch.no_grad():
        run = compile_graph(graph, [*tensors], options=options)
        run(*tensors)  # kernels are compiled when they are first called
    return run, *returned


def prepare_kernels(devices: set[torch.device]) -> None:
    """Try the kernels of client layers before a step is traced, which computes nothing."""
    if precision_in_force() != "float32":
        from discreet.client_layers.kernel_choice import prepare

        for device in devices:
            prepare(device)


def try_to_compile(step: Callable[..., Any], flat: list[Any], form: Any) -> Callable[..., Any]:
    """Return the compiled step, or the step itself if it can't be compiled here. It draws no random number."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        try:
            return CompiledStep.compile(step, flat, form)
        except (MemoryError, torch.OutOfMemoryError):  # at another time the step would be compiled, with other bits
            raise
        except Exception as error:  # noqa: BLE001 - whatever a compiler raises, the step does the same without it
            _tell_failure(type(error).__name__)
            return step


@cache
def _tell_failure(kind: str) -> None:
    """Log it once: how often it happens depends on the shapes of blocks, and so on who was drawn."""
    log.warning("step not compiled", error=kind)
