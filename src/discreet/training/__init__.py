"""What a client does with the broadcast model and its data."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.training.dp_sgd import DpSgd
from discreet.training.gradient_descent import GradientDescent
from discreet.training.local_sgd import LocalSgd
from discreet.training.minibatch_dp import MinibatchDp
from discreet.training.trainer import LocalTrainer, Loss

AnyTrainer: TypeAlias = Annotated[LocalSgd | GradientDescent | DpSgd | MinibatchDp, Field(discriminator="kind")]

__all__ = ["AnyTrainer", "DpSgd", "GradientDescent", "LocalSgd", "LocalTrainer", "Loss", "MinibatchDp"]
