"""Local training: what a client does with the broadcast model and its data."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.algorithms.training.broadcast_gradients import BroadcastGradients
from discreet.algorithms.training.convex_local import ConvexLocal
from discreet.algorithms.training.denoised_release import DenoisedRelease
from discreet.algorithms.training.dp_sgd import DpSgd
from discreet.algorithms.training.exposure import ExampleBound, Exposure
from discreet.algorithms.training.gradient_descent import GradientDescent
from discreet.algorithms.training.local_sgd import LocalSgd
from discreet.algorithms.training.minibatch_dp import MinibatchDp
from discreet.algorithms.training.shards import Shards
from discreet.algorithms.training.trainer import LocalTrainer, Loss
from discreet.own_part import OwnPart

AnyTrainer: TypeAlias = Annotated[
    LocalSgd | GradientDescent | DpSgd | MinibatchDp | BroadcastGradients | ConvexLocal | DenoisedRelease | Shards,
    Field(discriminator="kind"),
    OwnPart(LocalTrainer),
]

__all__ = [
    "AnyTrainer",
    "BroadcastGradients",
    "ConvexLocal",
    "DenoisedRelease",
    "DpSgd",
    "ExampleBound",
    "Exposure",
    "GradientDescent",
    "LocalSgd",
    "LocalTrainer",
    "Loss",
    "MinibatchDp",
    "Shards",
]
