"""The brief says on one page who is protected and who must check what, and never more than the card."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from discreet.cli.main import run as run_command
from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.part import to_plain
from discreet.privacy.card_lines import Line
from discreet.privacy.events import GaussianNoise
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import Person, Release, Unit, View
from discreet.report import brief_page
from discreet.report.brief import Brief, write_brief
from discreet.words import fill
from tests.report.conftest import TESTED
from tests.report.test_run_page import UNCOVERED, Reader, without_coordinates

UNITS: tuple[Unit, ...] = ("example", "client", Person(column="patient", at_most=3))
LINES = [
    Line("The ranges are public.", "owner"),
    Line("The server adds the noise.", "server"),
    Line("Each client keeps its noise.", "clients"),
    Line("Nothing else was released.", "project"),
]


def card(unit: Unit = "example", view: View = "server", *more: Line, **options: Any) -> Guarantee:
    release = Release(unit=unit, relation="replace", view=view, event=GaussianNoise(noise_multiplier=4.0))
    return Guarantee.certify(release, 1e-4, assumptions=[*LINES, *more], in_run=True, **options)


def with_cards(run: Path, *cards: Guarantee, **changes: Any) -> RunData:
    """Read a run, with other cards and without its promise."""
    read = read_run(run)
    experiment = {key: value for key, value in read.experiment.items() if key != "privacy"}
    return replace(read, guarantees=cards, experiment=experiment, **changes)


def all_words(brief: Brief) -> str:
    return json.dumps(brief.to_plain(), ensure_ascii=False)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("view", get_args(View))
def test_it_names_the_unit_and_the_onlooker_of_the_card_and_quotes_its_sentence(run: Path, unit: Unit, view: View):
    made = card(unit, view)
    brief = write_brief(with_cards(run, made))
    text = Reader(brief_page.render_page(with_cards(run, made))).text
    assert made.sentence() in text
    assert {"example": "one example", "client": "one ", "person": "one person"}[
        unit if isinstance(unit, str) else "person"
    ] in brief.protected[0]
    assert {"server": "the server", "client": "another client", "public": "the public"}[view] in brief.onlooker[0]
    assert brief.not_covered[0] == made.not_covered[0]  # whom this view leaves out


def test_three_assumptions_have_somebody_who_must_check_them(run: Path):
    checks = write_brief(with_cards(run, card())).checks
    assert [(line.source, str(line)) for (line,) in checks] == [
        ("owner", "The ranges are public."),
        ("server", "The server adds the noise."),
        ("project", "Nothing else was released."),
    ]
    simulated = write_brief(with_cards(run, card("example", "server", Line("One process plays all.", "machine"))))
    assert simulated.checks[1][0].source == "machine"


def test_each_of_the_three_has_one_box_however_many_must_check_it(run: Path):
    made = card("example", "server", Line("One process plays all.", "machine"), Line("It holds the noise.", "machine"))
    checks = write_brief(with_cards(run, made)).checks
    page = brief_page.render_page(with_cards(run, made))
    assert (len(checks), sum(map(len, checks))) == (3, 4)  # machine and server must check the noise
    assert page.count(fill("brief.check_label")) == 3


def test_one_round_is_a_round(run: Path):
    (run / "rounds.jsonl").write_text((run / "rounds.jsonl").read_text().splitlines(keepends=True)[0])
    text = Reader(brief_page.render_page(read_run(run))).text
    assert "1 rounds" not in text
    assert "after 1 round;" in text


def test_the_secure_sum_and_public_ranges_are_among_the_three(run: Path):
    lines = (
        Line("One row each.", "owner"),
        Line("The server learns the sum and nothing else.", "clients"),
        Line("Each client draws its noise.", "clients"),
        Line("One process plays all.", "machine"),
        Line("The sums were added up in clear.", "machine"),
        Line("The names are public.", "owner"),
        Line(fill("data.table.public_ranges"), "owner"),
    )
    made = replace(card(), assumptions=lines, assumption_sources=tuple(line.source for line in lines))
    page = write_brief(with_cards(run, made))
    (data,), noise, _ = page.checks
    assert data == "One row each. The ranges are public. They were not taken from this data."
    assert [(line.source, str(line)) for line in noise] == [
        ("machine", "One process plays all. The sums were added up in clear."),
        ("clients", "The server learns the sum and nothing else."),
    ]
    assert [(each["number"], each["who"]) for each in page.to_plain()["checks"]][1:3] == [
        (2, "machine"),
        (2, "clients"),
    ]
    html = brief_page.render_page(with_cards(run, made))
    assert "<p><strong>Who runs each client</strong>: The server learns the sum" in html
    assert '<th scope="row">Who runs each client</th>' in html  # who must check something has a line to sign


def test_its_words_name_no_setting():
    assert "engine" not in fill("assumes.sums_in_clear")


def test_a_card_of_an_earlier_version_has_the_usual_three_and_says_so(run: Path):
    old = replace(card(), assumption_sources=(), exclusion_sources=())
    brief = write_brief(with_cards(run, old))
    assert [line.source for (line,) in brief.checks] == ["owner", "clients", "project"]
    assert any("earlier version" in note for note in brief.notes)
    shared = write_brief(with_cards(run, old, identity={"ledger": "../ours.jsonl"}))
    assert shared.checks[2][0] == "Nothing was released from the same data that the ledger does not count."


def test_a_seed_protects_nobody_and_no_bound_of_it_is_shown(run: Path):
    brief = write_brief(with_cards(run, card(), outcome={"seeded": True, "rounds": 4}))
    assert brief.protected == ("Nobody.",)
    assert (brief.guarantee, brief.attacks) == (None, ())
    assert "best possible attack" not in all_words(brief)
    assert brief.verdict.mood == "bad"


def test_a_run_without_privacy_protects_nobody(open_run: Path):
    brief = write_brief(read_run(open_run))
    assert (brief.protected, brief.onlooker) == (("Nobody.",), ("From nobody.",))
    assert brief.strength == ("Nothing limits what an attack can recognise.",)
    assert [line.source for (line,) in brief.checks] == ["owner", "machine", "project"]
    assert "protected" not in " ".join([brief.verdict.sentence, *brief.verdict.more])


def test_rounds_that_the_card_does_not_count_leave_nothing_of_it(run: Path):
    assert write_brief(with_cards(run, card(), outcome={"rounds": 3})).guarantee is None


def test_a_card_that_hides_a_declaration_leaves_nothing_of_it(run: Path):
    own = read_run(run).experiment | {"algorithm": {"mechanism": {"kind": "mine.py:Loud"}}}
    assert write_brief(replace(read_run(run), experiment=own)).guarantee is None


def test_what_is_only_declared_is_called_so_wherever_a_number_is(run: Path):
    declared, other = (card("example", view, on_word_of=["mine.py:Loud"]) for view in ("server", "client"))
    brief = write_brief(with_cards(run, declared, other))
    assert brief.protected[0].startswith("Only if the code")
    assert brief.strength[0].startswith("On the word of mine.py:Loud, not certified")
    assert "declared and not certified" in brief.strength[1]
    assert all(line.endswith("declared and not certified") for line in brief.others)
    assert brief.to_plain()["certified"] is False
    assert brief.verdict.sentence.startswith("Not certified")


def test_a_claim_of_a_paper_is_not_on_it(run: Path, certified_guarantee: Guarantee):
    assert certified_guarantee.claims
    assert "0.62" not in brief_page.render_page(read_run(run))


def test_the_other_guarantees_are_named_with_their_onlooker(run: Path):
    brief = write_brief(with_cards(run, card("client", "server"), card("example", "client")))
    assert [line.split(":")[0] for line in brief.others] == ["For any one example, against another client"]
    many = [card("client", "server", on_word_of=()) for _ in range(6)]
    assert write_brief(with_cards(run, *many)).others[-1] == "3 more on the full card."


def test_of_clients_that_differ_the_largest_epsilon_is_shown_for_any_client(run: Path):
    first, second = (replace(card(), clients=(number,), epsilon=3.0 - number) for number in (0, 1))
    brief = write_brief(with_cards(run, first, second))
    assert brief.protected[0] == "one example, of any client"
    assert "3" in brief.strength[1]


def test_one_machine_is_named_and_real_clients_are_not_called_one(run: Path):
    def onlooker(kind: str, *more: Line) -> str:
        made = with_cards(run, card("example", "server", *more))
        return " ".join(write_brief(replace(made, experiment=made.experiment | {"engine": {"kind": kind}})).onlooker)

    assert "One machine played every client" in onlooker("embedded")
    assert "One machine played every client" in onlooker("flower", Line("The run is a rehearsal.", "machine"))
    assert "One machine" not in onlooker("flower")


def test_in_public_no_number_is_left_that_the_guarantee_does_not_cover(run: Path):
    made = with_cards(run, card(not_covered=[Line(TESTED, "method")]))
    private, public = (without_coordinates(brief_page.render_page(made, public=which)) for which in (False, True))
    assert "71.2" in private
    assert TESTED in private
    for number in UNCOVERED:
        assert number not in public, number
    assert "public version" in public


def test_it_prints_a_line_to_sign_for_everybody_who_must_check(run: Path):
    found = Reader(brief_page.render_page(read_run(run)))
    assert found.headings == [
        "Whom does this training protect?",
        "Who is protected",
        "From whom",
        "How well",
        "Which data",
        "Which period",
        "Three things that somebody must check",
        "Not covered",
        "Who signs",
    ]
    for word in ("Name", "Role", "Date", "Signature", "Data protection officer"):
        assert word in found.text
    assert ("a", "href", "report.html") in found.attributes


def test_the_command_writes_both_pages_and_one_object(run: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command(["report", str(run), "--brief", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (Path(said["brief"]).name, Path(said["report"]).name) == ("brief.html", "report.html")
    assert len(said["checks"]) == 3
    assert said["epsilon"] == to_plain(read_run(run).guarantees[0])["epsilon"]
    assert run_command(["report", str(run), "--brief", "--public"]) == 0
    assert (run / "brief-public.html").is_file()
    assert (run / "report-public.html").is_file()
    assert "discreet report" not in capsys.readouterr().out
    assert run_command(["report", str(run), "--brief", "--out", str(run / "model.safetensors")]) != 0


def test_the_command_says_that_both_pages_belong_together(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_command(["report", str(run), "--brief", "--out", str(tmp_path / "mine.html")]) == 0
    assert "give both together" in " ".join(capsys.readouterr().out.split())


def test_a_ledger_that_is_not_the_cards_and_files_that_cannot_be_read_are_warned_of(run: Path):
    assert write_brief(read_run(run)).warnings == ()
    ledger = run / "ledger.jsonl"
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-1]))
    (cut,) = write_brief(read_run(run)).warnings
    assert "not the one that the card names, or lacks entries" in cut
    ledger.write_text(ledger.read_text().replace("example", "exemple"))
    (broken,) = write_brief(read_run(run)).warnings
    assert "The ledger was changed or can't be read" in broken
    assert Reader(brief_page.render_page(read_run(run))).text.count(broken) == 1
    ledger.unlink()
    (missing,) = write_brief(read_run(run)).warnings
    assert "The ledger is missing" in missing
    assert Reader(brief_page.render_page(read_run(run), public=True)).text.count(missing) == 1
    (run / "run.json").write_text("{")
    assert "1 of the run's files could not be read or trusted" in write_brief(read_run(run)).warnings[0]


def test_what_other_runs_spent_is_said_before_what_is_never_covered_in_general(run: Path):
    spent = Line(
        "Other runs on the same data. With all that its ledger counts, ε = 3 of 4 at δ = 1e-5 is spent.", "project"
    )
    for public in (False, True):
        shown = write_brief(with_cards(run, card(not_covered=[spent])), public=public).not_covered
        assert spent in shown
        assert shown.index(spent) < shown.index("Tuning, model selection and evaluation on the same data.")
