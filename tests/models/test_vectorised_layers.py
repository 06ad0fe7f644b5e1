"""Our replacements for torch's own kernels give the same numbers."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from discreet.models.user_module.vectorised_layers import VectorisedLayers, without_weight_flattening


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"batch_first": True, "bias": False},
        {"num_layers": 3, "bidirectional": True},
    ],
    ids=["plain", "batch first, no bias", "deep, both ways"],
)
def test_recurrent_layers_give_the_same(kind: Any, shape: dict[str, Any]):
    torch.manual_seed(0)
    layer: Any = kind(5, 4, **shape).double()
    inputs = torch.randn(3, 6, 5, dtype=torch.float64)
    expected = layer(inputs)
    state = torch.randn_like(expected[1][0] if kind is nn.LSTM else expected[1])
    start = (state, 2 * state) if kind is nn.LSTM else state
    for given in ((inputs,), (inputs, start)):
        with VectorisedLayers():
            found = layer(*given)
        torch.testing.assert_close(found, layer(*given))


def test_a_rectified_recurrent_layer_gives_the_same():
    torch.manual_seed(0)
    layer, inputs = nn.RNN(5, 4, nonlinearity="relu").double(), torch.randn(3, 6, 5, dtype=torch.float64)
    with VectorisedLayers():
        found = layer(inputs)
    torch.testing.assert_close(found, layer(inputs))


def test_recurrent_layers_flatten_their_weights_again_after_the_loss_was_taken(monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []
    monkeypatch.setattr(nn.RNNBase, "flatten_parameters", lambda layer: asked.append(layer))
    layer, own = nn.GRU(5, 4), nn.GRU(5, 4)
    own.flatten_parameters = lambda: asked.append("own")  # type: ignore[method-assign]
    asked.clear()
    with without_weight_flattening(nn.ModuleList([layer, own])):
        layer.flatten_parameters()
        own.flatten_parameters()
    assert asked == ["own"]
    layer.flatten_parameters()
    own.flatten_parameters()
    assert asked == ["own", layer, "own"]


@pytest.mark.parametrize(
    "cell",
    [nn.RNNCell(5, 4), nn.RNNCell(5, 4, nonlinearity="relu"), nn.GRUCell(5, 4, bias=False), nn.LSTMCell(5, 4)],
    ids=["rnn", "rectified rnn", "gru without bias", "lstm"],
)
def test_recurrent_cells_give_the_same(cell: nn.RNNCellBase):
    cell, inputs = cell.double(), torch.randn(3, 5, dtype=torch.float64)
    start = cell(inputs)
    for given in ((inputs,), (inputs, start)):
        with VectorisedLayers():
            found = cell(*given)
        torch.testing.assert_close(found, cell(*given))


@pytest.mark.parametrize("slopes", [1, 4])
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2, 2)])
def test_a_learned_slope_gives_the_same(slopes: int, shape: tuple[int, ...]):
    layer, inputs = nn.PReLU(slopes).double(), torch.randn(shape, dtype=torch.float64)
    with VectorisedLayers():
        found = layer(inputs)
    torch.testing.assert_close(found, layer(inputs))


@pytest.mark.parametrize("given", ["nothing", "causal", "flags", "numbers", "scale", "groups", "blind"])
def test_attention_gives_the_same(given: str):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 5, 6, dtype=torch.float64)
    options: dict[str, dict[str, Any]] = {
        "nothing": {},
        "causal": {"is_causal": True},
        "flags": {"attn_mask": torch.eye(5, dtype=torch.bool).roll(1, 0) | torch.eye(5, dtype=torch.bool)},
        "numbers": {"attn_mask": torch.randn(5, 5, dtype=torch.float64)},
        "scale": {"scale": 0.3},
        "blind": {"attn_mask": torch.ones(5, 5, dtype=torch.bool).tril(-1)},  # the first query sees nothing
        "groups": {"enable_gqa": True},
    }
    more = options[given]
    if given == "groups":
        key, value = key[:, :2], value[:, :2]
    with VectorisedLayers():
        found = functional.scaled_dot_product_attention(query, key, value, **more)
    torch.testing.assert_close(found, functional.scaled_dot_product_attention(query, key, value, **more))


def test_attention_gives_its_weights_only_when_asked():
    torch.manual_seed(0)
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True).double(), torch.randn(2, 5, 8, dtype=torch.float64)
    for asked in (True, False):
        with VectorisedLayers():
            found = layer(x, x, x, need_weights=asked)
        torch.testing.assert_close(found[0], layer(x, x, x)[0])
        assert (found[1] is not None) == asked
