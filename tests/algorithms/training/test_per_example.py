"""Per-example gradients layer by layer: equal to nested vmap, for every known layer and both ways to run it."""

import inspect
import math
import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from discreet.algorithms.clipping import Clip, clip_factors
from discreet.algorithms.training import layer_gradients, per_example
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.example_isolation import isolates_examples
from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, OuterProductGradient
from discreet.algorithms.training.layer_gradients import LAYER_GRADIENTS, Rule, any_value, supported_layers
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.per_example import _sum_by_vmap, clipped_sum, plan_for
from discreet.algorithms.training.shipped_modules import INDEPENDENT_LAYERS
from discreet.errors import InvalidInput
from discreet.params import Params, norms, repeat_for_clients

IMAGES, VECTORS, SEQUENCES, SENTENCES = (2, 8, 8), (6,), (4, 6), (7,)
WORDS = 5  # of which sentences have some more than once


class Sentence(nn.Module):
    """Embeds words and their positions, and mixes them, as a small language model does."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 6, padding_idx=2)
        self.places = nn.Embedding(7, 6)
        self.first, self.norm, self.last = nn.Linear(6, 5), nn.LayerNorm(6), nn.Linear(5, 3)

    def forward(self, words: Tensor) -> Tensor:
        hidden = self.words(words) + self.places(torch.arange(7, device=words.device))
        hidden = hidden + (hidden @ hidden.transpose(1, 2)).softmax(dim=2) @ self.norm(hidden)
        outputs: Tensor = self.last(self.first(hidden).tanh().mean(dim=1))
        return outputs


NETWORKS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "linear": (nn.Linear(6, 3), VECTORS),
    "no bias": (nn.Sequential(nn.Linear(6, 5, bias=False), nn.ReLU(inplace=True), nn.Linear(5, 3)), VECTORS),
    "convolution": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 3)
        ),
        IMAGES,
    ),
    "normalised": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.LayerNorm(144), nn.Linear(144, 3)
        ),
        IMAGES,
    ),
    "sequence": (nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Tanh(), nn.Flatten(), nn.Linear(20, 3)), SEQUENCES),
    "signal": (nn.Sequential(nn.Conv1d(4, 5, 3, stride=2, padding=1), nn.Flatten(), nn.Linear(15, 3)), SEQUENCES),
    "words": (nn.Sequential(nn.Embedding(WORDS, 4, padding_idx=1), nn.Flatten(), nn.Linear(28, 3)), SENTENCES),
    "sentence": (Sentence(), SENTENCES),
}


def losses(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def case(name: str, *, independent: bool = True) -> tuple[ModuleLoss, Params, Batch]:
    """Return a network, the parameters of three clients and their batch.

    Whole batches go through an `independent` one at once, and no trial compares the rules with autograd beforehand.
    """
    torch.manual_seed(2)
    module, form = NETWORKS[name]
    module = deepcopy(module).double()
    params = {
        key: torch.stack([value.detach() * factor for factor in (1.0, 0.5, -1.0)])
        for key, value in module.named_parameters()
    }
    mask = torch.tensor([[True] * 5, [True, False, True, False, False], [False] * 5])
    inputs = torch.randn(3, 5, *form, dtype=torch.float64)
    if form == SENTENCES:
        inputs = torch.randint(WORDS, (3, 5, *form))
    return (
        replace(ModuleLoss.from_module(module, losses), independent=independent),
        params,
        Batch(inputs, torch.randint(3, (3, 5)), mask, mask.any(dim=1)),
    )


def assert_rules_equal_autograd(loss: ModuleLoss, params: Params, batch: Batch) -> None:
    """Assert that every layer is computed by its rule, and that the sums are those of autograd."""
    plan = plan_for(loss, params, batch)
    assert plan is not None
    assert plan.whole == isolates_examples(loss)
    assert set(plan.layers) == {name.rpartition(".")[0] for name in params}
    for clip in (Clip(0.7), Clip(1e6)):  # with most gradients clipped, and with none
        found = clipped_sum(loss, params, batch, clip)
        expected = _sum_by_vmap(loss, params, batch, clip)
        for key in params:
            assert torch.allclose(found[key], expected[key], rtol=1e-9, atol=1e-12), key
        assert all(float(value[2].abs().sum()) == 0 for value in found.values())  # that client had no examples


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("independent", [True, False], ids=["whole batches", "one example at a time"])
@pytest.mark.parametrize("large", [1, 10**9], ids=["one by one", "stacked"])
def test_layer_by_layer_is_example_by_example(
    name: str, independent: bool, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_example, "LARGE_BATCH", large)
    assert_rules_equal_autograd(*case(name, independent=independent))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("large", [1, 10**9], ids=["one by one", "stacked"])
def test_gradients_that_stay_factors_are_those_of_autograd(
    name: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_example, "LARGE_BATCH", large)
    monkeypatch.setattr(layer_gradients, "takes_less_as_factors", lambda *shape: True)
    assert_rules_equal_autograd(*case(name))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("independent", [True, False], ids=["whole batches", "one example at a time"])
def test_clients_of_the_same_model_may_share_one_pass(
    name: str, independent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, params, batch = case(name, independent=independent)
    model = {key: value[0] for key, value in params.items()}
    clip = Clip(torch.tensor([[0.7], [0.3], [1.0]], dtype=torch.float64))
    expected = clipped_sum(loss, repeat_for_clients(model, 3), batch, clip)
    apart = clipped_sum(loss, model, batch, clip, shared=True)  # on a CPU nothing is shared
    monkeypatch.setattr(per_example, "ONE_PASS", {"cpu"})
    found = clipped_sum(loss, model, batch, clip, shared=True)
    for key in model:
        assert torch.equal(apart[key], expected[key])
        assert torch.allclose(found[key], expected[key], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settings", [{"max_norm": 1.0}, {"scale_grad_by_freq": True}, {"sparse": True}], ids=str)
def test_an_embedding_that_its_rule_can_not_compute_is_not_given_to_it(settings: dict[str, Any]) -> None:
    network = nn.Sequential(nn.Embedding(WORDS, 4, **settings), nn.Flatten(), nn.Linear(28, 3))
    loss = replace(ModuleLoss.from_module(network, losses), independent=True)
    params = {key: value.detach() for key, value in network.named_parameters()}
    assert supported_layers(loss, params) is None
    assert isolates_examples(loss) == ("sparse" in settings)


def test_equal_words_of_an_example_are_one_row() -> None:
    """Rows 3 and 4 of the same word add up to 7; of two words, they have the norm 5."""
    words = torch.tensor([[3, 3], [3, 0]])
    outer = torch.tensor([[[3.0], [4.0]], [[3.0], [4.0]]])
    found = LAYER_GRADIENTS[nn.Embedding].gradients(nn.Embedding(5, 1), words, outer)["weight"]
    assert found.squared_norms().tolist() == [49.0, 25.0]
    assert found.weighted_sum(torch.tensor([[1.0, 2.0]]))[0, :, 0].tolist() == [8.0, 0.0, 0.0, 13.0, 0.0]
    assert found.weighted_sum(torch.ones(2, 1))[1, :, 0].tolist() == [4.0, 0.0, 0.0, 3.0, 0.0]


def test_every_layer_with_a_rule_is_in_a_network_here_and_takes_whole_batches() -> None:
    assert set(LAYER_GRADIENTS) <= {type(layer) for module, _ in NETWORKS.values() for layer in module.modules()}
    assert set(LAYER_GRADIENTS) <= set(INDEPENDENT_LAYERS)  # or the rule is used only one example at a time


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [(kind, name) for kind in LAYER_GRADIENTS for name in ("weight", "bias") if (kind, name) != (nn.Embedding, "bias")],
    ids=str,
)
@pytest.mark.parametrize("large", [1, 10**9], ids=["one by one", "stacked"])
def test_a_rule_that_doubles_a_gradient_is_noticed_by_the_comparison(
    kind: type[nn.Module], parameter: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the comparison above could pass on a wrong rule, for instance because autograd took its place."""
    rule = LAYER_GRADIENTS[kind]

    def double_gradient(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
        right = rule.gradients(layer, inputs, outer)
        ones = torch.full((1, len(inputs)), 2.0, dtype=outer.dtype)
        wrong = torch.cat([right[parameter].weighted_sum(row[None] * ones) for row in torch.eye(len(inputs))])
        return {**right, parameter: DenseGradient(wrong)}

    monkeypatch.setattr(per_example, "LARGE_BATCH", large)
    monkeypatch.setitem(LAYER_GRADIENTS, kind, replace(rule, gradients=double_gradient))  # type: ignore[arg-type]
    name = next(name for name, (module, _) in NETWORKS.items() if kind in map(type, module.modules()))
    with pytest.raises(AssertionError, match=r"weight|bias"):
        assert_rules_equal_autograd(*case(name))


@pytest.mark.parametrize("kind", LAYER_GRADIENTS, ids=lambda kind: kind.__name__)
def test_a_rule_names_every_setting_of_its_layer(kind: type[nn.Module]) -> None:
    assert set(LAYER_GRADIENTS[kind].settings) == set(kind.__constants__)  # type: ignore[attr-defined]


def test_a_layer_with_a_setting_that_its_rule_does_not_name_goes_by_vmap() -> None:
    forgetful = Rule(LAYER_GRADIENTS[nn.Conv2d].gradients, {"stride": any_value})
    assert not forgetful.supports(nn.Conv2d(2, 2, 3))
    assert LAYER_GRADIENTS[nn.Conv2d].supports(nn.Conv2d(2, 2, 3))


@pytest.mark.parametrize(
    "settings",
    [
        {"groups": 2},
        {"dilation": 2},
        {"padding": "same"},
        *({"padding": 1, "padding_mode": mode} for mode in ("reflect", "replicate", "circular")),
    ],
    ids=str,
)
def test_a_convolution_that_its_rule_can_not_compute_goes_by_vmap_and_is_right(settings: dict[str, Any]) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(2, 2, 3, **settings), nn.Flatten(), nn.LazyLinear(3)).double()
    inputs = torch.randn(1, 4, *IMAGES, dtype=torch.float64)
    network(inputs[0])
    loss = replace(ModuleLoss.from_module(network, losses), independent=True)
    params = {key: value.detach()[None] for key, value in network.named_parameters()}
    batch = Batch(inputs, torch.randint(3, (1, 4)), torch.ones(1, 4, dtype=torch.bool), None)
    assert plan_for(loss, params, batch) is None
    found, expected = clipped_sum(loss, params, batch, Clip(0.7)), _sum_by_vmap(loss, params, batch, Clip(0.7))
    assert all(torch.equal(found[key], expected[key]) for key in params)


