"""What is learned: the built-in digits, public data sets, a user's own tables, arrays or torch datasets."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.tasks.acs_income import AcsIncome
from discreet.tasks.cifar10 import Cifar10
from discreet.tasks.cifar100 import Cifar100
from discreet.tasks.digits import Digits
from discreet.tasks.emnist import Emnist
from discreet.tasks.fashion_mnist import FashionMnist
from discreet.tasks.features import AnyDataSet, Features
from discreet.tasks.femnist import Femnist
from discreet.tasks.given import clients_from_arrays, clients_from_datasets
from discreet.tasks.lending_club import LendingClub
from discreet.tasks.merged import Merged
from discreet.tasks.mnist import Mnist
from discreet.tasks.supervised import Supervised
from discreet.tasks.tabular import OwnTable, clients_from_csv, clients_from_parquet
from discreet.tasks.task import Task

AnyTask: TypeAlias = Annotated[
    Digits
    | OwnTable
    | Mnist
    | FashionMnist
    | Cifar10
    | Cifar100
    | Emnist
    | Femnist
    | AcsIncome
    | LendingClub
    | Features
    | Merged,
    Field(discriminator="kind"),
]

__all__ = [
    "AcsIncome",
    "AnyDataSet",
    "AnyTask",
    "Cifar10",
    "Cifar100",
    "Digits",
    "Emnist",
    "FashionMnist",
    "Features",
    "Femnist",
    "LendingClub",
    "Merged",
    "Mnist",
    "OwnTable",
    "Supervised",
    "Task",
    "clients_from_arrays",
    "clients_from_csv",
    "clients_from_datasets",
    "clients_from_parquet",
]
