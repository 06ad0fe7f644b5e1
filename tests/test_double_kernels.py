"""Triton's kernels for sums and norms agree with torch in double precision: interpreted on a CPU, compiled on a GPU."""

import importlib.util
import logging
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from discreet import double_sums
from discreet.algorithms import clipping
from discreet.algorithms.clipping import clip
from discreet.params import norms
from tests.client_layers.interpreter import device

__all__ = ["device"]

ROOT = Path(__file__).parents[1]
SHAPES = [(1, 1), (3, 1), (5, 127), (2, 128), (4, 129), (3, 1025), (2, 40_001)]
SUMS = [(1, 1, 1), (3, 5, 7), (2, 3, 16), (1, 1030, 10), (2, 200, 65), (1, 70, 700), (2, 4, 1027), (4, 33, 256)]
GPU = torch.device("cuda", 0)


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return numbers of both signs, the same for every device."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def norms_by_torch(rows: Tensor, order: int) -> Tensor:
    return torch.linalg.vector_norm(rows.double(), order, dim=1)


def sums_by_torch(rows: Tensor, weights: Tensor) -> Tensor:
    return (weights[..., None] * rows.double()).sum(dim=1)


def assert_equal_sums(found: Tensor, rows: Tensor, weights: Tensor) -> None:
    """A sum of both signs may be small beside its terms, so they are what an error is compared with."""
    size = sums_by_torch(rows.abs(), weights.abs())
    assert found.dtype == torch.float64
    assert bool(((found.cpu() - sums_by_torch(rows, weights)).abs() <= 1e-12 * size).all())


