"""A data set whose inputs are replaced by features of a fixed extractor. Features are computed once and cached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from discreet.data.features import feature_cache
from discreet.data.features.extractors import AnyExtractor, Extractor, Scatternet
from discreet.data.federation import is_finite
from discreet.data.tasks.any_image_task import AnyImageTask
from discreet.data.tasks.examples import Examples
from discreet.errors import InvalidInput
from discreet.lazy_torch import Tensor, nn, torch
from discreet.part import part
from discreet.paths import Paths

BATCH = 512  # examples per batch: enough to keep any device busy, and few enough for its memory
CHECKED = 4  # examples that are computed again, to check that cached features are still right


@part
class Features:
    """The features of an image data set.

    Attributes:
        of: The data set. Its examples, clients and partition are used, with features as inputs.
        extractor: What computes the features.
    """

    kind: Literal["features"] = "features"
    of: Annotated[AnyImageTask, Field(discriminator="kind")]
    extractor: AnyExtractor = Scatternet()

    def examples(self, paths: Paths) -> Examples:
        """Read the data set and its features, which are computed if they are not in the cache."""
        return extract_features(self.of.examples(paths), self.extractor, paths)


def extract_features(examples: Examples, chosen: AnyExtractor, paths: Paths) -> Examples:
    """Return the examples with features as inputs, from the cache if they are there."""
    extractor = chosen.build(tuple(examples.inputs.shape[1:]), paths)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    extractor.module.to(device)
    _check_examples_independent(extractor, examples.inputs[:CHECKED].to(device))

    def features_of(inputs: Tensor, which: str) -> Tensor:
        def progress(done: int) -> None:
            paths.on_progress(f"{extractor.name} features of {examples.name}, {which}", done, len(inputs))

        settings = {**extractor.settings, "device": device.type}  # devices round differently
        return feature_cache.load_or_compute(
            paths.cache,
            inputs,
            settings,
            compute=lambda: _compute_in_batches(extractor.module, inputs, device, progress),
            is_valid=lambda cached: _is_current(cached, extractor.module, inputs, device),
        )

    public = examples.public
    return replace(
        examples,
        name=f"{examples.name}-features",
        inputs=features_of(examples.inputs, "training examples"),
        test_inputs=features_of(examples.test_inputs, "test examples"),
        public=None if public is None else (features_of(public[0], "public examples"), public[1]),
        facts=(*examples.facts, *extractor.facts),
        not_covered=(*examples.not_covered, *extractor.not_covered),
    )


def _compute_in_batches(
    module: nn.Module, inputs: Tensor, device: torch.device, progress: Callable[[int], None]
) -> Tensor:
    """Compute the features of all inputs, one batch after the other."""
    features: Tensor | None = None
    for start in range(0, len(inputs), BATCH):
        batch = _compute_features(module, inputs[start : start + BATCH].to(device))
        if features is None:
            features = torch.empty(len(inputs), *batch.shape[1:])
        features[start : start + BATCH] = batch
        progress(start + len(batch))
    if features is None:
        raise InvalidInput("There are no examples to compute features of.")
    return features


def _compute_features(module: nn.Module, inputs: Tensor) -> Tensor:
    """Run the extractor, and refuse features that have another form than expected."""
    with torch.no_grad():
        features = module(inputs)
    is_tensor = isinstance(features, torch.Tensor)
    if not is_tensor or features.shape[:1] != inputs.shape[:1] or not features.is_floating_point():
        got = f"a tensor of {features.dtype} {tuple(features.shape)}" if is_tensor else type(features).__name__
        raise InvalidInput(
            f"An extractor must return a tensor of floating-point numbers with one row per example, and returned {got} "
            f"for {len(inputs)} examples."
        )
    numbers: Tensor = features.float()
    if not is_finite(numbers):
        raise InvalidInput(
            f"An extractor must return finite numbers, and {type(module).__name__} returned NaN or infinity.",
            fix="Check its weights and the scale of its inputs.",
        )
    return numbers


def _check_examples_independent(extractor: Extractor, inputs: Tensor) -> None:
    """Refuse features that depend on other examples: one example would change all of them, and no clip bounds that."""
    without_others = torch.cat([inputs[:1], torch.zeros_like(inputs[1:])])
    first, again = (_compute_features(extractor.module, batch)[0] for batch in (inputs, without_others))
    if not _is_close(first, again, 1e-5):
        raise InvalidInput(
            f"{extractor.name} mixes examples: the features of one example depend on the others.",
            fix="An extractor must treat each example separately, and use no random numbers.",
        )


def _is_current(cached: Tensor, module: nn.Module, inputs: Tensor, device: torch.device) -> bool:
    """Return whether cached features are still right: code that the extractor imports may have changed."""
    few = _compute_features(module, inputs[:CHECKED].to(device)).cpu()
    return len(cached) == len(inputs) and cached.shape[1:] == few.shape[1:] and _is_close(cached[:CHECKED], few, 1e-2)


def _is_close(one: Tensor, other: Tensor, share: float) -> bool:
    """Return whether tensors differ by at most a share of the largest number. Rounding depends on the batch size."""
    return float((one - other).abs().max()) <= share * float(other.abs().max())
