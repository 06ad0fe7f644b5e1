"""Triton's interpreter, which runs kernels on a CPU, with what its version 3.6 lacks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch


def requires_interpreter() -> None:
    """Skip a test that Triton can't interpret here: without Triton, or where it compiles for a GPU."""
    if torch.cuda.is_available():
        pytest.skip("Triton compiles for the CUDA device here, so its interpreter is not used")
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    pytest.importorskip("triton", reason="Triton is not installed, so its kernels can't be interpreted")


@contextmanager
def mended_interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let loops be as long as an argument says (new versions of numpy), and multiply numbers of bfloat16."""
    import numpy as np
    from triton import language
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor
    create_dot = interpreter.InterpreterBuilder.create_dot

    def with_index(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    def widen(value: Any) -> Any:  # the interpreter stores bfloat16 as whole numbers of 16 bits
        if value.dtype.scalar != language.bfloat16:
            return value
        return interpreter.TensorHandle((value.data.astype(np.uint32) << 16).view(np.float32), language.float32)

    def dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return create_dot(self, widen(a), widen(b), *rest)

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", with_index)
    monkeypatch.setattr(interpreter.InterpreterBuilder, "create_dot", dot)
    yield


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """Where Triton's kernels run: interpreted on a CPU, compiled on a GPU."""
    if request.param == "cuda":
        yield torch.device("cuda", 0)
        return
    requires_interpreter()
    with mended_interpreter(monkeypatch):
        yield torch.device("cpu")
