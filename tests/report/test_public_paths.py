"""What may be given to anyone names files without the folders of the machine that trained."""

from pathlib import Path
from typing import Any

import pytest

from discreet.experiment.run_directory.run_data import read_run
from discreet.report import brief_page, model_card, run_page
from discreet.report.brief import write_brief
from discreet.report.public_paths import hide_folders, hide_folders_in_text
from tests.cli.conftest import Discreet, discreet
from tests.experiment.test_person_unit import experiment
from tests.small_experiment import state

__all__ = ["discreet", "state"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"task": {"path": "/home/ann/clinic/visits.csv"}}, {"task": {"path": "visits.csv"}}),
        ({"task": {"path": "../clinic/visits.csv"}}, {"task": {"path": "visits.csv"}}),
        ({"task": {"ranges": "private/ranges.toml"}}, {"task": {"ranges": "ranges.toml"}}),
        ({"task": {"ranges": {"age": {"min": 0}}}}, {"task": {"ranges": {"age": {"min": 0}}}}),
        ({"track": [{"kind": "csv", "to": "logs/all.csv"}]}, {"track": [{"kind": "csv", "to": "all.csv"}]}),
        ({"model": {"kind": "/home/ann/net.py:Net"}}, {"model": {"kind": "net.py:Net"}}),
        ({"model": {"kind": "parts/net.py:Net"}}, {"model": {"kind": "parts/net.py:Net"}}),
        ({"path": r"C:\\clinic\\visits.csv"}, {"path": "visits.csv"}),
        ({"path": "~/visits.csv"}, {"path": "visits.csv"}),
        ({"client": "and/or", "rounds": 3}, {"client": "and/or", "rounds": 3}),
    ],
)
def test_settings_keep_the_name_of_a_file_only(value: dict[str, Any], expected: dict[str, Any]):
    assert hide_folders(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/ann/net.py:Noise (file /home/ann/net.py)", "net.py:Noise (file net.py)"),
        ("'/srv/a/b.csv' and ~/x/y.toml", "'b.csv' and y.toml"),
        ("See https://example.org/a/b, 1/240 and and/or.", "See https://example.org/a/b, 1/240 and and/or."),
    ],
)
def test_sentences_keep_the_name_of_a_file_only(text: str, expected: str):
    assert hide_folders_in_text(text) == expected


def test_no_public_output_names_a_folder_of_the_machine(discreet: Discreet, tmp_path: Path):
    file = experiment(tmp_path)
    held = tmp_path / "held.csv"
    held.write_text("hospital,patient,age,ill\nnorth,eve,33,1\n")
    written = f'path = "{tmp_path}/visits.csv"\nvalidation_path = "{held}"'
    file.write_text(file.read_text().replace('path = "visits.csv"', written))
    run = tmp_path / "run"
    assert discreet(f"run {file} --out {run} --json").code == 0
    read = read_run(run)
    public = {
        "report": run_page.render_page(read, public=True),
        "brief": brief_page.render_page(read, public=True),
        "brief data": str(write_brief(read, public=True).to_plain()),
        "model card": model_card.render(run),
        "public model card": model_card.render(run, public=True),
        "facts of an exported file": str(model_card.export_facts(run)),
    }
    for name, text in public.items():
        assert str(tmp_path) not in text, name
    assert str(tmp_path) in run_page.render_page(read)  # the owner's page has it
    assert "visits.csv" in public["report"]
    assert "visits.csv" in public["public model card"]
