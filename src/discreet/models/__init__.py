"""The networks to train: those of this package, and a user's own by `file.py:Class`."""

from typing import Annotated, TypeAlias

from pydantic import Discriminator, Tag

from discreet.models.networks.emnist_cnn import EmnistCnn
from discreet.models.networks.femnist_cnn import FemnistCnn
from discreet.models.networks.linear import Linear
from discreet.models.networks.mlp import Mlp
from discreet.models.networks.papernot_cnn import PapernotCnn
from discreet.models.networks.resnet18 import Resnet18
from discreet.models.networks.scatter_cnn import ScatterCnn
from discreet.models.networks.user_model import UserModel
from discreet.user_code import kind_tag

AnyModel: TypeAlias = Annotated[
    Annotated[Linear, Tag("linear")]
    | Annotated[Mlp, Tag("mlp")]
    | Annotated[PapernotCnn, Tag("papernot_cnn")]
    | Annotated[ScatterCnn, Tag("scatter_cnn")]
    | Annotated[FemnistCnn, Tag("femnist_cnn")]
    | Annotated[EmnistCnn, Tag("emnist_cnn")]
    | Annotated[Resnet18, Tag("resnet18")]
    | Annotated[UserModel, Tag("own")],
    Discriminator(
        kind_tag,
        custom_error_type="unknown_model",
        custom_error_message="kind must be 'linear', 'mlp', 'papernot_cnn', 'scatter_cnn', 'femnist_cnn', "
        "'emnist_cnn', 'resnet18' or your own as 'file.py:Class' or 'module:Class'",
    ),
]
