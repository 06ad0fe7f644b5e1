"""The kept runs have every kind of engine and of every part between them, and what is special about each happens."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_type_hints

import pytest

from discreet.algorithms.aggregation import AnyAggregation
from discreet.algorithms.mechanisms import AnyMechanism
from discreet.algorithms.sampling import AnySampling
from discreet.algorithms.server_optimizers import AnyServer
from discreet.algorithms.sparsifiers import AnySparsifier
from discreet.algorithms.training import AnyTrainer
from discreet.engines.engine_table import AnyEngine
from tests.digests.cases import CASES, EXPERIMENTS, SHARED_LEDGER, STOP_AFTER, Case
from tests.digests.keep import KEPT, MACHINE, read_kept

KEEP = "write what is missing: python -m tests.digests.keep"
PARTS = {
    "sampling": AnySampling,
    "trainer": AnyTrainer,
    "sparsifier": AnySparsifier,
    "mechanism": AnyMechanism,
    "aggregation": AnyAggregation,
    "server": AnyServer,
}


def kinds(union: Any) -> set[str]:
    """Return the kinds of a union of parts."""
    parts = get_args(get_args(union)[0])
    return {kind for part in parts for kind in get_args(get_type_hints(part)["kind"])}


def guarantees() -> Iterator[dict[str, Any]]:
    for case in CASES:
        yield from read_kept(case.name)["card"]["guarantees"]


def entries(name: str, of: Literal["open", "reserve", "commit", "void"]) -> list[dict[str, Any]]:
    """Return the entries of the run's first ledger."""
    return [entry for entry in read_kept(name)["ledgers"][0] if entry["type"] == of]


def test_every_run_is_kept_and_nothing_else_is() -> None:
    names = {case.name for case in CASES}
    assert {path.name for path in EXPERIMENTS.iterdir()} == {f"{name}.toml" for name in names}
    assert {path.name for path in KEPT.iterdir()} == {f"{name}.json" for name in names | {MACHINE}}, KEEP
    assert {*STOP_AFTER, *SHARED_LEDGER} <= names


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_first_line_of_a_file_says_what_its_run_covers(case: Case) -> None:
    assert case.path.read_text(encoding="utf-8").startswith("# ")


def test_every_kind_of_engine_is_in_some_run() -> None:
    assert {case.load().experiment.engine.kind for case in CASES} == kinds(AnyEngine)


@pytest.mark.parametrize("part", PARTS)
def test_every_kind_of_part_is_in_some_run(part: str) -> None:
    assert {getattr(case.load().experiment.algorithm, part).kind for case in CASES} == kinds(PARTS[part])


def test_all_runs_are_seeded_and_compute_in_doubles_on_the_cpu() -> None:
    """In double precision two machines agree to nine digits."""
    experiments = [case.load().experiment for case in CASES]
    assert all(each.seed is not None and (each.dtype, each.device) == ("float64", "cpu") for each in experiments)
    assert all(read_kept(case.name)["model"]["dtypes"] == ["torch.float64"] for case in CASES)


def test_both_units_and_all_views_are_certified() -> None:
    """All by PLD: RDP certifies only noise without a pair, too small for any of these runs."""
    found = list(guarantees())
    assert {each["unit"] for each in found} == {"example", "client"}
    assert {each["view"] for each in found} == {"server", "client", "public"}
    assert {each["accountant"] for each in found} == {"pld"}


@pytest.mark.parametrize(
    ("name", "contributors", "voided"), [("shards_skellam", [6, 0, 5], 0), ("discrete_gaussian", [0, 6, 5], 1)]
)
def test_clients_drop_out_of_secure_sums_and_a_lost_round_counts_only_if_something_was_revealed(
    name: str, contributors: list[int], voided: int
) -> None:
    """Of eight and of seven clients; a round with another number of noise shares than planned is committed as such."""
    assert read_kept(name)["contributors"] == contributors
    assert len(entries(name, "void")) == voided
    assert len(entries(name, "commit")) == 3 - voided
    assert any(entry["releases"] is not None for entry in entries(name, "commit"))


def test_a_client_drops_out_of_the_deployed_run_and_four_ledgers_of_clients_are_kept() -> None:
    found = read_kept("flower_skellam")
    assert found["contributors"] == [4, 3, 4]
    assert len(found["ledgers"]) == 5


def test_clients_have_rates_clips_noise_and_epsilons_of_their_own_and_one_leaves() -> None:
    experiment = next(case for case in CASES if case.name == "own_budgets").load().experiment
    trainer: Any = experiment.algorithm.trainer
    assert experiment.privacy is not None
    lists = [trainer.sampling_rate, trainer.clip_norm, trainer.noise_multiplier, experiment.privacy.epsilon]
    assert all(isinstance(each, tuple) and len(set(each)) > 1 for each in lists)
    found = read_kept("own_budgets")
    assert found["card"]["left"] == [{"client": 0, "rounds": 2}]
    assert found["contributors"] == [3, 3, 2, 2, 2, 2]


def test_the_published_variant_has_a_claim() -> None:
    assert sum(len(each["claims"]) for each in read_kept("as_published")["card"]["guarantees"]) == 1


def test_the_shared_ledger_holds_an_earlier_run() -> None:
    assert entries("sam_top_k", "open")[0]["mode"] == "filter"
    assert [entry["key"] for entry in entries("sam_top_k", "reserve")] == [
        "earlier run round 0",
        *(f"run … round {round} of …" for round in range(3)),
    ]


def test_runs_are_resumed_on_the_embedded_and_on_the_secure_engine() -> None:
    resumed = [case.load().experiment.engine.kind for case in CASES if case.stop_after is not None]
    assert resumed == ["embedded", "secure"]
