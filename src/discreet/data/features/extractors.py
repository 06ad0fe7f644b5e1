"""Extractors compute features: ScatterNet, or a user's own frozen network. Neither learns from the clients' data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError  # nosec B403 # the error alone; torch reads weights only
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from discreet.data.features.feature_cache import tensor_digest
from discreet.errors import InvalidInput
from discreet.lazy_torch import nn, torch
from discreet.part import Count, part
from discreet.paths import Paths
from discreet.randomness.torch_seed import seed_torch
from discreet.user_code import Reference, build_module, find_code, kind_tag
from discreet.words import fill


@dataclass(frozen=True)
class Extractor:
    """An extractor that is ready to use.

    Attributes:
        settings: Plain data: everything that the features depend on besides the inputs. It is part of the cache's key.
        facts: Sentences for the card about the features.
        not_covered: Sentences for the card about what the guarantee does not cover.
    """

    name: str
    module: nn.Module
    settings: dict[str, Any]
    facts: tuple[str, ...]
    not_covered: tuple[str, ...] = field(default=())


@part
class Scatternet:
    """The scattering transform. With the defaults, 28 by 28 pixels become 81 channels of 7 by 7.

    Attributes:
        depth: Number of scales of the wavelets. Each halves the resolution.
        rotations: Number of directions of the wavelets.
    """

    kind: Literal["scatternet"] = "scatternet"
    depth: Count = 2
    rotations: Count = 8

    def build(self, shape: tuple[int, ...], paths: Paths) -> Extractor:
        """Build the extractor for inputs of this shape."""
        from discreet.data.features.scatternet import VERSION, ScatterNet  # a module of torch

        if len(shape) != 3:
            raise InvalidInput(
                f"ScatterNet needs images as (channels, height, width), and got inputs of the shape {shape}.",
                fix="Use a task with images.",
            )
        return Extractor(
            name="ScatterNet",
            module=ScatterNet(*shape[1:], self.depth, self.rotations),
            settings={"kind": self.kind, "version": VERSION, "depth": self.depth, "rotations": self.rotations},
            facts=(fill("data.scatternet", depth=self.depth, rotations=self.rotations),),
        )


@part
class UserExtractor:
    """A user's own frozen network.

    Attributes:
        kind: The class or function that builds it, as `file.py:Name` or `package.module:Name`.
        weights: A file of weights, relative to the experiment: safetensors, or a state dict saved by torch.
        arguments: Keyword arguments of the class or function.
    """

    kind: Reference
    weights: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)

    def build(self, shape: tuple[int, ...], paths: Paths) -> Extractor:
        """Build the extractor for inputs of this shape."""
        from discreet.algorithms.training.unsupported_layers import check_layers  # a list of torch's layers

        code = find_code(self.kind, paths.folder, {"weights": self.weights, "arguments": self.arguments})
        with seed_torch(0):  # weights that are not in a file are at least the same each time
            module = build_module(code, self.arguments, paths.trust, {})
        if self.weights is not None:
            _load_weights(module, paths.folder / self.weights)
        module.eval().requires_grad_(requires_grad=False)
        check_layers(module)
        state = module.state_dict()
        return Extractor(
            name=self.kind,
            module=module,
            settings={
                "kind": self.kind,
                "arguments": self.arguments,
                "code": code.files[0].sha256 if code.files else None,  # other code may compute other features
                "state": {
                    name: tensor_digest(tensor) for name, tensor in state.items() if isinstance(tensor, torch.Tensor)
                },
            },
            facts=(fill("data.own_features", extractor=self.kind),),
            not_covered=(fill("not_covered.extractor_data", extractor=self.kind),),
        )


AnyExtractor: TypeAlias = Annotated[
    Annotated[Scatternet, Tag("scatternet")] | Annotated[UserExtractor, Tag("own")],
    Discriminator(
        kind_tag,
        custom_error_type="unknown_extractor",
        custom_error_message="kind must be 'scatternet' or your own as 'file.py:Class' or 'module:Class'",
    ),
]


def _load_weights(module: nn.Module, path: Path) -> None:
    """Load weights from a file. Only tensors are read, so the file can't run code."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.", fix="Give its path relative to the experiment file.")
    try:
        weights = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
        module.load_state_dict(weights)
    except (UnpicklingError, EOFError):  # torch would advise to let the file run code
        raise _wrong_weights_error(module, path, "it is damaged, or contains more than tensors") from None
    except (SafetensorError, OSError, RuntimeError, TypeError, AttributeError) as error:
        raise _wrong_weights_error(module, path, " ".join(str(error).split())[:300].rstrip(".")) from error


def _wrong_weights_error(module: nn.Module, path: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"{path} does not contain the weights of {type(module).__name__}: {why}.",
        fix="Save them with safetensors, or with torch.save(module.state_dict(), path).",
    )
