"""What every command shares: help, --json, exit codes, one sentence for each error."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from discreet.cli import main
from discreet.code_version import read_code_version
from discreet.deploy.deployment import Deployment
from discreet.errors import BudgetRefused, LedgerDamaged
from tests.cli.conftest import Discreet
from tests.data.tasks.test_lending_club import ROW
from tests.deploy.hospital_sites import create_hospitals
from tests.small_experiment import SMALL


def commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, f"{path} {name}".strip())


TREE = dict(commands(typer.main.get_command(main.app)))
STAYING = ("deploy server", "deploy client", "deploy submit", "deploy simulate")  # tests/deploy runs them
LEAVES = {
    path: command for path, command in TREE.items() if not isinstance(command, click.Group) and path not in STAYING
}


@pytest.mark.parametrize("path", TREE)
def test_every_help_page_fits_80_columns_and_starts_with_what_it_is_for(path: str, discreet: Discreet):
    ran = discreet(f"{path} --help")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "\\[" not in ran.out  # typer escapes text for rich that click prints as it is
    assert TREE[path].help


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_takes_json_and_prints_exactly_one_object(path: str, discreet: Discreet, tmp_path: Path):
    there, new, old = tmp_path / "there.jsonl", tmp_path / "new.jsonl", tmp_path / "old.jsonl"
    discreet("ledger create --epsilon 1 --delta 1e-5", there)
    discreet("ledger create --epsilon 1 --delta 1e-5 --relation add-or-remove", old)
    table = tmp_path / "visits.csv"
    table.write_text("clinic,age,back\na,30,yes\na,40,no\nb,50,yes\nb,60,no\n")
    finished = tmp_path / "finished"
    finished.mkdir()
    (finished / "guarantee.json").write_text('{"guarantees": []}')
    loans = tmp_path / "lending-club" / "loans_2007_2011.csv"
    loans.parent.mkdir()
    loan = "\n".join([",".join(ROW), ",".join(ROW.values())])
    loans.write_text(loan)
    loans.with_suffix(".csv.sha256").write_text(hashlib.sha256(loan.encode()).hexdigest())  # so it needs no network
    small = tmp_path / "small.toml"
    small.write_text(SMALL)
    card = tmp_path / "card.json"
    card.write_text(discreet("account gaussian --noise-multiplier 1 --card --json").out)
    tabled = tmp_path / "tabled"
    if path in ("predict", "export"):
        columns = {"inputs": {"age": {"min": 0, "max": 100}}, "label": "back", "target": {"values": ["no", "yes"]}}
        small.write_text(SMALL)
        task = f"task={{kind='csv', path='{table}', client='clinic', label='back', ranges={{age={{min=0, max=100}}, "
        task += "back={values=['no', 'yes']}}}"
        discreet("run", small, "--out", tabled, "--set", task)
        assert json.loads((tabled / "table.json").read_text()) == columns
    if path in ("deploy enroll", "deploy status", "deploy accept", "deploy renew"):
        discreet(f"deploy init {tmp_path / 'site'} {small}")
    if path == "deploy accept":
        shared = tmp_path / "site" / "app"
        for name in (each.name for each in Deployment.open(shared).clients):
            discreet(f"deploy enroll {name} --app {shared} --out {tmp_path / name}")
            shutil.copy(tmp_path / name / f"{name}.toml", shared / "clients")
    if path in ("deploy add", "deploy revoke"):
        clinics = create_hospitals(tmp_path / "clinics", "north", "south", "east", "west").folder
    else:
        clinics = tmp_path
    lines = {  # a command that is not installed fails
        "deploy init": f"{tmp_path / 'site'} {small}",
        "deploy enroll": f"client-0 --app {tmp_path / 'site' / 'app'} --out {tmp_path / 'node'}",
        "deploy accept": f"{tmp_path / 'client-0'}",
        "deploy renew": f"{tmp_path / 'site'}",
        "deploy add": f"{clinics} more=30",
        "deploy revoke": f"{clinics} west",
        "deploy status": f"{tmp_path / 'site'}",
        "account gaussian": "--noise-multiplier 1",
        "account laplace": "--noise-multiplier 1",
        "account skellam": "--variance 100 --l2-sensitivity 10 --dimension 10",
        "account discrete-gaussian": "--variance 100 --l2-sensitivity 10",
        "account zcdp": "--rho 0.1",
        "account randomised-response": "--categories 4 --random-share 0.5",
        "account averaging": "--local-epsilon 5 --parties 10",
        "tradeoff ldp": "",
        "tradeoff epochs": "",
        "tradeoff clients": "--clients 10",
        "tradeoff cohort": "--clients 10 --bits 32",
        "tradeoff sam": "",
        "tradeoff iterations": "",
        "tradeoff promise": "--epsilon 1",
        "ledger create": f"{new} --epsilon 1 --delta 1e-5",
        "ledger show": f"{there}",
        "ledger verify": f"{there}",
        "ledger restate": f"{old}",
        "demo": "",
        "run": f"--out {tmp_path / 'run'} --set rounds=2",
        "plan": "",
        "report": f"{finished}",
        "audit": f"{small} --runs 1 --canaries 20 --seed 1",  # at random, one in twenty may exceed the bound
        "predict": f"{tabled} {table}",
        "export": f"{tabled} --to torchscript",
        "trust": "--list",
        "verify": f"{card}",
        "compare": f"{small} --seeds 1 --out {tmp_path / 'compared'}",
        "tune": f"{small} --public-data --out {tmp_path / 'tuned'} --set tune.trials=1 "
        "--set tune.space.rounds.choices=[1] --set task.validation_fraction=0.2",
        "algorithms": "",
        "init": f"{tmp_path / 'starter.toml'}",
        "schema": "",
        "data check": f"{table} --client clinic --label back",
        "data get": f"lending_club --data-dir {tmp_path}",
        "data list": f"--data-dir {tmp_path}",
    }
    ran = discreet(f"{path} {lines[path]} --json")
    assert (ran.code, ran.err) == (1 if path == "deploy status" else 0, "")  # there is no server to answer
    assert isinstance(ran.json, dict)
    assert ran.out.count("\n") == 1


@pytest.mark.parametrize("path", ["", "account", "tradeoff", "ledger", "data", "deploy"])
def test_every_short_help_fits_its_line(path: str, discreet: Discreet):
    listed = discreet(path).out.split("Commands:")[1].split("Examples")[0].split("In order")[0]
    assert "..." not in listed


def test_exit_codes_are_documented(discreet: Discreet):
    page = discreet("--help").out
    for code in ("0  done", "2  wrong input", "3  refused", "1  anything else"):
        assert code in page


@pytest.mark.parametrize("line", ["", "account", "tradeoff", "ledger", "data", "deploy"])
def test_without_a_command_the_help_page_is_the_answer(line: str, discreet: Discreet):
    ran = discreet(line)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Usage: discreet")


def test_version(discreet: Discreet):
    code = read_code_version()
    assert discreet("--version").out == f"{code}\n"
    facts = {"discreet": code.version, "commit": code.commit, "dirty": code.dirty}
    assert discreet("--version --json").json == discreet("--json --version").json == facts
    assert "--json belongs after the command" in discreet("--json account gaussian").err


@pytest.mark.parametrize("line", ["acount", "account gausian", "account gaussian --nois 1", "ledger show"])
def test_a_mistyped_line_is_refused_in_one_sentence_that_names_the_help(line: str, discreet: Discreet):
    ran = discreet(line)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert "--help" in ran.err
    assert ran.err.count("Did you mean") <= 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BudgetRefused("Over budget.", fix="Ask for less."), 3),
        (LedgerDamaged("Line 3 was changed."), 1),
        (ZeroDivisionError("division by\nzero"), 1),
        (KeyboardInterrupt(), 1),
    ],
)
def test_each_error_has_its_sentence_and_its_exit_code(
    error: BaseException, code: int, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("discreet.cli.account.solve", fail)
    plainly = discreet("account gaussian --noise-multiplier 1")
    assert (plainly.code, plainly.out) == (code, "")
    assert plainly.err.startswith("Error: ")
    assert plainly.err.count("\n") == 1
    as_json = discreet("account gaussian --noise-multiplier 1 --json")
    assert (as_json.code, as_json.out) == (code, "")
    assert json.loads(as_json.err)["error"]["exit_code"] == code
    assert json.loads(as_json.err)["error"]["message"] in plainly.err


def test_the_unexpected_shows_its_traceback_only_when_asked(discreet: Discreet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("discreet.cli.account.solve", lambda *_: 1 / 0)
    ran = discreet("account gaussian --noise-multiplier 1")
    assert "Traceback" not in ran.err
    assert "ZeroDivisionError" in ran.err
    assert "DISCREET_TRACEBACK=1" in ran.err
    monkeypatch.setenv("DISCREET_TRACEBACK", "1")
    assert "Traceback" in discreet("account gaussian --noise-multiplier 1").err


@pytest.mark.parametrize("line", ["", "account --help", "account gaussian --noise-multiplier 1 --json"])
def test_a_reader_that_leaves_early_ends_it_quietly(line: str):
    script = f"import sys; from discreet.cli.main import run; sys.exit(run({line.split()!r}))"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.close()  # before it has written anything
        assert ran.stderr.read() == b""
    assert ran.returncode == 1


def test_a_cold_start_loads_nothing_heavy():
    line = "account gaussian --noise-multiplier 1 --sampling-rate 0.1 --steps 1000 --delta 1e-5 --json"
    script = (
        "import sys; from discreet.cli.main import run; code = run(sys.argv[1:]); "
        "heavy = {'torch', 'scipy.stats', 'dp_accounting', 'pandas', 'sklearn'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else code)"
    )
    ran = subprocess.run([sys.executable, "-c", script, *line.split()], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["epsilon"] == pytest.approx(25.2046, abs=1e-3)
