"""A public function refuses a wrong argument in one sentence: no error of Python, nor one of pydantic."""

import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import discreet
from discreet.algorithms.recipes.registry import RECIPES
from discreet.errors import DiscreetError
from discreet.privacy import accountant, calibration, groups, parallel_composition
from discreet.privacy.calibration import EpsilonTarget
from discreet.privacy.events import GaussianNoise
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.privacy_curves import compute_curves
from discreet.privacy.release import Release
from tests.bad_inputs.stage import Stage

LONGEST = 900  # characters of a sentence
WRONG: dict[str, Any] = {
    "an object": object(),
    "a word": "x",
    "no text": "",
    "a text that is not UTF-8": "\udcff",
    "a text with a NUL": "\0",
    "a long text": "x" * 300,
    "bytes": b"x",
    "NaN": math.nan,
    "infinity": math.inf,
    "a negative number": -1,
    "a tiny number": 1e-320,
    "a huge number": 10**5000,
    "a complex number": 1j,
    "an empty list": [],
    "a list of nothing": [None],
    "a mapping": {1: 2},
    "a set": {1},
    "a class": int,
    "a function": lambda: 1,
    "a tensor of NaN": torch.full((3,), math.nan),
    "an array of objects": np.array([None, "x"], dtype=object),
}
INPUTS, TARGETS, OWNERS = torch.rand(30, 4), torch.arange(30) % 2, ["a", "b", "c"] * 10
NOISE = GaussianNoise(noise_multiplier=1.0)
RELEASE = Release(event=NOISE, unit="example", view="server", relation="add_or_remove")
RANGES = {"age": {"min": 0, "max": 100}, "back": {"values": ["no", "yes"]}}
PRIVACY = {"unit": "example", "against": "server", "epsilon": 2, "delta": 1e-4}
LOOP = {"rounds": 1, "out": "new", "ledger": None, "resume": None, "key_dir": None, "data_dir": None, "seed": 1}
FLAGS = {"accept_data_ranges": False, "as_far_as_it_goes": False, "profile": False}
VALID: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {  # each function with arguments that it takes
    "load": (discreet.load, {"directory": "run", "module": None, "data_dir": None, "trust": False}),
    "audit_run": (
        discreet.audit_run,
        {
            "run": "nowhere",
            "canaries": 20,
            "estimator": "gaussian",
            "confidence": 0.9,
            "runs": 1,
            "unit": None,
            "against": None,
            "seed": None,
            "trust": False,
        },
    ),
    "attack": (
        discreet.attack,
        {
            "run": "nowhere",
            "kind": "labels",
            "shadows": 2,
            "compare": False,
            "batch": 1,
            "on_data": False,
            "seed": None,
            "data_dir": None,
            "trust": False,
        },
    ),
    "clients_from_arrays": (
        discreet.clients_from_arrays,
        {
            "inputs": INPUTS,
            "targets": TARGETS,
            "clients": OWNERS,
            "classes": 2,
            "test": None,
            "validation": None,
            "validation_fraction": 0.0,
            "public": None,
            "max_multiplicity": 1,
        },
    ),
    "clients_from_csv": (
        discreet.clients_from_csv,
        {
            "path": "visits.csv",
            "client": "clinic",
            "label": "back",
            "ranges": RANGES,
            "test_fraction": 0.2,
            "validation_fraction": 0.0,
            "validation_path": None,
            "max_multiplicity": 1,
            "person": None,
            "standardise": False,
            "generator": None,
        },
    ),
    "clients_from_datasets": (
        discreet.clients_from_datasets,
        {"datasets": [torch.utils.data.TensorDataset(INPUTS, TARGETS)], "names": None, "max_multiplicity": 1},
    ),
    "Privacy": (discreet.Privacy, PRIVACY),
    "Person": (discreet.Person, {"column": "patient", "at_most": 2, "clients_at_most": 2}),
    "epsilon": (accountant.epsilon, {"event": NOISE, "delta": 1e-5, "relation": "add_or_remove"}),
    "delta": (accountant.delta, {"event": NOISE, "epsilon": 1.0, "relation": "add_or_remove"}),
    "account": (accountant.account, {"event": NOISE, "delta": 1e-5, "relation": "add_or_remove"}),
    "holds": (accountant.holds, {"event": NOISE, "epsilon_": 1.0, "delta": 1e-5, "relation": "add_or_remove"}),
    "true_positive_rate": (accountant.true_positive_rate, {"event": NOISE, "false_positive_rate": 0.1}),
    "calibrate_noise": (
        calibration.calibrate_noise,
        {
            "event_at": lambda noise: GaussianNoise(noise_multiplier=noise),
            "target": EpsilonTarget(epsilon=2, delta=1e-5),
            "relation": "add_or_remove",
        },
    ),
    "affordable_rounds": (
        calibration.affordable_rounds,
        {"event": NOISE, "target": EpsilonTarget(epsilon=2, delta=1e-5), "relation": "add_or_remove"},
    ),
    "group_event": (groups.group_event, {"event": NOISE, "size": 2}),
    "person_event": (
        lambda event, person: groups.person_event(event, person, separate=True),
        {"event": NOISE, "person": discreet.Person(column="patient", at_most=2)},
    ),
    "parallel epsilon": (parallel_composition.epsilon, {"events": [NOISE], "delta": 1e-5, "max_multiplicity": 1}),
    "compute_curves": (compute_curves, {"event": NOISE, "relation": "add_or_remove", "delta": 1e-5}),
    "certify": (Guarantee.certify, {"release": RELEASE, "delta": 1e-5}),
    "Ledger": (Ledger, {"path": "ledger.jsonl"}),
    "Ledger.create": (
        Ledger.create,
        {
            "path": "new.jsonl",
            "mode": "plan",
            "tuned_to": NOISE,
            "budgets": [Budget(unit="example", view="server", relation="add_or_remove", epsilon=1, delta=1e-5)],
        },
    ),
    "Ledger.verify": (
        lambda **given: Ledger("ledger.jsonl").verify(**given),
        {"head": None, "records": None},
    ),
    "Ledger.reserve": (
        lambda **given: Ledger("ledger.jsonl").reserve(**given),
        {"key": "first", "releases": [RELEASE]},
    ),
}
IS_VALID = {("event_at", "a function")}  # which is then called with a number, and fails by itself


