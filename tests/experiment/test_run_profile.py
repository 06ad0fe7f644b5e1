"""profile.json says where a round's time went, which part is the largest, and what to do about it."""

import json
from pathlib import Path

import pytest

from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_files import PROFILE
from discreet.experiment.run_directory.run_profile import RunProfile, profile_data, read_profile
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.report import profile_picture, run_page
from discreet.round_clock import PhaseClock
from discreet.round_phases import Phase
from tests.small_experiment import PrepareJob, prepare, small, state

__all__ = ["prepare", "small", "state"]

FACTS = {
    "engine": "embedded",
    "device": "cpu",
    "block_size": 100,
    "expected_cohort": 10.0,
    "evaluate_every": 1,
    "checkpoint_every": 1,
}
SECURE = """\
rounds = 2
task = { kind = "digits", clients = 6 }
model = { kind = "linear" }
engine = { kind = "secure" }

[privacy]
unit = "example"
against = "server"
epsilon = 8.0
delta = 1e-4

[algorithm]
recipe = "ddp_fedavg"
noise = "skellam"
local_steps = 1
sampling_rate = 0.1
clip_norm = 1.0
learning_rate = 0.1
"""


def profile_of(*rounds: dict[Phase, float], **facts: object) -> RunProfile:
    found = read_profile(json.loads(json.dumps(profile_data(rounds, FACTS | facts))))
    assert found is not None
    return found


def test_shares_are_of_the_rounds_after_the_first():
    slow = {Phase.TRAINING: 50.0, Phase.SUM: 50.0}
    found = profile_of(slow, {Phase.TRAINING: 3.0, Phase.SUM: 1.0}, {Phase.TRAINING: 3.0, Phase.SUM: 1.0})
    assert [(part.phase, part.share, part.median, part.first) for part in found.phases] == [
        (Phase.TRAINING, 0.75, 3.0, 50.0),
        (Phase.SUM, 0.25, 1.0, 50.0),
    ]
    assert (found.first, found.median) == (100.0, 4.0)
    assert found.describe_first_round().startswith("The first round took 25 times as long")


def test_a_phase_of_some_rounds_has_the_median_of_those_rounds():
    rounds = [{Phase.TRAINING: 1.0}, {Phase.TRAINING: 1.0}, {Phase.TRAINING: 1.0, Phase.EVALUATION: 8.0}]
    evaluation = profile_of({Phase.TRAINING: 1.0}, *rounds).phases[0]
    assert (evaluation.phase, evaluation.median, evaluation.rounds) == (Phase.EVALUATION, 8.0, 1)
    assert evaluation.share == pytest.approx(8 / 11)


def test_a_run_of_one_round_has_the_shares_of_that_round():
    found = profile_of({Phase.TRAINING: 3.0, Phase.LEDGER: 1.0})
    assert [part.share for part in found.phases] == [0.75, 0.25]
    assert found.describe_first_round() == ""


def test_the_largest_part_comes_with_its_remedy():
    often = profile_of({Phase.EVALUATION: 6.0, Phase.TRAINING: 4.0})
    assert often.describe() == (
        "Evaluating (metrics, clipped examples) took 60 % of the time: evaluate_every = 5 would evaluate a fifth as "
        "often, and saves 48 %."
    )
    slow = profile_of({Phase.TRAINING: 9.0}, engine="reference")
    assert 'engine = { kind = "embedded" }' in slow.describe()


def test_where_training_is_the_largest_part_the_next_remedy_is_named():
    found = profile_of({Phase.TRAINING: 6.0, Phase.LEDGER: 3.0, Phase.SUM: 1.0})
    assert found.describe().startswith("Training (forward and backward) took 60 % of the time. Reserving and booking")
    assert "fsync" in found.describe()


def test_a_cohort_in_many_small_blocks_is_noticed():
    found = profile_of({Phase.TRAINING: 10.0}, expected_cohort=1000.0)
    assert "in 10 blocks of 100" in found.describe()


