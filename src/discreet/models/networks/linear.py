"""One linear layer: logistic or linear regression."""

from typing import Literal

import torch
from torch import nn

from discreet.data.tasks.task import Task
from discreet.models.networks.model_shape import flatten_then, group_norm, input_size
from discreet.part import Count, part


@part
class Linear:
    """Starts at zero: the loss is convex, so there is no symmetry to break.

    With `norm_groups` an image's channels are first normalised in so many groups, each example by itself: nothing is
    learned there, so it costs no privacy.
    """

    kind: Literal["linear"] = "linear"
    norm_groups: Count | None = None

    def build(self, task: Task, generator: torch.Generator) -> nn.Module:
        layer = nn.Linear(input_size(task), task.classes)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        if self.norm_groups is None:
            return flatten_then(task, layer)
        return nn.Sequential(group_norm(task, self.norm_groups), nn.Flatten(), layer)
