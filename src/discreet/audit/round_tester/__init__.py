"""A stochastic tester of a whole round: it searches neighbours that the round tells apart better than is claimed."""

from discreet.audit.round_tester.round_attack import Effort, attack_round
from discreet.audit.round_tester.round_test import RoundTest
from discreet.audit.round_tester.toy_task import ToyTask, logistic_task, switch_task

__all__ = ["Effort", "RoundTest", "ToyTask", "attack_round", "logistic_task", "switch_task"]
