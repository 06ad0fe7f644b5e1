"""A user's own model, named in a file: `net.py:Net` or `package.module:Net`."""

from typing import Any

import torch
from pydantic import Field
from torch import nn

from discreet.data.tasks.task import Task
from discreet.models.networks.model_shape import seeded_initialisation
from discreet.part import part
from discreet.user_code import Reference, build_module


@part
class UserModel:
    """A class or function that makes an nn.Module from `arguments`; it gets the task too if it asks for `task`."""

    kind: Reference
    arguments: dict[str, Any] = Field(default_factory=dict)

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        with seeded_initialisation(generator):
            return build_module(self.kind, self.arguments, offered={"task": task})
