"""The networks that are trained: ours, and a user's own by `file.py:Class`."""

from typing import Annotated, Any, TypeAlias

from pydantic import Discriminator, Tag

from discreet.models.linear import Linear
from discreet.models.mlp import Mlp
from discreet.models.own import Own, local


def _which(value: Any) -> str:
    kind = str(value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None))
    return "own" if ":" in kind else kind


AnyModel: TypeAlias = Annotated[
    Annotated[Linear, Tag("linear")] | Annotated[Mlp, Tag("mlp")] | Annotated[Own, Tag("own")],
    Discriminator(
        _which,
        custom_error_type="unknown_model",
        custom_error_message="kind must be 'linear', 'mlp' or your own as 'file.py:Class' or 'module:Class'",
    ),
]

__all__ = ["AnyModel", "Linear", "Mlp", "Own", "local"]
