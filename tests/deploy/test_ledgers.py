"""Which ledger counts a day's releases: that of its period, shared by all deployments on the same rows."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import cycle
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import ClientLedger, round_releases
from discreet.deploy.client_node import ClientNode, today
from discreet.deploy.enrolment import enroll
from discreet.deploy.policy import PERIODS, ClientFolder, Period, PolicyRefusal, period_name
from discreet.errors import BudgetRefused, InvalidInput
from discreet.privacy.ledger import Ledger
from discreet.privacy.release import Release
from tests.deploy.example_sites import PLAIN, copy_site, edit_policy

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("period", "name"), [("ever", ""), ("year", "2026"), ("quarter", "2026-Q2"), ("month", "2026-04")]
)
def test_a_day_belongs_to_one_period(period: Period, name: str) -> None:
    assert period_name(period, date(2026, 4, 1)) == name


def test_a_new_period_has_a_new_ledger_and_the_old_one_stays(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    node = ClientNode.open(tmp_path / "client-0", lambda text: None)
    for year in (2026, 2027):
        node.ledger.open_ledger(date(year, 1, 1))
    assert sorted(path.name for path in (tmp_path / "client-0").glob("ledger*.jsonl")) == [
        "ledger-2026.jsonl",
        "ledger-2027.jsonl",
    ]


ENDS = {"year": date(2027, 1, 1), "quarter": date(2026, 7, 1), "month": date(2026, 5, 1)}


@pytest.mark.parametrize("old", PERIODS)
def test_another_kind_of_period_begins_when_the_old_period_ends(tmp_path: Path, old: Period) -> None:
    """Otherwise anyone who can edit the policy could start an empty ledger at any time."""
    copy_site(tmp_path, PLAIN)
    node, day = tmp_path / "client-0", date(2026, 4, 10)
    policy = replace(ClientFolder.open(node).policy, period=old)
    begun = ClientLedger(node, policy, None).open_ledger(day).path
    for new in set(PERIODS) - {old}:
        other = ClientLedger(node, replace(policy, period=new), None)
        with pytest.raises(PolicyRefusal, match=f'has period = "{new}", and {begun.name}, .* was begun with "{old}"'):
            other.open_ledger(day)
        assert list(node.glob("ledger*.jsonl")) == [begun]
    if old != "ever":
        assert ClientLedger(node, replace(policy, period="ever"), None).open_ledger(ENDS[old]).path != begun


def spending(node: Path) -> ClientLedger:
    return ClientLedger(node, ClientFolder.open(node).policy, None)


def count_affordable(books: Sequence[ClientLedger], asked: Sequence[Release]) -> int:
    """Return how many rounds these ledgers count, taking turns, until one refuses; then all must refuse."""
    for number, each in enumerate(cycle(books)):
        try:
            each.reserve(f"round {number}", asked, today())()
        except BudgetRefused:
            break
    for each in books:
        with pytest.raises(BudgetRefused, match=f"{number} releases were made"):
            each.reserve("one more", asked, today())
    return number


def test_one_ledger_is_one_budget_for_two_deployments_on_the_same_rows(tmp_path: Path) -> None:
    """Two nodes that count together have as many rounds as one that counts alone."""
    app = AppFolder.open(copy_site(tmp_path, PLAIN).app)
    asked = round_releases(app.experiment.algorithm, app.population, 0, 0)
    (tmp_path / "counted").mkdir()
    for name in ("one", "two"):
        enroll(app, "client-0", tmp_path / name, None, tmp_path / "counted")
    enroll(app, "client-0", tmp_path / "apart", None)
    one, two, apart = (spending(tmp_path / name) for name in ("one", "two", "apart"))
    assert count_affordable([one, two], asked) == count_affordable([apart], asked) == 3
    assert one.open_ledger(today()).path.resolve().parent == tmp_path / "counted"
    assert not list((tmp_path / "one").glob("ledger*"))


def test_the_same_question_to_two_nodes_counts_twice(tmp_path: Path) -> None:
    """Each node draws its own noise, so there are two releases, although it is one round of one run."""
    app = AppFolder.open(copy_site(tmp_path, PLAIN).app)
    asked = round_releases(app.experiment.algorithm, app.population, 0, 0)
    (tmp_path / "counted").mkdir()
    for name in ("one", "two"):
        enroll(app, "client-0", tmp_path / name, None, tmp_path / "counted")
    one, two, again = (spending(tmp_path / name) for name in ("one", "two", "one"))
    for books in (one, two, again):
        books.reserve("the same", asked, today())()
    assert one.open_ledger(today()).summary()["releases"]["committed"] == 2


def test_a_ledger_that_another_process_makes_first_is_taken(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    one, two = (spending(tmp_path / "client-0") for _ in range(2))
    path = one.open_ledger(today()).path
    made = path.read_bytes()
    two._create(path)  # as if it had looked before the file existed
    assert path.read_bytes() == made
    assert two.open_ledger(today()).budgets == one.open_ledger(today()).budgets


def test_a_client_that_enrolls_into_a_ledger_that_has_begun_gets_its_budgets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = copy_site(tmp_path, PLAIN)
    first, second = tmp_path / "client-0", tmp_path / "second"
    line = next(each for each in (first / "policy.toml").read_text().splitlines() if each.startswith("epsilon"))
    edit_policy(first, line, "epsilon = 9.5")
    edit_policy(first, 'period = "year"', 'period = "quarter"')
    ledger = spending(first).open_ledger(today())
    words = ["deploy", "enroll", "client-0", "--app", str(site.app), "--out", str(second), "--ledgers", str(first)]
    assert cli.run(words) == 0
    assert f"{ledger.path} has begun, so the policy has its budgets" in capsys.readouterr().out
    policy = ClientFolder.open(second).policy
    assert (policy.budgets, policy.period, policy.ledgers) == (ledger.budgets, "quarter", "../client-0")
    assert policy.budgets[0].epsilon == 9.5
    assert spending(second).open_ledger(today()).path.samefile(ledger.path)


def test_a_client_is_sent_to_where_the_other_one_counts(tmp_path: Path) -> None:
    """Otherwise both would name a folder of ledgers, each a different one."""
    app = AppFolder.open(copy_site(tmp_path, PLAIN).app)
    (tmp_path / "counted").mkdir()
    enroll(app, "client-0", tmp_path / "one", None, tmp_path / "counted")
    with pytest.raises(InvalidInput, match=r"are in another folder\. Use --ledgers .*one/\.\./counted"):
        enroll(app, "client-0", tmp_path / "two", None, tmp_path / "one")


def test_a_folder_of_ledgers_that_is_a_file_or_has_two_for_today_is_refused(tmp_path: Path) -> None:
    app = AppFolder.open(copy_site(tmp_path, PLAIN).app)
    with pytest.raises(InvalidInput, match="is not a folder"):
        enroll(app, "client-0", tmp_path / "new", None, tmp_path / "client-0" / "policy.toml")
    policy = ClientFolder.open(tmp_path / "client-0").policy
    periods: dict[str, Period] = {"client-0": "year", "client-1": "month"}
    for folder, period in periods.items():
        made = ClientLedger(tmp_path / folder, replace(policy, period=period), None).open_ledger(today()).path
        if folder == "client-1":
            made.rename(tmp_path / "client-0" / made.name)
    with pytest.raises(InvalidInput, match="has 2 ledgers for today"):
        enroll(app, "client-0", tmp_path / "new", None, tmp_path / "client-0")
    assert not (tmp_path / "new").exists()


def test_a_folder_of_ledgers_that_is_not_there_is_refused_and_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One letter too many would begin a second budget on the same rows."""
    site, new, wrong = copy_site(tmp_path, PLAIN), tmp_path / "new", tmp_path / "client-00"
    words = ["deploy", "enroll", "client-0", "--app", str(site.app), "--out", str(new), "--ledgers", str(wrong)]
    assert cli.run(words) == InvalidInput.exit_code
    assert f"There is no folder {wrong}" in capsys.readouterr().err
    assert not new.exists()
    assert not wrong.exists()


