"""One linear layer: logistic or linear regression."""

from __future__ import annotations

from typing import Literal

from discreet.data.tasks.task import Task
from discreet.lazy_torch import nn, torch
from discreet.models.networks.model_shape import flatten_then, group_norm, input_size
from discreet.part import Count, part


@part
class Linear:
    """A linear layer that starts at zero: its loss is convex, so there is no symmetry to break.

    Attributes:
        norm_groups: Normalise the channels of each image in this number of groups first. Each example is normalised
            separately and nothing is learned, so it costs no privacy.
    """

    kind: Literal["linear"] = "linear"
    norm_groups: Count | None = None

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        """Build the layer for a task, with all weights zero."""
        layer = nn.Linear(input_size(task), task.classes)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        if self.norm_groups is None:
            return flatten_then(task, layer)
        return nn.Sequential(group_norm(task, self.norm_groups), nn.Flatten(), layer)
