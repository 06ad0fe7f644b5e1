"""Every kind of task that an experiment's file can name."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.data.features.feature_task import Features
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.acs_income import AcsIncome
from discreet.data.tasks.cifar10 import Cifar10
from discreet.data.tasks.cifar100 import Cifar100
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.emnist import Emnist
from discreet.data.tasks.fashion_mnist import FashionMnist
from discreet.data.tasks.femnist import Femnist
from discreet.data.tasks.lending_club import LendingClub
from discreet.data.tasks.merged_splits import MergedSplits
from discreet.data.tasks.mnist import Mnist

AnyTask: TypeAlias = Annotated[
    Digits
    | TableTask
    | Mnist
    | FashionMnist
    | Cifar10
    | Cifar100
    | Emnist
    | Femnist
    | AcsIncome
    | LendingClub
    | Features
    | MergedSplits,
    Field(discriminator="kind"),
]
