"""`discreet report`: the page written again, for the data's owner or for the public."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL

ACCURACY = "Accuracy and loss by round"


@pytest.fixture
def run(tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run whose page is not written yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL)
    assert discreet("run small.toml --out result --json").code == 0
    Path("result/report.html").unlink()
    return Path("result")


def test_it_writes_the_page_into_the_run_directory(run: Path, discreet: Discreet):
    ran = discreet("report result")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Wrote result/report.html\n")
    assert "discreet report result --public" in ran.out
    assert ACCURACY in (run / "report.html").read_text(encoding="utf-8")


def test_the_public_page_holds_no_number_of_test_examples_and_no_accuracy(run: Path, discreet: Discreet):
    ran = discreet("report result --public --json")
    assert ran.json == {"run": "result", "report": "result/report-public.html", "public": True, "warnings": []}
    public = (run / "report-public.html").read_text(encoding="utf-8")
    assert ACCURACY not in public
    assert "computed without noise on test examples" in public
    discreet("report result")


def test_it_writes_where_it_is_told_to(run: Path, discreet: Discreet):
    assert discreet("report result --public --out mine.html --json").json["report"] == "mine.html"
    assert Path("mine.html").is_file()
    assert not list(run.glob("*.html"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("report none", "There is no run directory none."),
        ("report empty", "empty holds no run"),
        ("report killed", "The run in killed is unfinished: it has no guarantee.json yet."),
        ("report result --out result/model.safetensors", "--out must name a file that ends in .html"),
        ("report result --out none/page.html", "none/page.html can't be written (No such file or directory)."),
    ],
)
def test_what_makes_no_page_is_one_sentence_and_exit_code_2(line: str, said: str, run: Path, discreet: Discreet):
    Path("empty").mkdir()
    Path("killed").mkdir()
    Path("killed/run.json").write_text((run / "run.json").read_text())
    ran = discreet(line)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"Error: {said}")
    assert ran.err.count("\n") == 1
    assert not list(Path().rglob("*.html"))


def test_without_privacy_the_public_page_is_called_no_more_than_it_is(run: Path, discreet: Discreet):
    shared = SMALL[: SMALL.index("[privacy]")]
    Path("open.toml").write_text(f'{shared}[algorithm]\nrecipe = "fedsgd"\nlearning_rate = 0.5\n')
    assert discreet("run open.toml --out open --json").code == 0
    printed = " ".join(discreet("report open --public").out.split())
    assert "You may give it to anyone" not in printed
    assert "No privacy was promised." in printed
    assert "No privacy was promised." in Path("open/report-public.html").read_text()


def test_without_its_ledger_no_page_is_for_anyone(run: Path, discreet: Discreet):
    assert "You may give it to anyone" in " ".join(discreet("report result --public").out.split())
    (run / "ledger.jsonl").unlink()
    for line in ("report result", "report result --public", "report result --brief --public"):
        printed = " ".join(discreet(line).out.split())
        assert "Warning: The ledger is missing" in printed
        assert "You may give it to anyone" not in printed
    (warning,) = discreet("report result --brief --json").json["warnings"]
    assert "The ledger is missing" in warning


def test_a_brief_elsewhere_links_to_a_report_that_is_beside_it(run: Path, discreet: Discreet):
    Path("sent").mkdir()
    ran = discreet("report result --brief --public --out sent/bp.html")
    page = Path("sent/bp.html").read_text()
    (link,) = re.findall(r'<a href="([^"]+)"', page)
    assert (Path("sent") / link).is_file()
    assert "/" not in link  # in public no folder is named
    assert f"The page links to {link} beside it: give both together." in " ".join(ran.out.split())
    assert ACCURACY not in (Path("sent") / link).read_text()
