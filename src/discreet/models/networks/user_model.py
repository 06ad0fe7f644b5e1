"""A user's own model, which an experiment names as `net.py:Net` or `package.module:Net`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.model_shape import seeded_initialisation
from discreet.part import part
from discreet.paths import Paths
from discreet.user_code import Reference, build_module, find_code


@part
class UserModel:
    """A class or function that returns an nn.Module.

    Attributes:
        kind: The class or function, as `file.py:Name` or `package.module:Name`.
        arguments: Its keyword arguments. If it has a parameter `task`, it gets the task too.
    """

    kind: Reference
    arguments: dict[str, Any] = Field(default_factory=dict)

    def build(self, task: Task, generator: torch.Generator, paths: Paths) -> nn.Module:
        """Build the network for a task. Its initial weights come from `generator`, its code from the paths' folder."""
        code = find_code(self.kind, paths.folder, {"arguments": self.arguments})
        with seeded_initialisation(generator):
            return build_module(code, self.arguments, paths.trust, {"task": task})
