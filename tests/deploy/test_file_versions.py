"""Run directories, ledgers, policies and app folders have a version: older ones are read, newer ones are refused."""

import json
import shutil
from pathlib import Path

import pytest

from discreet.cli import main as cli
from discreet.deploy.deployment import Deployment
from discreet.deploy.policy import ClientFolder
from discreet.errors import InvalidInput, LedgerUnavailable
from discreet.experiment.run_directory.run_data import read_run
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.file_version import check_file_version
from discreet.part import to_plain
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.ledger.entries import OpenEntry
from discreet.privacy.ledger.log import Log
from tests.deploy.example_sites import PLAIN, copy_site, edit_policy, write_experiment

NEWER = r"has version 2, and discreet \S+ reads version 1\. Use the discreet that wrote it, or a newer one\."
BUDGET = Budget(unit="example", relation="zero_out", view="server", epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None, []])
def test_a_version_that_is_no_number_is_refused(version: object) -> None:
    with pytest.raises(InvalidInput, match=r"a\.toml: version must be a whole number from 1 on, and got"):
        check_file_version({"version": version}, Path("a.toml"))


def test_every_version_up_to_the_newest_is_read_and_one_without_a_number_is_the_first() -> None:
    for content in ({}, {"version": 1}, {"version": 2}, {"version": 3}):
        check_file_version(content, Path("a.toml"), newest=3)
    with pytest.raises(InvalidInput, match=r"a\.toml has version 4, and discreet \S+ reads versions 1 to 3\."):
        check_file_version({"version": 4}, Path("a.toml"), newest=3)


def test_a_policy_has_a_version_and_one_of_before_is_read(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    now = ClientFolder.open(tmp_path / "client-0").policy
    edit_policy(tmp_path / "client-0", "version = 1              # of the form of this file\n", "")
    assert ClientFolder.open(tmp_path / "client-0").policy == now


def test_a_newer_policy_is_refused_for_its_version_and_not_for_its_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_site(tmp_path, PLAIN)
    edit_policy(tmp_path / "client-0", "version = 1 ", 'moon = "full"\nversion = 2 ')
    with pytest.raises(InvalidInput, match=NEWER):
        ClientFolder.open(tmp_path / "client-0")
    assert cli.run(["deploy", "client", str(tmp_path / "client-0")]) == 2
    assert "policy.toml has version 2" in capsys.readouterr().err


def test_a_newer_app_folder_is_refused_and_one_of_before_is_read(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    path, now = site.app / "deployment.toml", site.deployment
    assert "version = 1\n" in path.read_text()
    path.write_text(path.read_text().replace("version = 1\n", ""))
    assert Deployment.open(site.app) == now
    path.write_text(f'version = 2\nmoon = "full"\n{path.read_text()}')
    with pytest.raises(InvalidInput, match=NEWER):
        Deployment.open(site.app)


def test_a_newer_ledger_is_refused_unread_and_unchanged_and_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    header = to_plain(OpenEntry(mode="plan", budgets=(BUDGET,)))
    Log.create(path, {**header, "version": 2, "moon": "full"})
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match=NEWER):
        Ledger.open(path)
    assert path.read_bytes() == before


def test_a_ledger_says_its_version_on_its_first_line(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger.jsonl", [BUDGET])
    assert json.loads((tmp_path / "ledger.jsonl").read_text().splitlines()[0])["version"] == 1


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    text = PLAIN.replace('engine = { kind = "flower", timeout = 60, patience = 4 }', "")
    assert cli.run(["run", str(write_experiment(folder, text)), "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished_run, tmp_path / "run")
    return tmp_path / "run"


def rewrite_version(run: Path, version: int | None) -> None:
    content = json.loads((run / "run.json").read_text())
    content.pop("version")
    (run / "run.json").write_text(json.dumps(content if version is None else {**content, "version": version}))


def test_a_run_directory_has_a_version_and_one_of_before_is_read(run: Path) -> None:
    assert json.loads((run / "run.json").read_text())["version"] == 1
    rewrite_version(run, None)
    assert RunRecord.open(run).identity.version == 1
    assert read_run(run).guarantees


def test_a_newer_run_directory_is_refused_by_every_command_that_reads_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite_version(run, 2)
    with pytest.raises(InvalidInput, match=NEWER):
        RunRecord.open(run)
    for command in (["report", str(run)], ["run", "--resume", str(run)], ["export", str(run), "--to", "safetensors"]):
        capsys.readouterr()
        assert cli.run(command) == 2, command
        assert "run.json has version 2" in capsys.readouterr().err, command
