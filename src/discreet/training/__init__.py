"""What a client does with the broadcast model and its data."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.training.broadcast_gradients import BroadcastGradients
from discreet.training.convex_local import ConvexLocal
from discreet.training.denoised import DenoisedRelease
from discreet.training.dp_sgd import DpSgd
from discreet.training.gradient_descent import GradientDescent
from discreet.training.local_sgd import LocalSgd
from discreet.training.minibatch_dp import MinibatchDp
from discreet.training.shards import Shards
from discreet.training.trainer import LocalTrainer, Loss, Sums

AnyTrainer: TypeAlias = Annotated[
    LocalSgd | GradientDescent | DpSgd | MinibatchDp | BroadcastGradients | ConvexLocal | DenoisedRelease | Shards,
    Field(discriminator="kind"),
]

__all__ = [
    "AnyTrainer",
    "BroadcastGradients",
    "ConvexLocal",
    "DenoisedRelease",
    "DpSgd",
    "GradientDescent",
    "LocalSgd",
    "LocalTrainer",
    "Loss",
    "MinibatchDp",
    "Shards",
    "Sums",
]
