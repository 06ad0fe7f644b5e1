"""What is learned: the built-in digits, and a user's own data as CSV, arrays or torch datasets."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.tasks.csv import Csv, clients_from_csv
from discreet.tasks.digits import Digits
from discreet.tasks.given import clients_from_arrays, clients_from_datasets
from discreet.tasks.supervised import Supervised
from discreet.tasks.task import Task

AnyTask: TypeAlias = Annotated[Digits | Csv, Field(discriminator="kind")]

__all__ = [
    "AnyTask",
    "Csv",
    "Digits",
    "Supervised",
    "Task",
    "clients_from_arrays",
    "clients_from_csv",
    "clients_from_datasets",
]
