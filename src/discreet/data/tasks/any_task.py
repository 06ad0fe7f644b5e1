"""Every kind of task that an experiment file can name."""

from typing import Annotated, TypeAlias

from pydantic import Field

from discreet.data.features.feature_task import Features
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.acs_income import AcsIncome
from discreet.data.tasks.any_image_task import AnyImageTask
from discreet.data.tasks.digits import Digits
from discreet.data.tasks.lending_club import LendingClub
from discreet.data.tasks.merged_splits import MergedSplits

AnyTask: TypeAlias = Annotated[
    Digits | TableTask | AnyImageTask | AcsIncome | LendingClub | Features | MergedSplits,
    Field(discriminator="kind"),
]
