"""The page that leads to a guarantee has commands that write what it says, and runs that keep the promise."""

import re
import shlex
from pathlib import Path

import pytest

from discreet import api
from discreet.cli.main import run
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.privacy.ledger.charges import ENOUGH_FOR
from discreet.privacy.release import View
from discreet.privacy.wording import unit_name

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "guides" / "which_guarantee.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (a \w+) \| ([\w ]+) \| `discreet ([^`]+)` \| `(\w+)` \|$", PAGE, re.MULTILINE)
UNITS = {"a row": "example", "a person": "person", "a client": "client"}
VIEWS: dict[str, View] = {"the server": "server", "other clients": "client", "the public": "public"}
RANGES = '[columns]\nage = { min = 0, max = 100 }\nreadmitted = { values = [0, 1] }\npatient = "ignore"\n'


def write_table(folder: Path) -> None:
    rows = [f"{'abcdefghij'[at % 10]},{at // 3},{20 + at % 60},{at % 2}" for at in range(600)]
    (folder / "visits.csv").write_text("hospital,patient,age,readmitted\n" + "\n".join(rows) + "\n")
    (folder / "ranges.toml").write_text(RANGES)


def test_the_page_has_every_unit_and_every_onlooker_once():
    assert sorted((UNITS[who], VIEWS[whom]) for who, whom, _, _ in ROWS) == sorted(
        (unit, view) for unit in UNITS.values() for view in VIEWS.values()
    )


@pytest.mark.parametrize(("who", "whom", "command", "recipe"), ROWS, ids=lambda value: value if len(value) < 20 else "")
def test_each_command_writes_a_file_with_that_recipe_whose_plan_keeps_the_promise(
    who: str, whom: str, command: str, recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path)
    assert run(shlex.split(command)) == 0
    text = (tmp_path / "visits.toml").read_text()
    assert f'recipe = "{recipe}"' in text
    terms = api.prepare_terms(experiment_file.load_experiment(tmp_path / "visits.toml"))
    assert terms.privacy is not None
    cards = [
        card
        for card in certify_run(terms, terms.rounds, None, shared=False)
        if unit_name(card.unit) == UNITS[who] and card.view in ENOUGH_FOR[VIEWS[whom]]
    ]
    assert cards
    assert min(card.epsilon for card in cards) <= terms.privacy.largest_epsilon


def test_who_trusts_no_other_client_writes_another_recipe_with_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path)
    assert run(shlex.split(ROWS[0][2])) == 0
    file = tmp_path / "visits.toml"
    file.write_text(file.read_text().replace('"ddp_fedavg"', '"pfl"'))
    terms = api.prepare_terms(experiment_file.load_experiment(file))
    (card, *_) = certify_run(terms, terms.rounds, None, shared=False)
    assert (card.unit, card.view) == ("example", "server")
    assert "Each client draws its noise afresh and in secret, and the server can't remove it." in card.assumptions
    assert not any("no client tells it more" in each for each in card.assumptions)


def test_the_picture_names_the_recipes_of_the_page_and_follows_light_and_dark():
    picture = (DOCS / "images" / "which_guarantee.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in picture
    drawn = re.findall(r'<text class="code"[^>]*>(\w+)</text>', picture)
    by_place = {(who, whom): recipe for who, whom, _, recipe in ROWS}
    assert drawn == [by_place[who, whom] for who in ("a row", "a client") for whom in VIEWS]
    assert all(by_place["a person", whom] == by_place["a row", whom] for whom in VIEWS)