def training_arguments() -> dict[str, Any]:
    """Return arguments of `session`, of which `train` takes the same and two more."""
    return {
        "model": torch.nn.Linear(4, 2),
        "clients": discreet.clients_from_arrays(INPUTS, TARGETS, clients=OWNERS, classes=2),
        "algorithm": discreet.pfl(local_steps=1, sampling_rate=0.1, clip_norm=0.5, learning_rate=1.0),
        "privacy": discreet.Privacy(unit="example", against="server", epsilon=2, delta=1e-4),
        **LOOP,
        **FLAGS,
    }


def find_faults(name: str, function: Callable[..., Any], valid: Mapping[str, Any], stage: Stage) -> list[str]:
    """Return what is wrong with how a function takes wrong arguments, one after the other."""
    faults = []
    before = stage.content()
    for argument in valid:
        for what, wrong in WRONG.items():
            if (argument, what) in IS_VALID:
                continue
            try:
                result = function(**{**valid, argument: wrong})
            except DiscreetError as error:
                said = str(error)
                fault = "a long sentence" if len(said) > LONGEST else "several lines" if "\n" in said else ""
            except Exception as error:  # noqa: BLE001 - any other error is a fault
                fault = f"{type(error).__name__}: {ascii(error)[:150]}"
            else:
                fault = ""  # this argument may have this value
                if isinstance(result, discreet.Session):
                    result.close()
            if (after := stage.content()) != before:
                changed = [each for each in before.keys() | after if before.get(each) != after.get(each)]
                fault += f" wrote {changed[:3]}" if fault else ""
                stage.restore()
            if fault:
                faults.append(f"{name}({argument}={what}): {fault}")
    return faults


@pytest.mark.parametrize("name", VALID)
def test_a_wrong_argument_is_refused_in_one_sentence(name: str, stage: Stage):
    function, valid = VALID[name]
    assert not (faults := find_faults(name, function, valid, stage)), "\n".join(faults)


def test_wrong_arguments_of_a_session_are_refused_before_anything_is_written(stage: Stage):
    valid = training_arguments()
    faults = find_faults("session", discreet.session, valid, stage)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("argument", ["progress", "callbacks"])
def test_wrong_arguments_of_train_alone_are_refused(argument: str, stage: Stage):
    faults = []
    for what, wrong in WRONG.items():
        try:
            discreet.train(**{**training_arguments(), argument: wrong})
        except DiscreetError:
            pass
        except Exception as error:  # noqa: BLE001 - any other error is a fault
            faults.append(f"train({argument}={what}): {type(error).__name__}: {error}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("content", ["[]", "null", "{}", "x", '{"ledger": 3}'])
def test_a_run_whose_identity_is_damaged_is_not_resumed(content: str, stage: Stage):
    (stage.here / "run" / "run.json").write_text(content)
    with pytest.raises(DiscreetError):
        discreet.train(**{**training_arguments(), "resume": Path("run")})


@pytest.mark.parametrize("name", RECIPES)
def test_a_wrong_argument_of_a_recipe_is_refused_in_one_sentence(name: str):
    recipe = getattr(discreet, name)
    faults = []
    for argument in inspect.signature(recipe).parameters:
        for what, wrong in WRONG.items():
            try:
                recipe(**{**RECIPES[name].example, argument: wrong})
            except DiscreetError as error:
                if "\n" in str(error) or len(str(error)) > LONGEST:
                    faults.append(f"{name}({argument}={what}): {ascii(error)[:150]}")
            except Exception as error:  # noqa: BLE001 - any other error is a fault
                faults.append(f"{name}({argument}={what}): {type(error).__name__}: {ascii(error)[:150]}")
    assert not faults, "\n".join(faults)


def test_every_public_name_has_cases_or_is_a_class_of_results():
    tried = {*VALID, "train", "session", *RECIPES}
    without = {"Callback", "Run", "Session", "__version__", "clients_from_parquet", "tracker"}
    assert set(discreet.__all__) <= tried | without
