"""A digest changes with what matters and with nothing else, and a comparison names every difference."""

import json
from pathlib import Path

import torch

from tests.digests.comparison import differences
from tests.digests.digest import digest_card, digest_ledger, digest_model

MODEL = {"weight": torch.tensor([[3.0, 0.0], [0.0, 4.0]], dtype=torch.float64), "bias": torch.zeros(2).double()}


def test_equal_digests_have_no_differences() -> None:
    found = {"card": {"epsilon": 1.5, "clients": [1, 2]}, "stopped": None}
    assert differences(found, json.loads(json.dumps(found)), exact=True) == []


def test_a_changed_number_is_named_with_both_values() -> None:
    assert differences({"a": [{"b": 1.0}]}, {"a": [{"b": 1.5}]}, exact=False) == ["a[0].b: 1.0 → 1.5"]


def test_what_is_missing_and_what_is_new_is_named() -> None:
    found = differences({"a": 1, "b": [1, 2]}, {"b": [1], "c": 3}, exact=False)
    assert found == ["a: 1 → nothing", "b: 2 entries → 1", "c: nothing → 3"]


def test_a_number_may_differ_by_the_tolerance_only_where_bits_do_not_count() -> None:
    near, far = 2.0 * (1 + 5e-10), 2.0 * (1 + 5e-9)
    assert differences({"a": 2.0}, {"a": near}, exact=False) == []
    assert differences({"a": 2.0}, {"a": near}, exact=True) == [f"a: 2.0 → {near}"]
    assert differences({"a": 2.0}, {"a": far}, exact=False) == [f"a: 2.0 → {far}"]


def test_whole_numbers_words_and_kinds_of_values_are_always_exact() -> None:
    assert differences({"a": 10**12}, {"a": 10**12 + 1}, exact=False) != []
    assert differences({"a": "replace"}, {"a": "zero_out"}, exact=False) != []
    assert differences({"a": 1}, {"a": True}, exact=False) != []
    assert differences({"a": 0.0}, {"a": None}, exact=False) != []


def test_the_bits_of_a_model_count_only_where_they_are_exact() -> None:
    changed = {**MODEL, "bias": torch.tensor([1e-300, 0.0], dtype=torch.float64)}
    one, other = digest_model(MODEL), digest_model(changed)
    assert one["sha256"] != other["sha256"]
    assert differences({"model": one}, {"model": other}, exact=False) == []
    assert len(differences({"model": one}, {"model": other}, exact=True)) >= 1


def test_a_model_with_another_value_name_shape_or_type_is_another() -> None:
    weight, bias = MODEL["weight"], MODEL["bias"]
    others = [
        {"weight": weight.T + 0.001, "bias": bias},
        {"weights": weight, "bias": bias},
        {"weight": weight.reshape(4), "bias": bias},
        {"weight": weight.float(), "bias": bias},
    ]
    assert len({digest_model(each)["sha256"] for each in [MODEL, *others]}) == 5
    assert digest_model(dict(reversed(MODEL.items()))) == digest_model(MODEL)


def test_a_projection_notices_two_coordinates_that_change_places() -> None:
    """The norm doesn't. Signs of two coordinates are equal in all four projections with probability 1/16."""
    swapped = {**MODEL, "weight": MODEL["weight"].flip(0, 1)}
    one, other = digest_model(MODEL), digest_model(swapped)
    assert one["norm"] == other["norm"] == 5
    assert one["projections"] != other["projections"]


def test_a_card_keeps_the_numbers_of_its_sentences_and_not_their_words_or_hashes() -> None:
    card = {
        "epsilon": 2.5,
        "version": "0.1.0",
        "assumptions": ["Of 1,200 clients, 3 collude.", "A chance of 2e-12, or of 0.5."],
        "ledger": {"head": "ab" * 32, "length": 4},
        "outstanding": [{"key": f"run {'0f' * 8} round 2"}],
    }
    assert digest_card(card) == {
        "epsilon": 2.5,
        "assumptions": [2e-12, 0.5, 3.0, 1200.0],
        "ledger": {"length": 4},
        "outstanding": [{"key": "run … round 2"}],
    }


def test_a_ledger_keeps_its_entries_without_times_hashes_and_the_names_of_runs(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    line = {
        "seq": 1,
        "prev": "0" * 64,
        "at": "2026-11-16",
        "type": "void",
        "key": f"run {'ab' * 8} round 3",
        "hash": "1",
    }
    path.write_text(json.dumps(line) + "\n")
    assert digest_ledger(path) == [{"type": "void", "key": "run … round 3"}]