def test_nothing_is_advised_where_no_remedy_is_known():
    assert profile_of({Phase.TRAINING: 10.0}).describe() == "Training (forward and backward) took 100 % of the time."


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"version": 1},
        {"first_round": {"seconds": 1.0, "phases": {"dreaming": 1.0}}},
        {"later_rounds": 3},
        {"rounds": "many"},
        {"first_round": {"seconds": 0.0, "phases": {"training": 0.0}}},
    ],
)
def test_a_damaged_file_is_not_read(damage: dict[str, object]):
    whole = profile_data([{Phase.TRAINING: 1.0}], FACTS)
    assert read_profile(whole) is not None
    assert read_profile(whole | damage if damage and "version" not in damage else damage) is None


@pytest.mark.parametrize(
    ("engine", "phases"),
    [
        ("embedded", {Phase.TRAINING, Phase.DATA, Phase.LEDGER, Phase.EVALUATION, Phase.EPSILON, Phase.WRITING}),
        ("reference", {Phase.TRAINING, Phase.DATA, Phase.CLIPPING, Phase.SUM, Phase.NOISE, Phase.SERVER_STEP}),
    ],
)
def test_a_run_measures_its_phases(engine: str, phases: set[Phase], prepare: PrepareJob, tmp_path: Path):
    job, clock = prepare(f"engine.kind={engine}"), PhaseClock.for_device("cpu")
    training_loop.start(job, tmp_path / "run", None, None, lambda _: None, clock=clock)
    data = json.loads((tmp_path / "run" / PROFILE).read_text())
    profile = read_profile(data)
    assert profile is not None
    assert (profile.rounds, profile.facts["engine"]) == (4, engine)
    assert phases <= {part.phase for part in profile.phases}
    assert sum(part.share for part in profile.phases) == pytest.approx(1.0)
    assert data["later_rounds"]["phases"]["evaluation"]["rounds"] == 2  # of four rounds, the second and the last


def test_a_secure_sum_is_a_phase_of_its_own(small: Path, prepare: PrepareJob, tmp_path: Path):
    small.write_text(SECURE)
    training_loop.start(prepare(), tmp_path / "run", None, None, lambda _: None, clock=PhaseClock.for_device("cpu"))
    profile = read_profile(json.loads((tmp_path / "run" / PROFILE).read_text()))
    assert {Phase.SECURE_SUM, Phase.ENCODING, Phase.NOISE, Phase.TRAINING} <= {part.phase for part in profile.phases}


def test_a_resumed_run_leaves_no_profile_of_its_first_part(prepare: PrepareJob, tmp_path: Path):
    job, run = prepare(), tmp_path / "run"
    with training_loop.start_loop(job, run, None, None, clock=PhaseClock.for_device("cpu")) as loop:
        loop.play_round()
        loop.stop()
        loop.finish()
    assert (run / PROFILE).exists()
    with training_loop.resume_loop(job, RunRecord.open(run), None):
        assert not (run / PROFILE).exists()


def test_the_numbers_of_a_run_are_the_same_with_and_without_a_profile(prepare: PrepareJob, tmp_path: Path):
    for name, clock in (("with", PhaseClock.for_device("cpu")), ("without", None)):
        options = {} if clock is None else {"clock": clock}
        training_loop.start(prepare("seed=1"), tmp_path / name, None, None, lambda _: None, **options)
    model = "model.safetensors"
    assert (tmp_path / "with" / model).read_bytes() == (tmp_path / "without" / model).read_bytes()
    assert not (tmp_path / "without" / PROFILE).exists()


def test_the_owner_sees_the_profile_and_the_public_page_does_not(prepare: PrepareJob, tmp_path: Path):
    run = tmp_path / "run"
    training_loop.start(prepare(), run, None, None, lambda _: None, clock=PhaseClock.for_device("cpu"))
    profile_picture.draw_run(run)
    own, public = (run_page.write(run, public=public).read_text() for public in (False, True))
    assert "Where the time of a round went" in own
    assert "Training (forward and backward)" in own
    assert "Where the time of a round went" not in public
    assert "Training (forward and backward)" not in public
    assert (run / "profile.svg").read_text().startswith("<?xml")


def test_a_damaged_profile_is_a_problem_of_the_page_and_no_error(prepare: PrepareJob, tmp_path: Path):
    run = tmp_path / "run"
    training_loop.start(prepare(), run, None, None, lambda _: None)
    (run / PROFILE).write_text('{"rounds": 3}')
    assert "profile.json is not what" in run_page.write(run).read_text()
