"""Matrix products of linear layers whose weights differ by client, in bfloat16, for grad and vmap in any order.

The product is bilinear, and its derivatives are the same product of other operands: a[g, m, k] · b[g, k, n].
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from discreet.client_layers.client_convolution import join_rows
from discreet.client_layers.kernel_choice import has_float32_results

WORTH_CASTING = 128  # below it an operand is read once, and to cast it takes longer than the product


class ClientProduct(Function):
    """a · b in bfloat16, summed in float32."""

    @staticmethod
    def forward(a: Tensor, b: Tensor) -> Tensor:
        return multiply(a, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (a, b), (gy,) = ctx.saved_tensors, gradients
        for_a, for_b = ctx.needs_input_grad
        return product(gy, b.mT) if for_a else None, product(a.mT, gy) if for_b else None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        (a, b), (da, db) = ctx.saved_tensors, tangents
        da, db = (torch.zeros_like(a) if da is None else da), (torch.zeros_like(b) if db is None else db)
        return product(da, b) + product(a, db)

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Tensor, b: Tensor) -> tuple[Tensor, int]:
        if in_dims[1] is None:
            y = product(a.movedim(in_dims[0], 1).flatten(1, 2), b)
            return y.unflatten(1, (info.batch_size, -1)), 1
        if in_dims[0] is None:
            y = product(a, b.movedim(in_dims[1], 2).flatten(2, 3))
            return y.unflatten(2, (info.batch_size, -1)), 2
        y = product(join_rows(a, in_dims[0], info.batch_size), join_rows(b, in_dims[1], info.batch_size))
        return y.unflatten(0, (info.batch_size, -1)), 0


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a · b, differentiable."""
    found: Tensor = ClientProduct.apply(a, b)
    return found


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x · weightᵀ + bias in bfloat16, with the arguments of torch's function."""
    y = product(x.reshape(1, -1, x.shape[-1]), weight.mT[None])[0].reshape(*x.shape[:-1], -1)
    return y if bias is None else y + bias


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """Return a · b with operands rounded to bfloat16, and a result in float32.

    A product with few rows or columns takes as long as reading its operands. It stays in float32, as TF32 if allowed.
    """
    if min(*a.shape[1:], b.shape[2]) < WORTH_CASTING:
        return torch.bmm(a, b)
    if a.is_cuda and has_float32_results(a.device):
        return torch.bmm(a.bfloat16(), b.bfloat16(), out_dtype=torch.float32)
    return torch.bmm(a.bfloat16().to(a.dtype), b.bfloat16().to(b.dtype))
