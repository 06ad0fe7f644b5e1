"""Which members of a contract have a default, and that every part of this package defines those without one."""

from dataclasses import fields
from typing import Any, get_args

import pytest

from discreet.algorithms.aggregation import Aggregation, AnyAggregation
from discreet.algorithms.mechanisms import AnyMechanism, Mechanism
from discreet.algorithms.sampling import AnySampling, Sampling
from discreet.algorithms.server_optimizers import AnyServer, ServerOptimizer
from discreet.algorithms.sparsifiers import AnySparsifier, Sparsifier
from discreet.algorithms.training import AnyTrainer, ExampleBound, Exposure, LocalTrainer
from discreet.algorithms.training.exposure import UpdateSums
from discreet.algorithms.training.schedules import AnySchedule, Schedule

CONTRACTS: dict[type, Any] = {
    Mechanism: AnyMechanism,
    LocalTrainer: AnyTrainer,
    Sparsifier: AnySparsifier,
    Aggregation: AnyAggregation,
    Sampling: AnySampling,
    ServerOptimizer: AnyServer,
    Schedule: AnySchedule,
}
# A guarantee rests on these, so each part states them: a default would answer for a part whose author forgot one.
STATED: dict[type, set[str]] = {
    Mechanism: {
        *("is_private", "unit", "norm_order", "extra_values"),
        *("bound", "add_noise_share", "release_sum", "sum_noise", "upload_noise"),
    },
    LocalTrainer: {"train", "exposure"},
    Sparsifier: {"depends_on_data", "has_common_mask", "unsound_reason"},
    Aggregation: {"is_secure"},
    Sampling: {"relation", "sample", "expected_cohort"},
    ServerOptimizer: {"step"},
    Schedule: {"factor"},
}
PARTS = [(contract, kind) for contract, union in CONTRACTS.items() for kind in get_args(get_args(union)[0])]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda each: each.__name__)
def test_a_member_that_a_guarantee_rests_on_has_no_default(contract: type) -> None:
    assert contract.__abstractmethods__ == STATED[contract]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("contract", "kind"), PARTS, ids=lambda each: each.__name__)
def test_no_part_misses_a_member(contract: type, kind: type) -> None:
    assert contract in kind.__mro__
    assert kind.__abstractmethods__ == frozenset()  # type: ignore[attr-defined]
    # a field without a default would take a property of that name in its contract for one
    assert not [each.name for each in fields(kind) if isinstance(each.default, property)]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda each: each.__name__)
def test_a_class_that_misses_a_member_cannot_be_built(contract: type) -> None:
    for name in STATED[contract]:
        whole = dict.fromkeys(STATED[contract])
        assert type("Whole", (contract,), whole)() is not None
        with pytest.raises(TypeError, match=f"abstract method '?{name}'?"):  # quoted from Python 3.12 on
            type("Incomplete", (contract,), {each: None for each in whole if each != name})()


@pytest.mark.parametrize("record", [Exposure, ExampleBound, UpdateSums])
def test_no_fact_about_what_training_exposes_has_a_default(record: Any) -> None:
    assert record._field_defaults == {}
    with pytest.raises(TypeError, match="missing"):
        record(*range(len(record._fields) - 1))
