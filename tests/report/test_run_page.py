"""The report is one file that loads nothing, shows what is certified, and marks what isn't covered."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from discreet.errors import InvalidInput
from discreet.experiment.run_directory.run_data import read_run
from discreet.privacy.guarantee import Guarantee, card_entries
from discreet.privacy.wording import round_up
from discreet.report import guarantee_card, run_page
from discreet.report.verdict import judge
from tests.report.conftest import lines, write_rounds

VOID = {"meta", "link", "br", "hr", "img"}
SHOWN = ["71.2", "3.14", "77.9", "2.718", "6.7\u202f%", "5.12", "4.987", "4.543", "6.234", "6.789", "61.7", "19.2"]
SHOWN += ["0.3457", "38.4", "7,002", "83,456", "91,234", "2.6 s", "9,359"]
UNCOVERED = [*SHOWN, "0.712", "0.778", "5.43", "0.617", "0.191", "0.345", "0.383", "7002", "83456", "91234", "2.62"]


class Reader(HTMLParser):
    """Collects headings, visible text and attributes; fails on a tag that is closed wrongly."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.words: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts = 0
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.scripts += tag == "script"
        if tag in {"h1", "h2", "h3", "h4"}:
            self.headings.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"script", "style"} & set(self.open):
            return
        self.words.append(data)
        if {"h1", "h2", "h3", "h4"} & set(self.open):
            self.headings[-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(run: Path, *, public: bool = False) -> Reader:
    return Reader(run_page.write(run, public=public).read_text(encoding="utf-8"))


def page_text(run: Path, *, public: bool = False) -> str:
    return run_page.write(run, public=public).read_text(encoding="utf-8")


def without_coordinates(page: str) -> str:
    """Remove the places of lines and texts in drawings, whose digits could be those of a number."""
    return re.sub(r'(?<=\s)(?:d|x|y|transform)="[^"]*"', "", page)


def rewrite(run: Path, **fields: object) -> None:
    path = run / "guarantee.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def test_it_loads_nothing_from_anywhere(run: Path):
    found = read(run)
    loads = [value for _, name, value in found.attributes if name in {"src", "href", "srcset", "action", "data"}]
    assert [value for value in loads if not value.startswith("#")] == ["data:,"]
    own = page_text(run)
    assert not re.search(r"https?://|@import|url\((?!#)", own)
    assert any(value.startswith("default-src 'none'") for _, _, value in found.attributes)


def test_it_is_complete_without_scripts_and_allows_none(run: Path):
    found, text = read(run), page_text(run)
    assert found.scripts == 0
    assert not any(name.startswith("on") for _, name, _ in found.attributes)
    assert "script-src" not in text.split("</head>")[0]  # so that default-src 'none' holds for scripts
    assert text.count("<svg") == text.count('role="img"') >= 9
    assert len(text.encode()) < 300_000


def test_a_long_run_has_a_small_page_too(run: Path):
    write_rounds(run, lines(3000))
    assert len(page_text(run).encode()) < 300_000


def test_a_finished_private_run_says_that_its_promise_was_kept(run: Path, certified_guarantee: Guarantee):
    text = read(run).text
    assert f"protected against the server, up to ε = {round_up(certified_guarantee.epsilon)} at δ = 0.0001" in text
    assert "That keeps the promise: at most ε = 2 at δ = 0.0001" in text
    assert "finished: 4 of 4 rounds" in text


def test_it_has_every_section_in_the_order_of_its_readers(run: Path):
    uncovered = " not covered by the guarantee"
    assert read(run).headings == [
        "Training on digits with pfl",
        "The guarantee",
        "For any one example, against the server",
        "Claimed, not certified",
        "Assumes, and somebody must check",
        "Assumes, inherent in the method",
        "Not covered: what else is done with the data",
        "Not covered by any such guarantee",
        "Privacy spent by round",
        "Accuracy and loss by round" + uncovered,
        "Update norms and fraction clipped by round" + uncovered,
        "Participants by round" + uncovered,
        "The experiment",
        "The environment",
        "The ledger",
    ]


def test_the_card_is_on_it_in_words_and_its_claims_stand_apart(run: Path, certified_guarantee: Guarantee):
    found = read(run)
    assert certified_guarantee.sentence() in found.text
    for said in (*certified_guarantee.assumptions, *certified_guarantee.not_covered):
        assert said in found.text
    assert "Claimed, not certified" in found.headings
    aside = page_text(run).split("<aside")[1].split("</aside>")[0]
    assert "Theorem 4.6" in aside


def test_every_picture_has_words_and_every_table_headings(run: Path):
    own = page_text(run)
    labels = [label for label in re.findall("<desc[^>]*>([^<]+)</desc>", own) if label.startswith("Line chart of ")]
    assert len(labels) == own.count("<svg") == own.count("aria-describedby=") >= 9
    assert any("accuracy: from 71.2" in label and "at 4" in label for label in labels)
    assert any("on training examples: from 77.9" in label for label in labels)
    assert any("gap: from 6.7" in label for label in labels)  # 77.889 less 71.234
    assert own.count("<figure") == own.count("<summary>Numbers</summary>") == len(labels)
    assert own.count("<table") == own.count("<caption>") == own.count("<thead>")


def test_in_public_no_number_is_left_that_the_guarantee_does_not_cover(run: Path):
    private, public = (without_coordinates(page_text(run, public=public)) for public in (False, True))
    for number in SHOWN:
        assert number in private
    hashless = re.sub("[0-9a-f]{64}", "", public)
    for number in UNCOVERED:
        assert number not in hashless
    diagnosed = (
        "Fraction of updates",
        "that the clip left",
        "Signal to noise of",
        "Gap: accuracy",
        "In a round, each received",
    )
    for word in ("training time", "ward-7", "ask Ann", "not covered by the guarantee", *diagnosed):
        assert word in private
        assert word not in public


def test_in_public_the_guarantee_and_what_was_spent_stay(run: Path, certified_guarantee: Guarantee):
    found = read(run, public=True)
    assert certified_guarantee.sentence() in found.text
    assert {"The guarantee", "Privacy spent by round", "The experiment", "The ledger"} <= set(found.headings)
    assert "public version" in found.text


@pytest.mark.parametrize(
    ("said", "in_public"),
    [
        ("Tried on 359 test examples.", "Tried on … test examples."),
        ("An error of -1,024.5 or 3e-5, in 10-20 of them (10).", "An error of … or …, in …-… of them (…)."),
        ("say classes=10 if public", "say classes=… if public"),
        ("What net2.py:Net50 saw of CIFAR-10.", "What net2.py:Net50 saw of CIFAR-10."),
        (f"The sha256 {'0a' * 32} of it.", "The sha256 … of it."),
        ("With other runs, ε = 1.5 of 4 is spent.", "With other runs, ε = 1.5 of 4 is spent."),
    ],
)
def test_in_public_a_sentence_loses_its_numbers_and_keeps_names_and_epsilons(said: str, in_public: str):
    assert guarantee_card.remove_numbers(said) == in_public


def test_the_public_page_has_a_name_of_its_own(run: Path):
    assert {run_page.write(run).name, run_page.write(run, public=True).name} == {"report.html", "report-public.html"}
    assert not [path for path in run.iterdir() if path.name.startswith(".")]


def test_it_can_be_written_elsewhere(run: Path, tmp_path: Path):
    before = sorted(run.iterdir())
    assert run_page.write(run, out=tmp_path / "mine.html") == tmp_path / "mine.html"
    assert "Training report" in (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert sorted(run.iterdir()) == before
    with pytest.raises(InvalidInput, match="can't be written"):
        run_page.write(run, out=tmp_path / "nowhere" / "mine.html")


def test_the_card_on_it_lists_what_the_card_in_words_lists(run: Path, certified_guarantee: Guarantee):
    text = read(run).text
    for name, said in card_entries(certified_guarantee):
        assert f"{name} {said}" in text


def test_a_run_without_privacy_says_so_plainly(open_run: Path):
    found = read(open_run)
    assert "No privacy was promised." in found.text
    assert not {"The guarantee", "Privacy spent by round", "The ledger"} & set(found.headings)
    assert "Accuracy and loss by round not covered by the guarantee" in found.headings


def test_noise_without_a_promise_is_not_called_no_privacy(open_run: Path):
    (open_run / "run.json").write_text('{"private": true}')
    text = read(open_run).text
    assert "There is no certified guarantee." in text
    assert "No privacy was promised" not in text


def test_an_unfinished_run_says_so_and_what_it_has_spent(run: Path):
    (run / "guarantee.json").unlink()
    write_rounds(run, lines(3))
    text = read(run).text
    assert "The run is unfinished: 3 of 4 rounds are done." in text
    assert "There is no certified guarantee." in text
    assert "Spent so far, not certified: ε = 0.75" in text
    assert "No privacy was promised" not in text


def test_a_stopped_run_says_why_and_only_to_those_who_may_know(run: Path):
    rewrite(run, stopped="Interrupted after 4 of 9 rounds; to go on: discreet run --resume /home/ann/digits-1")
    assert "--resume /home/ann" in read(run).text
    assert "/home/ann" not in read(run, public=True).text


def test_a_guarantee_from_before_a_resume_is_out_of_date(run: Path):
    rewrite(run, rounds=2)
    text = read(run).text
    assert "The guarantee is out of date. It covers 2 rounds, and 4 were run." in text
    assert "keeps the promise" not in text


def test_a_seeded_run_protects_nobody(run: Path):
    resolved = run / "resolved.toml"
    resolved.write_text("seed = 7\n" + resolved.read_text())
    text = read(run).text
    assert "This run protects nobody: its noise came from a seed" in text
    assert "ε without a seed" in text
    assert "ε certified" not in text
    assert "promised" not in text.partition("rounds")[0]


def test_a_delta_that_allows_publishing_one_unit_is_no_good_news(run: Path):
    rewrite(run, delta_warning="delta = 0.5 is no less than 1/800.")
    verdict = judge(read_run(run))
    assert verdict.mood == "bad"
    assert verdict.sentence == "Warning: delta = 0.5 is no less than 1/800."
    assert verdict.sentence in read(run).text


def test_a_broken_promise_is_called_one(run: Path):
    resolved = run / "resolved.toml"
    resolved.write_text(resolved.read_text().replace("epsilon = 2.0", "epsilon = 0.1"))
    text = read(run).text
    assert "The promise is broken" in text
    assert "keeps the promise" not in text


def test_a_guarantee_against_the_server_keeps_a_promise_against_the_public(run: Path):
    resolved = run / "resolved.toml"
    resolved.write_text(resolved.read_text().replace('"server"', '"public"'))
    assert "That keeps the promise" in read(run).text


def test_a_damaged_guarantee_is_no_run_without_privacy(run: Path):
    (run / "guarantee.json").write_text('{"guarantees": [{"unit": "example"}]}')
    text = read(run).text
    assert "can't be read, so it isn't shown" in text
    assert "There is no certified guarantee" in text


def test_a_ledger_that_lost_its_end_is_found_out(run: Path):
    assert "it is the ledger that the card names" in read(run).text
    ledger = run / "ledger.jsonl"
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-2]))
    assert "Entries are missing at the end: the card has 2 more." in read(run).text


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize(("fault", "sentence"), [("changed", "was changed or"), ("missing", "The ledger is missing")])
def test_every_page_warns_of_a_ledger_that_was_changed_or_deleted(run: Path, public: bool, fault: str, sentence: str):
    assert "Every round was written to the ledger" in read(run, public=public).text
    ledger = run / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace("example", "exemple")) if fault == "changed" else ledger.unlink()
    text = read(run, public=public).text
    assert sentence in text
    assert 'class="verdict bad"' in page_text(run, public=public)
    assert "Every round was written to the ledger" not in text
    assert str(run) not in text or not public