@pytest.mark.parametrize("order", [2, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_norm_is_that_of_the_row_in_double_precision(
    shape: tuple[int, int], order: int, device: torch.device
) -> None:
    from discreet import double_kernels

    rows = draw(*shape)
    found = double_kernels.row_norms(rows.to(device), order)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.cpu(), norms_by_torch(rows, order), rtol=1e-12, atol=0)


@pytest.mark.parametrize("shape", SUMS)
def test_a_weighted_sum_is_that_of_products_in_double_precision(
    shape: tuple[int, int, int], device: torch.device
) -> None:
    from discreet import double_kernels

    rows, weights = draw(*shape), draw(*shape[:2], dtype=torch.float64)
    assert_equal_sums(double_kernels.weighted_sums(rows.to(device), weights.to(device)), rows, weights)


@pytest.mark.parametrize("order", [2, 1])
@pytest.mark.parametrize("size", [6, 40_000])
def test_norms_of_tiny_and_huge_numbers_nan_and_infinity_are_torchs(
    size: int, order: int, device: torch.device
) -> None:
    from discreet import double_kernels

    rows = torch.zeros(8, size)
    for row, value in enumerate([1e-40, 1e-45, 3e38, math.inf, -math.inf, math.nan, 0.0]):
        rows[row, -2] = value
    rows[7, 0], rows[7, -1] = math.inf, math.nan
    rows[2] = 3e38
    found = double_kernels.row_norms(rows.to(device), order).cpu()
    torch.testing.assert_close(found, norms_by_torch(rows, order), rtol=1e-12, atol=0, equal_nan=True)
    assert found[[3, 4]].tolist() == [math.inf, math.inf]
    assert found[[5, 7]].isnan().all()


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # of numpy, in the interpreter
def test_weighted_sums_of_tiny_and_huge_numbers_nan_and_infinity_are_torchs(device: torch.device) -> None:
    from discreet import double_kernels

    values = [1e-40, 3e38, -3e38, math.inf, -math.inf, math.nan, 0.0]
    rows = torch.tensor(values).expand(3, 2, 7).contiguous()
    rows[:, 1] = 1e-45
    weights = torch.tensor([[2.0, -1.0], [1e-300, 1.0], [0.0, 1.0]], dtype=torch.float64)
    found = double_kernels.weighted_sums(rows.to(device), weights.to(device)).cpu()
    torch.testing.assert_close(found, sums_by_torch(rows, weights), rtol=1e-12, atol=0, equal_nan=True)


@pytest.mark.filterwarnings(
    "ignore:(invalid value|overflow) encountered:RuntimeWarning"
)  # of numpy, in the interpreter
@pytest.mark.parametrize("size", [1, 1024, 2500])
def test_a_multiple_of_a_row_is_rounded_once_and_has_zero_in_place_of_nan(size: int, device: torch.device) -> None:
    from discreet import double_kernels

    rows, factors = draw(4, 2 * size)[:, ::2], torch.tensor([1 / 3, 1e-30, 0.0, 0.0], dtype=torch.float64)
    rows[1, 0], rows[2, 0], rows[3, 0] = 3e38, float("inf"), float("nan")
    expected = (rows.double() * factors[:, None]).nan_to_num(0.0).float()
    found = double_kernels.scaled_rows(rows.to(device), factors.to(device))
    assert found.dtype == torch.float32
    assert torch.equal(found.cpu(), expected)


@pytest.mark.filterwarnings(
    "ignore:(invalid value|overflow) encountered:RuntimeWarning"
)  # of numpy, in the interpreter
@pytest.mark.parametrize("order", [2, 1])
def test_a_clip_by_the_kernels_is_torchs(order: int, device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    block = {"weight": draw(6, 5, 7) * torch.logspace(-6, 6, 6)[:, None, None], "bias": draw(6, 3)}
    block["bias"][2, 0], block["bias"][3, 1], block["weight"][4] = float("nan"), float("inf"), 3e38
    expected = clip(block, 0.5, order, unit=2.0)
    moved = {name: value.to(device) for name, value in block.items()}
    monkeypatch.setattr(clipping, "kernels_serve", lambda value: True)
    found = clip(moved, 0.5, order, unit=2.0)
    for name, value in expected.items():
        torch.testing.assert_close(found[name].cpu(), value, rtol=1e-6, atol=0)
        assert torch.equal(moved[name].cpu().nan_to_num(), block[name].nan_to_num())
    assert float(norms(found, order=order).max()) <= 1


@pytest.mark.parametrize("order", [2, 1])
@pytest.mark.parametrize("size", [1, 100, 1001, 20_001])
def test_the_bits_of_a_norm_depend_on_its_row_only(size: int, order: int, device: torch.device) -> None:
    """Neither on the other rows, nor on where it is in memory."""
    from discreet import double_kernels

    rows = (draw(4, size) * (8 * draw(4, size).flip(0)).exp()).to(device)  # of many sizes, so that sums are rounded
    whole = double_kernels.row_norms(rows, order)
    others = rows.flip(0) * 3
    others[2] = rows[1]
    wide = torch.zeros(2, size + 5, device=device)
    wide[1, 3:-2] = rows[1]
    alone = [rows[1:2], rows[1:2].clone(), rows[1].expand(7, size), wide[1:, 3:-2]]
    assert all(torch.equal(double_kernels.row_norms(each, order)[:1], whole[1:2]) for each in alone)
    assert torch.equal(double_kernels.row_norms(others, order)[2], whole[1])
    assert torch.equal(torch.cat([double_kernels.row_norms(row[None], order) for row in rows]), whole)


@pytest.mark.parametrize("size", [9, 300])
def test_rows_may_lie_anywhere_in_memory(size: int, device: torch.device) -> None:
    from discreet import double_kernels

    rows, weights = draw(3, 4, size), draw(3, 4, dtype=torch.float64)
    wide = torch.full((3, 6, size + 3), math.nan)
    wide[:, 1:5, 1:-2] = rows
    views = {
        "with room between them": wide.to(device)[:, 1:5, 1:-2],
        "by values first": rows.permute(2, 0, 1).contiguous().to(device).permute(1, 2, 0),
        "in the order of the second axis": rows.transpose(0, 1).contiguous().to(device).transpose(0, 1),
    }
    turned = weights.t().contiguous().to(device).t()
    for name, view in views.items():
        assert not view.is_contiguous(), name
        assert_equal_sums(double_kernels.weighted_sums(view, turned), rows, weights)
        found = double_kernels.row_norms(view[:, 1], 2).cpu()
        torch.testing.assert_close(found, norms_by_torch(rows[:, 1], 2), rtol=1e-12, atol=0)
    one_row = rows[:, :1].expand_as(rows)
    assert_equal_sums(
        double_kernels.weighted_sums(rows[:, :1].to(device).expand_as(rows), weights.to(device)), one_row, weights
    )


def test_the_trial_finds_the_kernels_right(device: torch.device) -> None:
    from discreet import double_kernels

    double_kernels.try_kernels(device)


def test_a_trace_of_a_step_has_the_kernels_in_it(device: torch.device) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    from discreet import double_kernels

    rows, weights = draw(2, 3, 5).to(device), draw(2, 3, dtype=torch.float64).to(device)

    def step(rows: Tensor, weights: Tensor) -> Tensor:
        return double_kernels.weighted_sums(rows, weights).sum() + double_kernels.row_norms(rows[0], 2).sum()

    trace = make_fx(step)(rows, weights)
    assert torch.equal(trace(rows + 1, weights), step(rows + 1, weights))


@pytest.mark.cuda
@pytest.mark.parametrize("clients", [1, 50])
def test_sums_and_norms_on_a_gpu_are_those_on_a_cpu(clients: int) -> None:
    assert double_sums.kernels_work(GPU)
    rows, weights = draw(clients, 3, 70_001), draw(clients, 3, dtype=torch.float64)
    assert_equal_sums(double_sums.weighted_sums(rows.to(GPU), weights.to(GPU)), rows, weights)
    together = double_sums.sum_rows(rows.to(GPU)).cpu()
    assert torch.allclose(together, rows.double().sum(dim=0), rtol=1e-12, atol=1e-12)
    for order in (2, 1):
        found = double_sums.row_norms(rows.to(GPU), order)
        assert found.shape == rows.shape[:2]
        torch.testing.assert_close(found.cpu(), double_sums.row_norms(rows, order), rtol=1e-12, atol=0)


@pytest.mark.cuda
def test_a_recording_of_sums_and_norms_repeats_their_bits() -> None:
    assert double_sums.kernels_work(GPU)
    rows, weights = draw(2, 600, 3000).to(GPU), draw(2, 600, dtype=torch.float64).to(GPU)

    def step() -> tuple[Tensor, ...]:
        flat = rows.reshape(10, -1)
        norms = (double_sums.row_norms(flat, order) for order in (2, 1))
        return (double_sums.weighted_sums(rows, weights), double_sums.sum_rows(rows), *norms)

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


@pytest.mark.cuda
def test_places_in_memory_may_be_numbers_above_32_bits() -> None:
    if torch.cuda.mem_get_info(GPU)[0] < 12 * 2**30:
        pytest.skip("needs 12 GiB of free memory on the GPU")
    assert double_sums.kernels_work(GPU)
    memory = torch.zeros(2**31 + 16, device=GPU)
    apart, rows, weights = memory.as_strided((2, 8), (2**31 + 8, 1)), draw(2, 8), draw(1, 2, dtype=torch.float64)
    apart.copy_(rows)
    torch.testing.assert_close(double_sums.row_norms(apart).cpu(), norms_by_torch(rows, 2), rtol=1e-12, atol=0)
    assert_equal_sums(double_sums.weighted_sums(apart[None], weights.to(GPU)), rows[None], weights)
    whole = double_sums.row_norms(memory[None]).cpu()
    torch.testing.assert_close(whole, norms_by_torch(rows.reshape(1, -1), 2), rtol=1e-12, atol=0)


@pytest.mark.cuda
def test_other_tensors_on_a_gpu_stay_with_torch() -> None:
    rows = draw(2, 3, 5).to(GPU)
    weights = torch.ones(2, 3, dtype=torch.float64, device=GPU)
    for each in (rows.double(), rows.bfloat16(), rows[:, :, :0], rows[:, :0], rows[:0]):
        found = double_sums.weighted_sums(each, weights[: len(each), : each.shape[1]])
        assert torch.allclose(found, each.double().sum(dim=1))
    wanted = rows.clone().requires_grad_()
    double_sums.row_norms(wanted).sum().backward()  # type: ignore[no-untyped-call]
    assert wanted.grad is not None
    assert torch.equal(torch.vmap(double_sums.row_norms)(rows), double_sums.row_norms(rows.double()))


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[torch.device], None]], None]:
    """Put a trial in place of that on a GPU, as if torch were built for CUDA and nothing had been tried."""
    monkeypatch.setattr(double_sums, "_working", {})
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)

    def replace(function: Callable[[torch.device], None]) -> None:
        monkeypatch.setitem(sys.modules, "discreet.double_kernels", SimpleNamespace(try_kernels=function))

    return replace