def test_the_first_of_several_deployments_is_told_that_no_ledger_has_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, counted = copy_site(tmp_path, PLAIN), tmp_path / "counted"
    counted.mkdir()
    words = ["deploy", "enroll", "client-0", "--app", str(site.app), "--ledgers", str(counted), "--out"]
    assert cli.run([*words, str(tmp_path / "one")]) == 0
    assert f"Note: no ledger has begun in {counted}." in capsys.readouterr().out
    ledger = spending(tmp_path / "one").open_ledger(today())
    assert cli.run([*words, str(tmp_path / "two")]) == 0
    assert f"Note: {ledger.path.resolve()} has begun" in capsys.readouterr().out


def start_node(node: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Start a node that is refused at once, and return its exit code; the settings of this process are restored."""
    monkeypatch.setattr("os.umask", lambda mask: 0)
    return cli.run(["deploy", "client", str(node)])


@pytest.mark.parametrize(
    ("line", "new", "why"),
    [
        ("epsilon", "epsilon = 9.5", "must be those that ledger-.* was created with, .*Set them to the ledger's"),
        ("period", 'period = "month"', 'has period = "month", and ledger-.*, which counts today.*Set it back'),
        ("ledgers", 'ledgers = "../client-1"', "in which this node has counted, is gone. .* correct `ledgers`"),
        ("ledgers", 'ledgers = "nosuch"', 'has ledgers = "nosuch", and there is no such folder'),
    ],
)
def test_a_node_whose_policy_is_not_its_ledgers_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, new: str, why: str
) -> None:
    """Otherwise it would seem fine until the first request, and refuse every round."""
    app, node = AppFolder.open(copy_site(tmp_path, PLAIN).app), tmp_path / "client-0"
    spending(node).reserve("round", round_releases(app.experiment.algorithm, app.population, 0, 0), today())()
    policy = (node / "policy.toml").read_text().splitlines()
    edit_policy(node, next(each for each in policy if each.startswith(line)), new)
    before = sorted(tmp_path.rglob("ledger*"))
    assert start_node(node, monkeypatch) == InvalidInput.exit_code
    assert re.search(why, " ".join(capsys.readouterr().err.split()))
    assert sorted(tmp_path.rglob("ledger*")) == before


def test_a_node_that_has_counted_nothing_is_ready_and_begins_no_ledger(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    ClientNode.open(tmp_path / "client-0", lambda text: None).check_ready()
    assert not list((tmp_path / "client-0").glob("ledger*"))


def test_what_a_ledger_of_plans_has_spent_is_not_computed_for_each_round(tmp_path: Path) -> None:
    """A plan would call an accountant each time; a filter knows its sum."""
    app, node = AppFolder.open(copy_site(tmp_path, PLAIN).app), tmp_path / "client-0"
    asked = round_releases(app.experiment.algorithm, app.population, 0, 0)
    budgets, name = ClientFolder.open(node).policy.budgets, f"ledger-{today().year}.jsonl"
    Ledger.create(node / name, budgets, "plan")
    books = spending(node)
    books.reserve("round", asked, today())()
    assert books.describe_spending() == f"{name} has counted it"