def test_a_ledger_that_other_runs_share_is_read_where_it_is(run: Path, tmp_path: Path):
    shared = (run / "ledger.jsonl").rename(tmp_path / "ours.jsonl")
    (run / "run.json").write_text(json.dumps({"ledger": str(shared)}))
    assert "it is the ledger that the card names" in read(run).text
    shared.unlink()
    assert "The ledger is missing" in read(run).text


def test_whatever_a_user_wrote_is_text_and_never_markup(run: Path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    (run / "resolved.toml").write_text(f'rounds = 1\ntask = {{ name = "{evil}", kind = "python" }}')
    (run / "environment.json").write_text(json.dumps({evil: {evil: [evil]}}))
    write_rounds(run, [{"round": 1, "evaluation": {evil: 0.5}, "clients": 3}])
    before = read(run)
    assert "<img" not in page_text(run)
    assert "alert(1)</script>" not in page_text(run)
    assert evil in before.headings[0]
    assert before.scripts == 0


def test_a_torn_last_line_is_passed_over_in_silence(run: Path):
    with open(run / "rounds.jsonl", "a") as file:
        file.write('{"round": 5, "clie')
    found = read(run)
    assert "4 of 4 rounds" in found.text
    assert "What could not be read" not in found.headings


def test_a_damaged_line_in_the_middle_is_named(run: Path):
    path = run / "rounds.jsonl"
    path.write_text(path.read_text().replace('{"round": 2', '{"rou', 1))
    assert "Line 2 of rounds.jsonl can't be read." in read(run).text


def test_numbers_that_are_none_are_said_in_words(run: Path):
    rows = lines(4)
    rows[2]["evaluation"] = {"accuracy": 0.1, "loss": float("nan")}
    rows[3]["evaluation"] = {"accuracy": 0.1, "loss": "inf"}
    rows[3]["epsilon"] = None
    write_rounds(run, rows)
    text = read(run).text
    assert "Not a finite number: loss in 2 rounds, first in round 3." in text
    assert '<th scope="row">3</th><td>–</td><td>2.718</td>' in page_text(run)
    assert "∞" in text


@pytest.mark.parametrize(
    "name", ["resolved.toml", "experiment.toml", "environment.json", "rounds.jsonl", "guarantee.json", "ledger.jsonl"]
)
@pytest.mark.parametrize("content", [None, "", "{[\x00", "[1, 2]\n"])
@pytest.mark.parametrize("public", [False, True])
def test_whatever_is_missing_or_damaged_there_is_a_whole_page(run: Path, name: str, content: str | None, public: bool):
    (run / name).unlink() if content is None else (run / name).write_text(content)
    assert "Training report" in read(run, public=public).text


def test_a_folder_without_a_run_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="holds no run"):
        run_page.write(tmp_path)
    assert not list(tmp_path.iterdir())
