"""Arrays become clients, or a sentence says why they can't."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from discreet.data.tasks.from_arrays import clients_from_arrays
from discreet.errors import InvalidInput

INPUTS = np.arange(12.0).reshape(6, 2)
LABELS = np.array([0, 1, 2, 0, 1, 2])


def test_clients_are_named_example_by_example():
    task = clients_from_arrays(INPUTS, LABELS, clients=["b", "a", "b", "a", "c", "b"], classes=3)
    assert (task.client_names, task.train.sizes) == (("a", "b", "c"), (2, 3, 1))
    assert task.train.inputs[:, 0].tolist() == [2, 6, 0, 4, 10, 8]  # each client's in their own order
    assert task.train.targets.tolist() == [1, 0, 0, 2, 2, 1]
    assert task.train.inputs.dtype == torch.float32
    assert task.not_covered == ()
    assert len(task.test_inputs) == 0


def test_or_by_how_many_in_a_row_are_whose():
    task = clients_from_arrays(torch.tensor(INPUTS), LABELS.astype(np.int32), sizes=[1, 5], test=(INPUTS, LABELS))
    assert task.train.sizes == (1, 5)
    assert (len(task.test_inputs), task.train.targets.dtype) == (6, torch.int64)


def test_public_examples_are_nobodys():
    task = clients_from_arrays(INPUTS, LABELS, sizes=[6], public=(INPUTS[:2] + 1, [2, 0]))
    assert task.public is not None
    assert (task.public.inputs.tolist(), task.public.targets.tolist()) == ([[1, 2], [3, 4]], [2, 0])
    with pytest.raises(InvalidInput, match="The public inputs and their targets must count the same examples"):
        clients_from_arrays(INPUTS, LABELS, sizes=[6], public=(INPUTS, 1))


def test_classes_that_nobody_gave_are_taken_from_the_data_and_the_card_says_so():
    task = clients_from_arrays(INPUTS, LABELS, sizes=[6])
    assert task.classes == 3
    assert "number of classes (3) was taken from the data" in task.not_covered[0]


def test_targets_with_fractions_make_a_regression():
    task = clients_from_arrays(INPUTS, LABELS / 2, sizes=[6])
    assert (task.kind, task.classes, task.train.targets.dtype) == ("regression", 1, torch.float32)


def test_in_how_many_clients_an_example_lies_is_declared():
    alone, shared = (clients_from_arrays(INPUTS, LABELS, sizes=[3, 3], max_multiplicity=most) for most in (1, 2))
    assert (alone.train.max_multiplicity, shared.train.max_multiplicity) == (1, 2)


def test_the_arrays_are_copied():
    inputs = torch.zeros(2, 1)
    task = clients_from_arrays(inputs, [0, 1], sizes=[2], classes=2)
    inputs += 1
    assert task.train.inputs.tolist() == [[0], [0]]


def with_value(value: float) -> np.ndarray[Any, Any]:
    changed = INPUTS.copy()
    changed[1, 0] = value
    return changed


class Frame:
    """What numpy reads of a data frame."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return INPUTS


def test_data_frames_and_lists_of_rows_are_read_as_arrays():
    expected = torch.tensor(INPUTS, dtype=torch.float32)
    for inputs in (Frame(), INPUTS.tolist(), list(expected), expected.double()):
        assert torch.equal(clients_from_arrays(inputs, list(LABELS), sizes=np.array([6])).train.inputs, expected)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"inputs": with_value(np.nan)}, "The inputs contain NaN or infinity"),
        ({"inputs": with_value(np.inf)}, "The inputs contain NaN or infinity"),
        ({"targets": [0, 1, 2, 0, 1]}, "must count the same examples"),
        ({"targets": [0, 1, 2, 0, 1, 3]}, "between 0 and 2 for 3 classes, and the training labels are between 0 and 3"),
        ({"targets": [0, 1, 2, 0, 1, -1]}, "are between -1 and 2"),
        ({"targets": [0, 1, 2, 0, 1, np.nan]}, "targets contain NaN"),
        ({"targets": ["a"] * 6}, "must be numbers, and are text. Number categories from 0"),
        ({"inputs": [[1], [1, 2]]}, "must be one array of numbers"),
        ({"sizes": [6, 0]}, "client 1 has none"),
        ({"sizes": [5]}, "clients of 5 in all"),
        ({"sizes": []}, "at least one client"),
        ({"sizes": None}, "either clients="),
        ({"sizes": None, "clients": ["a"]}, "1 names for 6 examples"),
        ({"sizes": None, "clients": ["a", "b", "NA", "a", "a", "a"]}, "got 'NA' for example 2"),
        ({"sizes": None, "clients": [1.0, np.nan, 1.0, 1.0, np.nan, 1.0]}, "got nan for example 1"),
        ({"max_multiplicity": 0}, "at least 1"),
        ({"sizes": None, "clients": ["a", 1, 2, 3, 4, 5]}, "all text or all numbers"),
        ({"test": (INPUTS[:, :1], LABELS)}, "Prepare both alike"),
        ({"test": (INPUTS, LABELS + 1)}, "the test labels are between 1 and 3"),
        ({"test": (with_value(np.nan), LABELS)}, "test inputs contain NaN"),
        ({"test": (INPUTS, LABELS[:2])}, "The test inputs and their targets must count the same examples"),
        ({"test": (INPUTS, LABELS / 2)}, "must be whole numbers"),
        ({"inputs": INPUTS * 1j}, "complex"),
        ({"inputs": torch.zeros(6, 2).to_sparse()}, "are a sparse tensor. Pass tensor.to_dense()"),
        ({"inputs": np.array([["a", 1]] * 6, dtype=object)}, "must be numbers, and are objects of mixed types"),
        ({"inputs": None}, "must be numbers, and are an object of the class NoneType"),
        ({"inputs": [[1.0, 2.0], [3.0]]}, "its rows differ in length. Crop or pad"),
        (
            {"inputs": [torch.zeros(3, 2)] * 2},
            "one array of all examples, and got a list of 2 arrays. Join them with tor",
        ),
        ({"inputs": TensorDataset(torch.zeros(6, 2))}, "class TensorDataset. Use clients_from_datasets"),
        ({"inputs": DataLoader(TensorDataset(torch.zeros(6, 2)))}, "class DataLoader. Use clients_from_datasets"),
        (
            {"test": INPUTS},
            "test must be a pair (inputs, targets), and got an object of the class ndarray. Write test=",
        ),
        ({"test": (INPUTS, LABELS, LABELS)}, "test must be a pair (inputs, targets), and got 3 values"),
        ({"sizes": 6}, "sizes= must be a list with the number of examples of each client, and got 6"),
        ({"sizes": [3.5, 2.5]}, "sizes= must be a whole number, and got 3.5"),
        ({"sizes": ["6"]}, "sizes= must be a whole number, and got '6'"),
        ({"sizes": None, "clients": 3}, "clients= must be a list that names the client of each example, and got 3"),
        (
            {"sizes": None, "clients": "who"},
            "clients= must be a list that names the client of each example, and got 'who'",
        ),
        ({"classes": "3"}, "classes must be a whole number, and got '3'"),
        ({"classes": ["a", "b", "c"]}, "classes must be the number of classes, and got a list of 3. Write 3."),
        ({"max_multiplicity": 0}, "max_multiplicity must be at least 1"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(arguments: dict[str, Any], sentence: str):
    given = {"inputs": INPUTS, "targets": LABELS, "sizes": [6], "classes": 3, **arguments}
    with pytest.raises(InvalidInput, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        clients_from_arrays(given.pop("inputs"), given.pop("targets"), **given)