def test_kernels_that_fail_their_trial_are_not_used_and_one_warning_says_so(
    trial: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(device: torch.device) -> None:
        raise ArithmeticError

    trial(fail)
    with caplog.at_level(logging.WARNING, logger="discreet"):
        assert [double_sums.kernels_work(GPU) for _ in range(3)] == [False] * 3
    assert [(record.message, vars(record)["error"]) for record in caplog.records] == [
        ("double kernels not available", "ArithmeticError")
    ]


def test_the_kernels_are_tried_once_and_never_while_a_graph_is_recorded(
    trial: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[torch.device] = []
    trial(tried.append)
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        assert not double_sums.kernels_work(GPU)
    assert not tried
    assert [double_sums.kernels_work(GPU) for _ in range(3)] == [True] * 3
    assert tried == [GPU]


def test_without_cuda_nothing_is_tried_and_nothing_is_logged(
    trial: Callable[..., None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[torch.device] = []
    trial(tried.append)
    monkeypatch.setattr(torch.version, "cuda", None)  # a GPU of AMD
    assert not double_sums.kernels_work(GPU)
    assert (tried, caplog.records) == ([], [])


@pytest.mark.parametrize("generation", [80, 90])
def test_the_kernels_compile_to_double_precision_that_keeps_tiny_numbers(generation: int) -> None:
    """Compiling needs no GPU; in a process of its own, since Triton interprets in this one."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed, so its kernels can't be compiled")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.compile_double_kernels", "--generation", str(generation)]
    ran = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 15
