"""A data set seen through a fixed extractor: features are computed once, kept, and then trained on like any inputs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from discreet.data.features import feature_cache
from discreet.data.features.extractors import AnyExtractor, Extractor, Scatternet
from discreet.data.federation import is_finite
from discreet.data.partition import AnyPartition
from discreet.data.tasks.any_image_task import AnyImageTask
from discreet.data.tasks.examples import Examples
from discreet.errors import InvalidInput
from discreet.part import part
from discreet.paths import Paths

AT_ONCE = 512  # examples: enough to keep any device busy, and not too many for its memory
TRIED = 4  # examples that are computed anew, to see that what was kept is what would be computed


@part
class Features:
    """The examples, clients and partition are those of `of`; the inputs become features."""

    kind: Literal["features"] = "features"
    of: Annotated[AnyImageTask, Field(discriminator="kind")]
    extractor: AnyExtractor = Scatternet()

    @property
    def clients(self) -> int | None:
        return self.of.clients

    @property
    def partition(self) -> AnyPartition:
        return self.of.partition

    def examples(self, paths: Paths) -> Examples:
        return extract_features(self.of.examples(paths), self.extractor, paths)


def extract_features(examples: Examples, chosen: AnyExtractor, paths: Paths) -> Examples:
    """The same examples, with features for inputs."""
    extractor = chosen.extractor(tuple(examples.inputs.shape[1:]), paths)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    extractor.module.to(device)
    _check_examples_independent(extractor, examples.inputs[:TRIED].to(device))

    def of(inputs: Tensor, which: str) -> Tensor:
        def progress(done: int) -> None:
            paths.on_progress(f"{extractor.name} features of {examples.name}, {which}", done, len(inputs))

        settings = {**extractor.settings, "device": device.type}  # whose rounding differs
        return feature_cache.load_or_compute(
            paths.cache,
            inputs,
            settings,
            compute=lambda: _compute_in_batches(extractor.module, inputs, device, progress),
            fits=lambda found: _is_current(found, extractor.module, inputs, device),
        )

    public = examples.public
    return replace(
        examples,
        name=f"{examples.name}-features",
        inputs=of(examples.inputs, "to train on"),
        test_inputs=of(examples.test_inputs, "to test on"),
        public=None if public is None else (of(public[0], "that are public"), public[1]),
        facts=(*examples.facts, *extractor.facts),
        not_covered=(*examples.not_covered, *extractor.not_covered),
    )


def _compute_in_batches(
    module: nn.Module, inputs: Tensor, device: torch.device, progress: Callable[[int], None]
) -> Tensor:
    """A few examples at a time."""
    found: Tensor | None = None
    for start in range(0, len(inputs), AT_ONCE):
        piece = _compute_features(module, inputs[start : start + AT_ONCE].to(device))
        if found is None:
            found = torch.empty(len(inputs), *piece.shape[1:])
        found[start : start + AT_ONCE] = piece
        progress(start + len(piece))
    if found is None:
        raise InvalidInput("There are no examples to compute features of.")
    return found


def _compute_features(module: nn.Module, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        found = module(inputs)
    if not isinstance(found, Tensor) or found.shape[:1] != inputs.shape[:1] or not found.is_floating_point():
        got = f"a tensor of {found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InvalidInput(
            f"An extractor must give a tensor of floating-point numbers with one row an example, and gave {got} for "
            f"{len(inputs)} examples."
        )
    if not is_finite(found := found.float()):
        raise InvalidInput(
            f"An extractor must give finite numbers, and {type(module).__name__} gave NaN or infinity.",
            fix="Look at its weights, and at how large its inputs may be.",
        )
    return found


def _check_examples_independent(extractor: Extractor, inputs: Tensor) -> None:
    """Features that depend on other examples would let one example move what all of them give: no clip bounds that."""
    without_others = torch.cat([inputs[:1], torch.zeros_like(inputs[1:])])
    first, again = (_compute_features(extractor.module, each)[0] for each in (inputs, without_others))
    if not _is_close(first, again, 1e-5):
        raise InvalidInput(
            f"{extractor.name} mixes examples: what it gives for one depends on the others.",
            fix="An extractor must see each example by itself, and draw nothing at random.",
        )


def _is_current(found: Tensor, module: nn.Module, inputs: Tensor, device: torch.device) -> bool:
    """Whether what was kept is still what would be computed: code that an extractor imports may have changed."""
    anew = _compute_features(module, inputs[:TRIED].to(device)).cpu()
    return len(found) == len(inputs) and found.shape[1:] == anew.shape[1:] and _is_close(found[:TRIED], anew, 1e-2)


def _is_close(one: Tensor, other: Tensor, share: float) -> bool:
    """Up to rounding, which depends on how many examples are computed at once: a share of the largest number."""
    return float((one - other).abs().max()) <= share * float(other.abs().max())
