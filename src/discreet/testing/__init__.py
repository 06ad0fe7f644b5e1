"""Checks that a part keeps its contract: the contract tests that our own parts pass, for any part."""

from discreet.testing.aggregation_check import check_aggregation
from discreet.testing.algorithm_trial import try_algorithm
from discreet.testing.mechanism_check import check_mechanism
from discreet.testing.part_failure import PartFailed
from discreet.testing.sampler_check import check_sampler
from discreet.testing.server_optimizer_check import check_schedule, check_server_optimizer
from discreet.testing.sparsifier_check import check_sparsifier
from discreet.testing.trainer_check import check_trainer

__all__ = [
    "PartFailed",
    "check_aggregation",
    "check_mechanism",
    "check_sampler",
    "check_schedule",
    "check_server_optimizer",
    "check_sparsifier",
    "check_trainer",
    "try_algorithm",
]
