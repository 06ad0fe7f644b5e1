"""Triton's kernels compute torch's convolution and its gradients: interpreted on a CPU, compiled on a GPU."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from discreet.client_layers import batched_convolution
from discreet.client_layers.kernel_blocks import output_blocks, weight_blocks
from discreet.client_layers.precision import GradientPrecision
from tests.client_layers.interpreter import device
from tests.client_layers.shapes import SHAPES, Shape

__all__ = ["device"]

ROOT = Path(__file__).parents[2]
CLIENTS, IMAGES = 3, 2
# On a GPU tf32 keeps 11 bits of an operand, so a product is off by 2^-10; an interpreter keeps all of them.
ERRORS = {"cpu": {"float32": 1e-6, "tf32": 1e-6, "bf16": 1e-6}, "cuda": {"float32": 1e-6, "tf32": 3e-3, "bf16": 1e-5}}


def operands(shape: Shape, device: torch.device, clients: int = CLIENTS) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return images, weights, biases and gradients of the outputs, the same for every device."""
    made = torch.Generator().manual_seed(1)
    out = shape.settings().output_size(shape.size, shape.kernel)
    sizes = (
        (clients, IMAGES, shape.channels, *shape.size),
        (clients, shape.outputs, shape.channels // shape.groups, *shape.kernel),
        (clients, shape.outputs),
        (clients, IMAGES, shape.outputs, *out),
    )
    x, w, bias, gy = (torch.randn(size, generator=made).to(device) for size in sizes)
    return x, w, bias, gy


def exact(value: Tensor, precision: GradientPrecision) -> Tensor:
    """Return the operand that a product sees, in double precision."""
    return (value.bfloat16() if precision == "bf16" else value).double()


def relative_error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    assert found.dtype == torch.float32
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize("name", SHAPES)
def test_each_kernel_computes_torchs_convolution(name: str, precision: GradientPrecision, device: torch.device) -> None:
    from discreet.client_layers import kernel_operators

    shape, most = SHAPES[name], ERRORS[device.type][precision]
    settings, (x, w, bias, gy) = shape.settings(precision), operands(shape, device)
    ex, ew, egy = (exact(value, precision) for value in (x, w, gy))
    y = kernel_operators.outputs(x, w, bias, settings)
    assert relative_error(y, batched_convolution.torch_outputs(ex, ew, bias.double(), settings)) < most
    gx = kernel_operators.input_gradients(gy, w, settings, shape.size)
    assert relative_error(gx, batched_convolution.torch_input_gradients(egy, ew, settings, shape.size)) < most
    gw = kernel_operators.weight_gradients(x, gy, settings, shape.kernel)
    assert relative_error(gw, batched_convolution.torch_weight_gradients(ex, egy, settings, shape.kernel)) < most


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_trace_has_the_shapes_strides_and_types_of_the_results(
    name: str, precision: GradientPrecision, device: torch.device
) -> None:
    from discreet.client_layers import kernel_operators

    shape, mode = SHAPES[name], FakeTensorMode()
    settings, real = shape.settings(precision), operands(shape, device)
    with mode:
        traced = [mode.from_tensor(value) for value in real]
    for product in (
        lambda x, w, bias, gy: kernel_operators.outputs(x, w, bias, settings),
        lambda x, w, bias, gy: kernel_operators.input_gradients(gy, w, settings, shape.size),
        lambda x, w, bias, gy: kernel_operators.weight_gradients(x, gy, settings, shape.kernel),
    ):
        with mode:
            found = product(*traced)
        expected = product(*real)
        assert (found.shape, found.stride(), found.dtype) == (expected.shape, expected.stride(), expected.dtype)


@pytest.mark.parametrize("name", ["a first layer", "more channels than a block"])
def test_a_sum_in_several_parts_is_the_same_sum(name: str, device: torch.device) -> None:
    from discreet.client_layers import kernel_operators

    shape = SHAPES[name]
    settings, (x, _, _, gy) = shape.settings("float32"), operands(shape, device)
    tile = weight_blocks(16, shape.outputs, shape.channels, 9, "float32")._replace(m=16, splits=3)
    found = kernel_operators.weight_gradients(x, gy, settings, shape.kernel, tile)
    expected = batched_convolution.torch_weight_gradients(x.double(), gy.double(), settings, shape.kernel)
    assert relative_error(found, expected) < 1e-6


@pytest.mark.parametrize("name", ["a first layer", "more channels than a block"])
def test_a_clients_bits_do_not_depend_on_who_shares_its_block(name: str, device: torch.device) -> None:
    from discreet.client_layers import kernel_operators

    shape = SHAPES[name]
    settings, (x, w, bias, gy) = shape.settings("bf16"), operands(shape, device)
    whole = (
        kernel_operators.outputs(x, w, bias, settings),
        kernel_operators.input_gradients(gy, w, settings, shape.size),
        kernel_operators.weight_gradients(x, gy, settings, shape.kernel),
    )
    alone = (
        kernel_operators.outputs(x[1:2], w[1:2], bias[1:2], settings),
        kernel_operators.input_gradients(gy[1:2], w[1:2], settings, shape.size),
        kernel_operators.weight_gradients(x[1:2], gy[1:2], settings, shape.kernel),
    )
    assert all(torch.equal(one[0], all_of_them[1]) for one, all_of_them in zip(alone, whole, strict=True))


def test_the_kernels_take_any_layout_of_memory(device: torch.device) -> None:
    from discreet.client_layers import kernel_operators

    shape = SHAPES["more channels than a block"]
    settings, (x, w, _, gy) = shape.settings("tf32"), operands(shape, device)
    last = x.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
    turned = w.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(
        kernel_operators.outputs(last, turned, None, settings), kernel_operators.outputs(x, w, None, settings)
    )
    one = gy[:, :1, :1, :1, :1].expand_as(gy)  # as the gradient of a mean
    assert torch.equal(
        kernel_operators.weight_gradients(last, one, settings, shape.kernel),
        kernel_operators.weight_gradients(x, one.contiguous(), settings, shape.kernel),
    )


@pytest.mark.cuda
def test_a_recording_of_the_kernels_repeats_their_bits() -> None:
    from discreet.client_layers import kernel_operators

    shape = SHAPES["a stride"]
    settings, (x, w, _, gy) = shape.settings("bf16"), operands(shape, torch.device("cuda"))

    def step() -> tuple[Tensor, ...]:
        return (
            kernel_operators.outputs(x, w, None, settings),
            kernel_operators.input_gradients(gy, w, settings, shape.size),
            kernel_operators.weight_gradients(x, gy, settings, shape.kernel),
        )

    expected = [value.clone() for value in step()]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = step()
    for _ in range(3):
        for value in recorded:
            value.zero_()
        graph.replay()
        assert all(torch.equal(one, other) for one, other in zip(recorded, expected, strict=True))


def test_blocks_waste_at_most_a_quarter_where_channels_allow() -> None:
    assert output_blocks(7840, 64, 32, 9, "bf16").n == 64
    assert output_blocks(7840, 96, 32, 9, "bf16").n == 32
    assert output_blocks(7840, 10, 32, 9, "bf16").n == 16
    assert output_blocks(7840, 32, 3, 9, "bf16")[2:4] == (32, True)  # 27 taps and channels in one block
    assert weight_blocks(7840, 32, 3, 9, "bf16").splits == 7
    assert weight_blocks(490, 512, 512, 9, "bf16").splits == 1


@pytest.mark.parametrize("generation", [80, 90])
def test_the_kernels_compile_for_gpus_with_tensor_cores(generation: int) -> None:
    """Compiling needs no GPU; in a process of its own, since Triton interprets in this one."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed, so its kernels can't be compiled")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.client_layers.compile_kernels", "--generation", str(generation)]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    for line in ran.stdout.splitlines():
        assert ("no tensor cores" in line) == ("add_parts" in line or "float32" in line), line
