"""A convolution with weights of their own for each client, under grad and vmap in any order, is torch's convolution."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import grad, jvp, vmap

from discreet.client_layers.client_convolution import convolve
from discreet.client_layers.client_product import product
from tests.client_layers.shapes import SHAPES, Shape

CLIENTS, IMAGES = 3, 2
Convolution = Callable[[Tensor, Tensor, Tensor], Tensor]


def ways(shape: Shape) -> tuple[Convolution, Convolution]:
    """Return our convolution and torch's, for one client."""
    settings = shape.settings("float32")
    options = (shape.stride, shape.padding, shape.dilation, shape.groups)
    return (
        lambda x, w, bias: convolve(x[None], w[None], bias[None], settings)[0],
        lambda x, w, bias: torch.nn.functional.conv2d(x, w, bias, *options),
    )


def operands(shape: Shape) -> tuple[Tensor, Tensor, Tensor]:
    made = torch.Generator().manual_seed(1)
    sizes = (
        (CLIENTS, IMAGES, shape.channels, *shape.size),
        (CLIENTS, shape.outputs, shape.channels // shape.groups, *shape.kernel),
        (CLIENTS, shape.outputs),
    )
    x, w, bias = (torch.randn(size, generator=made, dtype=torch.float64) for size in sizes)
    return x, w, bias


def energy(convolution: Convolution) -> Convolution:
    return lambda x, w, bias: convolution(x, w, bias).square().sum()


def per_example(convolution: Convolution) -> Callable[..., tuple[Tensor, ...]]:
    """Return the gradient of each example of one client."""

    def energy_of_example(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        return convolution(x[None], w, bias).square().sum()

    return vmap(grad(energy_of_example, argnums=(0, 1, 2)), in_dims=(0, None, None))


COMPOSITIONS: dict[str, Callable[[Convolution], Callable[..., tuple[Tensor, ...]]]] = {
    "vmap of grad": lambda f: vmap(grad(energy(f), argnums=(0, 1, 2))),
    "grad of vmap": lambda f: grad(lambda *values: vmap(energy(f))(*values).sin().sum(), argnums=(0, 1, 2)),
    "vmap over clients of vmap over examples of grad": lambda f: vmap(per_example(f)),
    "shared weights": lambda f: (
        lambda x, w, bias: vmap(grad(energy(f), argnums=(0, 1, 2)), in_dims=(0, None, None))(x, w[0], bias[0])
    ),
    "shared weights with biases of their own": lambda f: (
        lambda x, w, bias: vmap(grad(energy(f), argnums=(0, 2)), in_dims=(0, None, 0))(x, w[0], bias)
    ),
    "shared images": lambda f: (
        lambda x, w, bias: vmap(grad(energy(f), argnums=(0, 1)), in_dims=(None, 0, 0))(x[0], w, bias)
    ),
    "a shared bias": lambda f: (
        lambda x, w, bias: vmap(grad(energy(f), argnums=(0, 1, 2)), in_dims=(0, 0, None))(x, w, bias[0])
    ),
    "shared images and weights": lambda f: (
        lambda x, w, bias: vmap(grad(energy(f), argnums=2), in_dims=(None, None, 0))(x[0], w[0], bias)
    ),
    "the client's axis elsewhere": lambda f: (
        lambda x, w, bias: vmap(grad(energy(f), argnums=(0, 1)), in_dims=(2, 3, 1))(
            x.movedim(0, 2), w.movedim(0, 3), bias.movedim(0, 1)
        )
    ),
    "a gradient of a gradient": lambda f: vmap(
        grad(lambda x, w, bias: grad(energy(f), argnums=1)(x, w, bias).square().sum(), argnums=(0, 1, 2))
    ),
    "a gradient of an input's gradient": lambda f: vmap(
        grad(lambda x, w, bias: grad(energy(f))(x, w, bias).square().sum(), argnums=(0, 1, 2))
    ),
    "forward differentiation": lambda f: lambda x, w, bias: jvp(vmap(f), (x, w, bias), (x.sin(), w.cos(), bias)),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # by torch's own jvp
@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("name", ["more channels than a block", "groups", "one channel"])
def test_every_composition_gives_torchs_numbers(name: str, composition: str) -> None:
    """In double precision, where only the order of a sum differs."""
    ours, torchs = (COMPOSITIONS[composition](way)(*operands(SHAPES[name])) for way in ways(SHAPES[name]))
    torch.testing.assert_close(ours, torchs, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_has_torchs_gradients(name: str) -> None:
    gradients = COMPOSITIONS["vmap of grad"]
    ours, torchs = (gradients(way)(*operands(SHAPES[name])) for way in ways(SHAPES[name]))
    torch.testing.assert_close(ours, torchs, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    "composition",
    ["vmap of grad", "vmap over clients of vmap over examples of grad", "a gradient of an input's gradient"],
)
def test_bf16_is_torchs_convolution_of_rounded_operands_in_every_composition(composition: str) -> None:
    """Within the rounding of four operands to 8 bits."""
    shape = SHAPES["more channels than a block"]
    x, w, bias = (value.float() for value in operands(shape))
    settings = shape.settings("bf16")
    found = COMPOSITIONS[composition](lambda x, w, b: convolve(x[None], w[None], b[None], settings)[0])(x, w, bias)
    expected = COMPOSITIONS[composition](ways(shape)[1])(x, w, bias)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert 1e-4 < float((one - other).norm() / other.norm()) < 2e-2


def test_shared_weights_make_one_ordinary_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, calls = SHAPES["a stride"], []
    ordinary = torch.nn.functional.conv2d
    monkeypatch.setattr(torch.nn.functional, "conv2d", lambda *values: calls.append(values) or ordinary(*values))
    x, w, bias = operands(shape)
    vmap(ways(shape)[0], in_dims=(0, None, None))(x, w[0], bias[0])
    assert [(len(images), groups) for images, _, _, _, _, _, groups in calls] == [(CLIENTS * IMAGES, 1)]


def test_products_of_matrices_have_torchs_gradients_in_every_composition() -> None:
    made = torch.Generator().manual_seed(1)
    a, b = (torch.randn(size, generator=made, dtype=torch.float64) for size in ((3, 1, 4, 5), (3, 1, 5, 6)))
    for dims in ((0, 0), (0, None), (None, 0)):
        one, two = (value if dim == 0 else value[0] for value, dim in zip((a, b), dims, strict=True))
        found, expected = (
            vmap(grad(lambda a, b, way=way: way(a, b).sin().sum(), argnums=(0, 1)), in_dims=dims)(one, two)
            for way in (product, torch.bmm)
        )
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    found, expected = (
        grad(lambda a, way=way: vmap(grad(lambda a, b: way(a, b).sin().sum()))(a, b).square().sum())(a)
        for way in (product, torch.bmm)
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
