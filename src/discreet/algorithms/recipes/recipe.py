"""An entry of the catalog of recipes, which loads its function when it is first used."""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm
    from discreet.algorithms.recipes.recipe_arguments import Argument
    from discreet.privacy.release import Release


@dataclass(frozen=True)
class Recipe:
    """A function that composes an algorithm, and what the catalog says about it.

    Nothing heavy is imported before the function is used, so `import discreet` can list all recipes.

    Attributes:
        file: The file of this folder that defines the function, without .py.
        name: The function's name: that of the recipe in an experiment file.
        paper: Citation of the paper that it is taken from; empty for a baseline and for a scheme of this package.
        example: Arguments with which it runs, without noise.
    """

    file: str
    name: str
    paper: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """Full name of the module that defines the function."""
        return f"{__package__}.{self.file}"

    @property
    def function(self) -> "Callable[..., Algorithm]":
        """The function itself."""
        function: Callable[..., Algorithm] = getattr(importlib.import_module(self.module), self.name)
        return function

    def __call__(self, **arguments: Any) -> "Algorithm":
        """Compose the algorithm from arguments as an experiment file writes them: a table becomes a part.

        Raises:
            InvalidInput: If an argument has the wrong type.
        """
        from discreet.algorithms.recipes.recipe_arguments import validate_arguments

        return self.function(**validate_arguments(self.function, arguments))

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The function's parameters by name."""
        return inspect.signature(self.function).parameters

    @property
    def summary(self) -> str:
        """First sentence of the description."""
        return first_sentence(self.description)

    @property
    def description(self) -> str:
        """The function's docstring, without the sections on arguments, result and errors."""
        return (inspect.getdoc(self.function) or "").partition("\n\nArgs:")[0]

    @property
    def arguments(self) -> "list[Argument]":
        """The function's arguments as an experiment file writes them."""
        from discreet.algorithms.recipes.recipe_arguments import list_arguments

        return list_arguments(self.function)

    @property
    def protects(self) -> "list[Release]":
        """What one round of the example releases: it names the unit protected and who looks. Empty without privacy."""
        from discreet.algorithms.recipes.recipe_arguments import DIMENSION, SAMPLE

        return self(**self.example).for_population(SAMPLE, DIMENSION).with_noise(1.0).releases(SAMPLE, 0)


def first_sentence(text: str) -> str:
    """Return the first sentence of the first paragraph on one line; "et al." doesn't end it."""
    paragraph, _, _ = text.partition("\n\n")
    return re.split(r"(?<=[^.]\.)\s(?=[A-Z])", " ".join(paragraph.split()), maxsplit=1)[0]