@pytest.mark.parametrize("kind", INDEPENDENT_LAYERS, ids=lambda kind: kind.__name__)
def test_every_function_that_a_layer_calls_is_named_beside_it(kind: type[nn.Module]) -> None:
    """They are what `runs_only_shipped_code` looks for patches in."""
    methods = {name: value for owner in kind.__mro__ for name, value in vars(owner).items() if owner is not nn.Module}
    sources = [inspect.getsource(value) for name, value in methods.items() if name.endswith("forward")]
    called = {name for source in sources for name in re.findall(r"\bF\.(\w+)\(", source)}
    assert called <= set(INDEPENDENT_LAYERS[kind])


@pytest.mark.parametrize("large", [1, 10**9], ids=["one by one", "stacked"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_an_example_that_is_not_finite_counts_for_nothing(
    large: int, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, params, batch = case("convolution")
    monkeypatch.setattr(per_example, "LARGE_BATCH", large)
    inputs = batch.inputs.clone()
    inputs[0, 1] = bad
    mask = batch.mask.clone()
    mask[0, 1] = False
    found = per_example.clipped_sum(loss, params, batch._replace(inputs=inputs), Clip(0.7))
    without = per_example.clipped_sum(loss, params, batch._replace(mask=mask), Clip(0.7))
    moved = math.sqrt(sum(float((found[key] - without[key]).square().sum()) for key in params))
    assert moved <= 0.7


class TiedLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(torch.tanh(self.layer(inputs)))


def test_a_layer_used_twice_goes_by_vmap_and_is_right() -> None:
    module = TiedLayers().double()
    params = {key: value.detach()[None] for key, value in module.named_parameters()}
    inputs, targets = torch.randn(1, 4, 6, dtype=torch.float64), torch.randint(6, (1, 4))
    batch = Batch(inputs, targets, torch.ones(1, 4, dtype=torch.bool), torch.ones(1, dtype=torch.bool))
    found = per_example.clipped_sum(ModuleLoss.from_module(module, losses), params, batch, Clip(0.3))
    expected = per_example._sum_by_vmap(ModuleLoss.from_module(module, losses), params, batch, Clip(0.3))
    assert torch.allclose(found["layer.weight"], expected["layer.weight"])


def test_a_network_with_an_unknown_layer_goes_by_vmap() -> None:
    assert (
        supported_layers(
            ModuleLoss.from_module(nn.Sequential(nn.Linear(3, 3), nn.PReLU()), losses), {"1.weight": torch.zeros(1)}
        )
        is None
    )
    assert (
        supported_layers(ModuleLoss.from_module(nn.Conv2d(4, 4, 3, groups=2), losses), {"weight": torch.zeros(1)})
        is None
    )
    assert supported_layers(lambda params, inputs, targets: inputs, {}) is None


class BatchCentring(nn.Module):
    """Subtracts the batch's mean; without isolation, one example would change all gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden: Tensor = self.layer(inputs)
        return hidden - hidden.mean(dim=0) if len(inputs) > 1 else hidden


class BatchCumsum(BatchCentring):
    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.layer(inputs).cumsum(dim=0)
        return outputs


class ReusedWeight(nn.Module):
    """Uses its layer's weight a second time, outside the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.last = nn.Linear(5, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        back = nn.functional.linear(torch.tanh(self.layer(inputs)), self.layer.weight.t())
        outputs: Tensor = self.last(back)
        return outputs


class ReusedWeightBehindZero(ReusedWeight):
    """Its second use has no gradient as long as the last layer is zero, as many networks start."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.last.weight)


class ShapeOfAWeight(ReusedWeight):
    """Asks its layer's weight for its shape and type, and computes with nothing of it."""

    def forward(self, inputs: Tensor) -> Tensor:
        width, like = self.layer.weight.shape[0], self.layer.weight.dtype
        hidden = torch.tanh(self.layer(inputs).to(like))
        outputs: Tensor = self.last(nn.functional.pad(hidden, (0, 5 - width)))
        return outputs


def each_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def build_batch(clients: int, width: int, outlier: float = 1.0) -> Batch:
    generator = torch.Generator().manual_seed(4)
    inputs = torch.randn(clients, width, 5, generator=generator, dtype=torch.float64)
    inputs[:, 0] *= outlier
    return Batch(inputs, torch.randint(3, (clients, width), generator=generator), torch.ones(clients, width) > 0, None)


@pytest.mark.parametrize("kind", [BatchCentring, BatchCumsum, ReusedWeight])
@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_whatever_a_network_does_one_example_moves_the_sum_by_the_clip_at_most(kind: type, outlier: float) -> None:
    torch.manual_seed(0)
    module = kind().double()
    loss = ModuleLoss.from_module(module, each_loss)
    params = repeat_for_clients({name: value.detach() for name, value in module.named_parameters()}, 2)
    batch = build_batch(2, 12, outlier)
    without = batch._replace(mask=batch.mask.clone())
    without.mask[:, 0] = False
    whole, less = (clipped_sum(loss, params, each, Clip(0.5)) for each in (batch, without))
    moved = norms({name: whole[name] - less[name] for name in whole})
    assert bool((moved <= 0.5).all())


@pytest.mark.parametrize("kind", [BatchCentring, BatchCumsum, ReusedWeight])
def test_gradients_are_those_of_each_example_alone(kind: type) -> None:
    torch.manual_seed(0)
    module = kind().double()
    loss = ModuleLoss.from_module(module, each_loss)
    params = repeat_for_clients({name: value.detach() for name, value in module.named_parameters()}, 2)
    batch = build_batch(2, 6)
    found = clipped_sum(loss, params, batch, Clip(1e30))
    expected = _sum_by_vmap(loss, params, batch, Clip(1e30))
    assert all(torch.allclose(found[name], expected[name], atol=1e-9) for name in found)


@pytest.mark.parametrize(("kind", "planned"), [(ReusedWeightBehindZero, False), (ShapeOfAWeight, True)])
def test_a_weight_that_is_used_outside_its_layer_is_found_whatever_its_gradient(kind: type, planned: bool) -> None:
    module = kind().double()
    loss = ModuleLoss.from_module(module, each_loss)
    params = {name: value.detach()[None] for name, value in module.named_parameters()}
    assert (per_example.plan_for(loss, params, build_batch(1, 3)) is not None) == planned


class OtherForms(nn.Module):
    """Calls layers in ways in which their inputs or outputs have another form than usual."""

    def __init__(self) -> None:
        super().__init__()
        self.by_name, self.of_one_row, self.of_nothing = nn.Linear(5, 4), nn.Linear(4, 1), nn.Linear(4, 2)
        self.picture = nn.Conv2d(1, 1, 1)
        self.last = nn.Linear(1, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = torch.tanh(self.by_name(input=inputs))
        numbers = torch.stack([self.of_one_row(row) for row in hidden])
        numbers = numbers + self.of_nothing(hidden[:, None][:, :0]).sum((1, 2))[:, None]
        pictures = torch.stack([self.picture(number.reshape(1, 1, 1)).flatten() for number in numbers])
        outputs: Tensor = self.last(pictures)
        return outputs


def test_layers_that_are_called_in_other_forms_go_by_vmap_and_are_right() -> None:
    torch.manual_seed(0)
    module = OtherForms().double()
    batch = build_batch(1, 3)
    params = {name: value.detach()[None] for name, value in module.named_parameters()}
    found = per_example.clipped_sum(ModuleLoss.from_module(module, each_loss), params, batch, Clip(1e6))
    own = list(module.parameters())
    total = each_loss(module(batch.inputs[0]), batch.targets[0]).sum()
    for value, expected in zip(found.values(), torch.autograd.grad(total, own), strict=True):
        torch.testing.assert_close(value[0], expected)


class AnotherPath(nn.Module):
    """Calls its layer as often as a list says, call by call."""

    def __init__(self, times: list[int]) -> None:
        super().__init__()
        self.layer, self.times = nn.Linear(5, 5), times

    def forward(self, inputs: Tensor) -> Tensor:
        for _ in range(self.times.pop(0)):
            inputs = self.layer(inputs)
        return inputs[:, :3]


@pytest.mark.parametrize("later", [0, 2])
def test_a_layer_that_is_called_more_or_less_often_than_when_it_was_tried_is_refused(later: int) -> None:
    module = AnotherPath([1, 1, 1, later])
    loss = ModuleLoss.from_module(module, each_loss)
    params = {name: value.detach().double()[None] for name, value in module.named_parameters()}
    batch = build_batch(1, 3)
    assert per_example.plan_for(loss, params, batch) is not None  # which takes three calls
    with pytest.raises(InvalidInput, match="another number of times than when it was tried"):
        per_example.clipped_sum(loss, params, batch, Clip(1.0))


def test_only_networks_that_are_known_to_keep_examples_apart_take_whole_batches() -> None:
    plain = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    trusted = ModuleLoss(plain, lambda *given: given[1], independent=True)
    assert isolates_examples(trusted)
    assert not isolates_examples(ModuleLoss(plain, trusted.loss))  # the loss may do anything
    assert not isolates_examples(ModuleLoss(nn.Sequential(nn.Flatten(0)), trusted.loss, independent=True))
    assert not isolates_examples(ModuleLoss(BatchCentring(), trusted.loss, independent=True))
    plain.register_forward_hook(lambda layer, given, output: output - output.mean(0))
    assert not isolates_examples(trusted)


def test_a_tiny_gradient_beside_a_huge_input_is_clipped_too() -> None:
    """The squares of 1e-23 vanish in single precision, and the product with 1.5e19 would pass a clip of 1e-5."""
    found = OuterProductGradient(torch.full((1, 1), 1e-23), torch.full((1, 1), 1.5e19))
    assert float(found.squared_norms()) == pytest.approx(2.25e-8, rel=1e-4)


@pytest.mark.parametrize("outlier", [1e-6, 1.0, 1e6])
def test_automatic_clipping_bounds_an_example_too_and_lifts_small_ones(outlier: float) -> None:
    loss = ModuleLoss.from_module(nn.Linear(5, 3).double(), each_loss)
    params = repeat_for_clients({name: value.detach() for name, value in loss.module.named_parameters()}, 1)
    one = build_batch(1, 1, outlier)
    moved = float(norms(clipped_sum(loss, params, one, Clip(0.5, automatic=True))))
    plain = float(norms(clipped_sum(loss, params, one, Clip(1e30))))
    assert moved <= 0.5
    assert moved == pytest.approx(0.5 * plain / (plain + 0.01), rel=1e-3)


@pytest.mark.parametrize("first", [0.1, 1.0, 1e4])
def test_the_clip_holds_for_a_gradient_of_ten_million_values(first: float):
    """One value, then many so small that adding each square to a long sum in single precision would lose it."""
    value = torch.full((1, 10**7), 0.1 if first == 0.1 else first * 1e-4)
    value[0, 0] = first
    found = DenseGradient(value)
    weights = clip_factors(found.squared_norms().sqrt()[None], 1.0)
    assert float(found.weighted_sum(weights).double().norm()) <= 1


def test_the_norm_of_a_gradient_keeps_its_bound_for_any_number_of_values():
    generator = torch.Generator().manual_seed(0)
    for size in (1, 255, 256, 257, 100_003):
        value = torch.randn(3, size, generator=generator)
        exact = value.double().square().sum(dim=1)
        assert torch.allclose(DenseGradient(value).squared_norms(), exact, rtol=1e-5, atol=0)
