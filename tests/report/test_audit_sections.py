"""Audits on a run's page and as a picture: the owner sees all, the public those without anyone's data."""

import json
from pathlib import Path

import pytest

from discreet.audit.audit_record import AuditRecord, CurvePoint, add_audit, describe_confidence, read_audits
from discreet.audit.audit_wording import audit_lines
from discreet.experiment.run_directory.run_data import read_run
from discreet.part import to_plain
from discreet.report import run_page
from discreet.report.audit_sections import audit_panel, audit_picture, shown_audits
from discreet.report.picture_files import save_picture

TITLE = "Measured by an attack"


def build_record(**fields):
    standard = {
        "lower_bound": 1.31,
        "confidence": 0.95,
        "delta": 1e-5,
        "certified_epsilon": 2.0,
        "estimator": "gaussian",
        "canaries": 650,
        "present": 320,
        "runs": 1,
        "rounds": 5,
        "unit": "example",
        "view": "server",
        "relation": "zero_out",
        "measured": (CurvePoint(epsilon=1.31, delta=1e-5), CurvePoint(epsilon=1.0, delta=1e-3)),
        "certified": (CurvePoint(epsilon=2.0, delta=1e-5), CurvePoint(epsilon=1.5, delta=1e-3)),
    }
    return AuditRecord(**{**standard, **fields})


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "resolved.toml").write_text("rounds = 5\n")
    return tmp_path


def test_the_sentence_has_both_bounds_and_the_confidence():
    assert build_record().sentence == (
        "An attack that knew everything but one example measured at least ε = 1.31 at δ = 1e-5 (95 % confidence); "
        "certified: at most 2."
    )


def test_a_bound_above_the_card_is_an_alarm_in_words_and_on_the_page(run_dir):
    record = build_record(lower_bound=2.5)
    add_audit(run_dir, record)
    assert record.is_alarm
    assert record.sentence.startswith("The guarantee is false, or the attack is")
    assert 'class="alarm"' in run_page.render_page(read_run(run_dir))


def test_a_confidence_keeps_the_digits_that_tell_it_from_certainty():
    assert [describe_confidence(value) for value in (0.95, 1 - 1e-6)] == ["95 %", "99.9999 %"]


def test_every_audit_is_kept_and_the_largest_bound_of_each_guarantee_is_shown(run_dir):
    weaker = build_record(lower_bound=0.4, runs=2, canaries=50)
    for record in (build_record(), build_record(view="public", lower_bound=0.2), weaker):
        add_audit(run_dir, record)
    assert [each.lower_bound for each in read_audits(run_dir)] == [1.31, 0.2, 0.4]
    shown = shown_audits(read_run(run_dir), public=True)
    assert [(each.view, each.lower_bound) for each in shown] == [("server", 1.31), ("public", 0.2)]


def test_an_alarm_never_disappears(run_dir):
    """It was measured against a card of its own; a later audit may be below a larger one."""
    alarm = build_record(lower_bound=2.5)
    for record in (alarm, build_record(lower_bound=2.6, certified_epsilon=3.0)):
        add_audit(run_dir, record)
    assert shown_audits(read_run(run_dir), public=True) == [alarm]


def test_an_audit_of_another_version_stays_in_the_file(run_dir):
    (run_dir / "audit.json").write_text(json.dumps({"audits": [{"estimator": "of another version"}]}))
    add_audit(run_dir, build_record())
    assert len(json.loads((run_dir / "audit.json").read_text())["audits"]) == 2


@pytest.mark.parametrize(("lower", "says_more"), [(0.99, True), (1.0, False), (2.5, False)])
def test_a_bound_below_half_of_the_card_says_that_more_runs_help(lower, says_more):
    words = " ".join(sentence for _, sentence in audit_lines(build_record(lower_bound=lower)))
    assert ("--runs 10" in words) is says_more


def test_the_server_of_a_secure_sum_sees_only_the_sum():
    lines = dict(audit_lines(build_record(sees_sum=True)))
    assert lines["Observer"] == "the server, which sees only the sum of what clients send"


def test_the_public_page_shows_only_audits_without_anyones_data(run_dir):
    add_audit(run_dir, build_record())
    add_audit(run_dir, build_record(data="clients", lower_bound=1.77))
    run = read_run(run_dir)
    assert [each.data for each in shown_audits(run, public=False)] == ["stand-in", "clients"]
    assert [each.data for each in shown_audits(run, public=True)] == ["stand-in"]
    assert "1.77" in run_page.render_page(run)
    public = run_page.render_page(run, public=True)
    assert TITLE in public
    assert "1.77" not in public


def test_a_run_without_audits_has_no_section(run_dir):
    assert TITLE not in run_page.render_page(read_run(run_dir))


def test_what_is_no_audit_is_left_out(run_dir):
    listed = [to_plain(build_record()), {"estimator": "of another version"}]
    (run_dir / "audit.json").write_text(json.dumps({"audits": listed}))
    assert len(read_audits(run_dir)) == 1
    (run_dir / "audit.json").write_text("[]")
    assert read_audits(run_dir) == []


def test_the_picture_has_the_certified_curve_and_the_measured_points(tmp_path):
    panel = audit_panel(build_record())
    assert [curve.name for curve in panel.curves] == ["certified: at most", "measured: at least (gaussian)"]
    assert [point.y for point in panel.curves[1].points] == [1.31, 1.0]
    assert save_picture(audit_picture(build_record()), tmp_path / "audit.html").stat().st_size > 1000
