"""The public API: every name that users may rely on is listed here, can be imported, and has a docstring."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.algorithms.recipes.registry import RECIPES

PUBLIC: dict[str, list[str]] = {
    "discreet": [
        "Callback",
        "tracker",
        "Person",
        "Privacy",
        "Run",
        "Session",
        "__version__",
        "attack",
        "audit_run",
        "clients_from_arrays",
        "clients_from_csv",
        "clients_from_datasets",
        "clients_from_parquet",
        "load",
        "session",
        "train",
        *RECIPES,
    ],
    "discreet.errors": [
        "BudgetRefused",
        "CallbackFailed",
        "DiscreetError",
        "EnginesDisagree",
        "InvalidInput",
        "LedgerDamaged",
        "LedgerUnavailable",
        "MissingExtra",
        "UnsoundCombination",
        "Unsupported",
        "escape_controls",
        "nearest_names",
        "shorten_names",
        "shorten_words",
    ],
    "discreet.part": ["check_exact", "check_value", "complete_references", "from_plain", "part", "to_plain"],
    "discreet.testing": [
        "PartFailed",
        "check_aggregation",
        "check_mechanism",
        "check_sampler",
        "check_schedule",
        "check_server_optimizer",
        "check_sparsifier",
        "check_trainer",
        "try_algorithm",
    ],
    "discreet.privacy.accountant": [
        "Account",
        "account",
        "account_with_second_engine",
        "delta",
        "epsilon",
        "forget_results",
        "holds",
        "true_positive_rate",
    ],
    "discreet.privacy.calibration": [
        "AttackTarget",
        "EpsilonTarget",
        "affordable_rounds",
        "calibrate_noise",
        "calibrate_sampling_rate",
        "log_excess",
    ],
    "discreet.privacy.dp_accounting_events": [
        "binomial_chances",
        "from_dp_accounting",
        "step_to_dp_accounting",
        "to_dp_accounting",
    ],
    "discreet.privacy.events": [
        "BestOf",
        "Composed",
        "DiscreteGaussianNoise",
        "DistributedDiscreteGaussianNoise",
        "GaussianNoise",
        "LaplaceNoise",
        "PoissonSampled",
        "PoissonSampledGroup",
        "RandomAllocation",
        "RandomisedResponse",
        "Repeated",
        "SampledWithoutReplacement",
        "SkellamNoise",
        "TruncatedPoissonSampled",
        "ZeroConcentrated",
        "change_steps",
        "has_sampling",
        "has_selection",
        "noisy_steps",
        "repeat_event",
        "replace_noise",
        "sampled_gaussian",
        "scale_sensitivity",
        "step_noise",
        "steps",
    ],
    "discreet.privacy.groups": ["clients_event", "group_event", "person_event", "whole_group_event"],
    "discreet.privacy.guarantee": [
        "Attack",
        "Claim",
        "Guarantee",
        "LedgerMark",
        "SecondValue",
        "best_attacks",
        "card_entries",
        "split_by_largest_epsilon",
    ],
    "discreet.privacy.ledger": ["Budget", "Ledger", "Mode", "Ticket", "verify"],
    "discreet.privacy.parallel_composition": ["epsilon"],
    "discreet.privacy.privacy_curves": [
        "EpsilonAtDelta",
        "ErrorRates",
        "PrivacyCurves",
        "compute_curves",
        "epsilon_curve",
        "trade_off_curve",
    ],
    "discreet.privacy.release": [
        "Person",
        "Release",
        "describe_clients",
        "list_clients",
        "parse_view",
        "relations_for",
    ],
}
ALIASES = {"Mode"}  # a type, which can't carry a docstring
HEAVY = ["torch", "numpy", "scipy", "dp_accounting", "pydantic", "typer"]


@pytest.mark.parametrize("module", PUBLIC)
def test_what_is_listed_is_what_there_is(module: str) -> None:
    assert sorted(exported_names(importlib.import_module(module))) == sorted(PUBLIC[module])


def exported_names(module: Any) -> list[str]:
    """Return `__all__` of a module, else the public functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.getmodule(value) is module and callable(value)
    ]
    return own or ["__version__"]


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in PUBLIC.items() for name in names if name not in ALIASES]
)
def test_every_public_name_says_what_it_is(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    assert isinstance(value, str) or inspect.getdoc(value)


def test_the_stub_for_type_checkers_has_a_line_for_every_public_name() -> None:
    places = {name: getattr(discreet, name).__module__ for name in discreet.__all__ if name != "__version__"}
    lines = sorted(f"from {module} import {name} as {name}" for name, module in places.items())
    stub = Path(discreet.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert sorted(stub.splitlines()) == sorted([*lines, "", "__all__: list[str]", "__version__: str"])


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, discreet; sys.exit(' '.join(set({HEAVY!r}) & set(sys.modules)) or 0)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
