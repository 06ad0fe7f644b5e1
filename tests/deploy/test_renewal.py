"""What `discreet deploy renew` replaces, what it leaves, and that no crash leaves half of it."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509

from discreet.cli import main as cli
from discreet.deploy import certificates, renewal
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import Authority, check_certificates
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.deploy.deployment_lock import lock_deployment
from discreet.deploy.file_switch import SWITCH, finish_switch, replace_files
from discreet.deploy.renewal import renew_certificate
from discreet.durable_files import OWNER
from discreet.errors import InvalidInput
from tests.deploy.example_sites import PLAIN, copy_site

RENEWED = {"server/server.crt", "server/server.tls.key"}
AUTHORITY = {"server/ca.crt", "server/ca.key", "app/ca.crt"}


def files(site: DeploymentFolder) -> dict[str, bytes]:
    """All files of a deployment except lock files, which contain process ids."""
    paths = [path for path in site.folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path.relative_to(site.folder).as_posix(): path.read_bytes() for path in paths}


def changed_files(site: DeploymentFolder, before: dict[str, bytes]) -> set[str]:
    return {name for name, _ in files(site).items() ^ before.items()}


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_only_the_certificate_and_its_key_are_replaced_and_the_authority_signs_them(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    before = files(site)
    renewed = renew_certificate(site)
    assert not renewed.is_new_authority
    assert changed_files(site, before) == RENEWED
    check_certificates(site.server)
    own = load(site.server / "server.crt")
    own.verify_directly_issued_by(load(site.app / "ca.crt"))
    assert own.not_valid_after_utc == renewed.expires.replace(microsecond=0)
    hosts = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert hosts.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(each) for each in hosts.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_a_new_authority_also_replaces_the_one_that_clients_have(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    before, digest = files(site), AppFolder.open(site.app).digest
    assert renew_certificate(site, new_authority=True).is_new_authority
    assert changed_files(site, before) == RENEWED | AUTHORITY
    load(site.server / "server.crt").verify_directly_issued_by(load(site.app / "ca.crt"))
    assert AppFolder.open(site.app).digest == digest
    ClientNode.open(tmp_path / "client-0", lambda line: None).close()  # its owner has nothing to agree to


def test_a_process_that_finds_a_change_waits_until_another_one_has_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, it could remove the files of the next change before they are at their places."""
    remove, second = shutil.rmtree, Thread(target=replace_files, args=(tmp_path, tmp_path, {"b": (b"2", OWNER)}))
    waited = list[bool]()

    def remove_later(path: Path, *, ignore_errors: bool) -> None:
        if path.name == SWITCH and not waited:
            second.start()
            second.join(0.3)
            waited.append(second.is_alive())
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", remove_later)
    (tmp_path / SWITCH).mkdir()
    (tmp_path / SWITCH / "a").write_text("1")
    finish_switch(tmp_path, tmp_path)
    second.join()
    assert waited == [True]
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1", "2"]


def test_a_certificate_never_outlives_its_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = copy_site(tmp_path, PLAIN)
    monkeypatch.setattr(certificates, "YEARS", 30)
    renew_certificate(site)
    assert load(site.server / "server.crt").not_valid_after_utc == load(site.app / "ca.crt").not_valid_after_utc


def test_an_authority_that_ends_within_a_year_is_renewed_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = copy_site(tmp_path, PLAIN)
    left = load(site.app / "ca.crt").not_valid_after_utc - datetime.now(UTC)
    monkeypatch.setattr(renewal, "ENDS_SOON", left - timedelta(days=1))
    assert not renew_certificate(site).is_new_authority
    monkeypatch.setattr(renewal, "ENDS_SOON", left + timedelta(days=1))
    assert renew_certificate(site).is_new_authority


def test_a_certificate_is_not_renewed_while_the_server_runs(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    before = files(site)
    with lock_deployment(site), pytest.raises(InvalidInput, match="is already running as process"):
        renew_certificate(site)
    assert changed_files(site, before) == set()


@pytest.mark.parametrize("damage", ["missing", "damaged", "another"])
def test_without_the_authoritys_key_only_a_new_authority_is_possible(tmp_path: Path, damage: str) -> None:
    site = copy_site(tmp_path, PLAIN)
    key = site.server / "ca.key"
    match damage:
        case "missing":
            key.unlink()
        case "damaged":
            key.write_text("no key")
        case "another":
            key.write_bytes(Authority.create().files()["ca.key"][0])
    before = files(site)
    with pytest.raises(InvalidInput, match="create a new authority with --authority"):
        renew_certificate(site)
    assert changed_files(site, before) == set()
    renew_certificate(site, new_authority=True)
    check_certificates(site.server)


def test_the_command_says_what_clients_have_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = copy_site(tmp_path, PLAIN)
    assert cli.run(["deploy", "renew", str(site.folder)]) == 0
    said = capsys.readouterr().out
    assert "it is valid until 20" in said
    assert "ca.crt" not in said
    assert cli.run(["deploy", "renew", str(site.folder), "--authority"]) == 0
    assert f"hand {site.app / 'ca.crt'} to each client" in capsys.readouterr().out


def test_a_folder_that_is_no_deployment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["deploy", "renew", str(tmp_path)]) == InvalidInput.exit_code
    assert "is not a deployment" in capsys.readouterr().err


def test_a_kill_at_any_file_operation_leaves_all_old_files_or_all_new_ones(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.deploy.renewal_crashes", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    found = json.loads(ran.stdout)
    assert (found["problems"], found["last"]) == ([], 0), ran.stderr
    assert min(found["kept"], found["renewed"]) >= 5
    assert found["kept"] + found["renewed"] == found["killed"]
