"""A step sets the precision of its gradients and puts everything back; a run that can't have it is refused."""

from collections.abc import Iterator

import pytest
import torch

from discreet.algorithms.training.cuda_graphs import Recordings, recording_key
from discreet.client_layers.precision import (
    check_precision,
    gradient_precision,
    precision_context,
    precision_in_force,
)
from discreet.client_layers.tensor_core_switches import SWITCHES, tensor_cores
from discreet.errors import InvalidInput

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_a_step_on_a_cpu_is_as_before_in_every_precision(precision) -> None:
    before = [switch.read() for switch in SWITCHES]
    with gradient_precision(precision, CPU):
        assert precision_in_force() == "float32"
        assert [switch.read() for switch in SWITCHES] == before


@pytest.fixture
def restore_switch() -> Iterator[None]:
    """Put torch's switch of matrix products back after the test."""
    before = torch.backends.cuda.matmul.allow_tf32
    yield
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.usefixtures("restore_switch")
@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("start", [False, True])
def test_a_step_sets_torchs_switches_and_puts_them_back(start: bool, allowed: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = start

    def fail() -> None:
        with tensor_cores(allowed=allowed):
            assert torch.backends.cuda.matmul.allow_tf32 is allowed
            assert torch.backends.cudnn.allow_tf32 is allowed
            assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
            assert torch.backends.cudnn.deterministic
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert torch.backends.cuda.matmul.allow_tf32 is start
    assert torch.backends.cudnn.allow_tf32 is True
    assert torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    assert not torch.backends.cudnn.deterministic


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch has the old names only")
def test_a_caller_who_uses_torchs_new_names_of_the_switches_finds_them_unchanged() -> None:
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    matmul.fp32_precision = "tf32"
    try:
        with tensor_cores(allowed=False):
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before


def test_a_recording_is_of_one_precision() -> None:
    """Another precision of the same step has shapes that are the same, and needs a recording of its own."""
    keys = []
    for precision in ("float32", "bf16"):
        with precision_context(precision):
            keys.append(recording_key("step", [torch.zeros(2)]))
    assert keys[0] != keys[1]
    assert Recordings().run("step", torch.square, torch.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_a_precision_that_a_run_cannot_have_is_refused_with_the_remedy(precision) -> None:
    with pytest.raises(InvalidInput, match=f'"{precision}" needs a GPU, and this run trains on a CPU'):
        check_precision(precision, "float32", CPU)
    with pytest.raises(InvalidInput, match='"float32" with dtype = "float64"'):
        check_precision(precision, "float64", CUDA)
    check_precision(precision, "float32", CUDA)
    check_precision(precision, "float32", None)  # clients on machines of their own
    check_precision("float32", "float64", CPU)
