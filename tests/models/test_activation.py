"""Activations by name: the tempered sigmoid is tanh by default, and bounded for all settings."""

from typing import Any

import pytest
import torch
from torch import nn

from discreet.errors import InvalidInput
from discreet.models.networks.activation import TemperedActivation, activation_layer
from discreet.models.networks.mlp import Mlp
from discreet.models.networks.papernot_cnn import PapernotCnn
from discreet.models.networks.tempered_sigmoid import TemperedSigmoid
from discreet.part import from_plain, to_plain


def test_the_default_tempered_sigmoid_is_tanh():
    z = torch.linspace(-20, 20, 1001, dtype=torch.float64)
    assert torch.allclose(TemperedSigmoid()(z), torch.tanh(z), atol=1e-15)


def test_it_is_s_over_one_plus_an_exponential_minus_o():
    z = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert TemperedSigmoid(s=3.0, temperature=0.5, o=1.5)(z).tolist() == pytest.approx([0.0, 0.36737799])


def test_it_overflows_nowhere():
    z = torch.tensor([-1e30, 1e30], requires_grad=True)
    found = TemperedSigmoid()(z)
    found.sum().backward()
    assert found.tolist() == [-1.0, 1.0]
    assert z.grad is not None
    assert z.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("word", "kind"), [("relu", nn.ReLU), ("tanh", nn.Tanh), ("gelu", nn.GELU)])
def test_a_word_names_a_layer(word: Any, kind: type[nn.Module]):
    assert isinstance(activation_layer(Mlp(activation=word).activation), kind)


def test_the_word_tempered_sigmoid_is_short_for_its_defaults():
    word: Any = "tempered_sigmoid"
    assert Mlp(activation=word) == Mlp(activation=TemperedActivation(s=2, temperature=2, o=1))
    assert isinstance(activation_layer(Mlp(activation=word).activation), TemperedSigmoid)


def test_a_file_gives_the_same_activation():
    written = {"kind": "papernot_cnn", "activation": {"kind": "tempered_sigmoid", "s": 1.5, "temperature": 3}}
    model = from_plain(PapernotCnn, written)
    assert model == PapernotCnn(activation=TemperedActivation(s=1.5, temperature=3, o=1))
    assert from_plain(PapernotCnn, to_plain(model)) == model


@pytest.mark.parametrize("wrong", ["sigmoid", 3, None, {"kind": "relu"}, {"kind": "tempered_sigmoid", "s": 0}])
def test_what_names_no_activation_is_refused(wrong: Any):
    with pytest.raises(InvalidInput, match="activation"):
        Mlp(activation=wrong)
