"""Containers and systemd units of a deployment: hardened, without secrets, and complete for every client."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from discreet.cli import main as cli
from discreet.deploy.deployment import DeclaredClient, Deployment
from discreet.deploy.service_files import UNIT_FILES, compose_text, write_compose, write_units
from tests.deploy.example_sites import PLAIN, copy_site, write_experiment

KEY = "ab" * 32
SECONDS = 60
UNITS = ("discreet-server@.service", "discreet-node@.service")
TEMPLATES = Path(__file__).parents[2] / "src" / "discreet" / "deploy" / "service_templates"


def parse_yaml(text: str) -> Any:
    return pytest.importorskip("yaml").safe_load(text)


def deployment(*names: str) -> Deployment:
    clients = tuple(DeclaredClient(name=name, examples=100) for name in names)
    return Deployment(address="fl.example.org:8741", server_key=KEY, clients=clients)


def unit_settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line))


def test_init_writes_both_when_it_is_asked_to_and_nothing_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write_experiment(tmp_path, PLAIN))
    assert cli.run(["deploy", "init", str(tmp_path / "plain"), file]) == 0
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == ["app", "server"]
    capsys.readouterr()
    assert cli.run(["deploy", "init", str(tmp_path / "both"), file, "--compose", "--systemd"]) == 0
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["app", "containers", "server", "systemd"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"Wrote {tmp_path / 'both/containers'}" in said
    assert f"Wrote {tmp_path / 'both/systemd'}. As root, install its files as" in said
    assert f"put the wheels of discreet[flower] into {tmp_path / 'both/containers'}/wheels" in said
    assert "docs/" not in said  # an installed package has no guides


def test_no_file_names_a_guide_that_an_installed_package_lacks(tmp_path: Path) -> None:
    for folder in (write_compose(tmp_path, deployment("north")), write_units(tmp_path)):
        assert not [path for path in folder.iterdir() if "docs/" in path.read_text(encoding="utf-8")]


def test_every_client_and_the_server_have_a_service_of_their_own_profile() -> None:
    compose = parse_yaml(compose_text("hospitals", deployment("north", "server", "no", "x-1")))
    assert compose["name"] == "hospitals"
    assert list(compose["services"]) == ["server", "node-north", "node-server", "node-no", "node-x-1"]
    assert all(service["profiles"] == [name] for name, service in compose["services"].items())
    assert compose["services"]["server"]["ports"] == ["8741:8741"]
    assert all("ports" not in service for name, service in compose["services"].items() if name != "server")


@pytest.mark.parametrize(("folder", "project"), [("Hospitals 2026", "hospitals-2026"), ("__", "deployment")])
def test_the_project_has_a_name_that_compose_accepts(folder: str, project: str) -> None:
    assert parse_yaml(compose_text(folder, deployment("north")))["name"] == project


def test_every_container_is_locked_down() -> None:
    for service in parse_yaml(compose_text("hospitals", deployment("north", "south")))["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["user"] == "${DISCREET_USER:-10001:10001}"
        assert [mount.partition(":")[0] for mount in service["tmpfs"]] == ["/tmp"]
        assert "privileged" not in service
        assert service["healthcheck"]["test"][0] == "CMD"
        assert "http://127.0.0.1:9464/health" in service["healthcheck"]["test"][-1]
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "5"}
        assert service["restart"] == "unless-stopped"


def test_only_keys_ledgers_and_the_servers_folder_can_be_written_and_no_missing_folder_is_made() -> None:
    services = parse_yaml(compose_text("hospitals", deployment("north")))["services"]
    mounts = {name: service["volumes"] for name, service in services.items()}
    writable = {name: [each["target"] for each in list_ if not each.get("read_only")] for name, list_ in mounts.items()}
    assert writable == {"server": ["/srv/deployment/server"], "node-north": ["/srv/node", "/srv/ledgers"]}
    assert all(each["bind"] == {"create_host_path": False} for list_ in mounts.values() for each in list_)
    assert "../server" not in [each["source"] for each in mounts["node-north"]]


def test_the_health_check_of_a_container_is_a_program_that_works() -> None:
    program = parse_yaml(compose_text("hospitals", deployment("north")))["services"]["server"]["healthcheck"]["test"][
        -1
    ]
    compile(program, "healthcheck", "exec")


def test_images_take_in_wheels_only_and_run_as_a_user_without_rights(tmp_path: Path) -> None:
    folder = write_compose(tmp_path, deployment("north"))
    assert sorted(path.name for path in folder.iterdir()) == [".dockerignore", "Dockerfile", "compose.yaml"]
    kept = [line for line in (folder / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert kept == ["*", "!wheels"]
    steps = (folder / "Dockerfile").read_text().splitlines()
    assert [step for step in steps if step.startswith(("COPY", "ADD"))] == [
        "COPY wheels /wheels",
        "COPY --from=programs /opt/discreet /opt/discreet",
    ]
    assert "USER 10001:10001" in steps
    assert any("--no-index" in step for step in steps)
    targets = [step.rpartition(" AS ")[2] for step in steps if step.startswith("FROM")]
    assert targets == ["programs", "base", "server", "node"]
    builds = parse_yaml((folder / "compose.yaml").read_text())["services"]
    assert {service["build"]["target"] for service in builds.values()} == {"server", "node"}


def test_nothing_that_is_written_contains_a_key(tmp_path: Path) -> None:
    site = copy_site(tmp_path, PLAIN)
    folders = (write_compose(site.folder, site.deployment), write_units(site.folder))
    texts = "".join(path.read_text() for folder in folders for path in folder.iterdir())
    secrets = [path.read_text().strip() for path in site.server.glob("*.key")]
    assert secrets
    assert not any(secret in texts for secret in secrets)
    assert "PRIVATE KEY" not in texts


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_hardened_and_starts_again_but_not_for_ever(unit: str) -> None:
    settings = unit_settings((TEMPLATES / unit).read_text())
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectHome", "RestrictNamespaces"):
        assert settings[name] == "yes", name
    assert settings["ProtectSystem"] == "strict"
    assert settings["ReadWritePaths"] == "/srv/discreet/%i"
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["User"] == "discreet"
    assert settings["UMask"] == "0077"
    assert settings["Restart"] == "on-failure"
    assert settings["StartLimitBurst"] == "5"
    assert settings["LogNamespace"] == "discreet"


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_starts_a_command_that_exists(unit: str) -> None:
    words = unit_settings((TEMPLATES / unit).read_text())["ExecStart"].split()
    command, options = words[1:3], [word for word in words if word.startswith("--")]
    assert cli.run([*command, "--help"]) == 0
    assert options == ["--health"]


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_finds_no_fault_in_a_unit_and_calls_its_exposure_low(tmp_path: Path, unit: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    text = (TEMPLATES / unit).read_text()
    path = tmp_path / unit.replace("@", "@north")
    path.write_text(text.replace("/opt/discreet/bin/discreet", shutil.which("true") or "/bin/true"))
    for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=25", "--no-pager"]):
        ran = subprocess.run(
            ["systemd-analyze", *command, str(path)], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        ours = [line for line in ran.stderr.splitlines() if unit.partition("@")[0] in line]
        assert (ran.returncode, ours) == (0, []), ran.stdout[-2000:] + ran.stderr


def test_every_file_of_the_units_has_its_place(tmp_path: Path) -> None:
    folder = write_units(tmp_path)
    assert {path.name for path in folder.iterdir()} == {*UNIT_FILES, "README"}
    readme = (folder / "README").read_text()
    assert all(f"install -D -m 0644 {name} {place}\n" in readme for name, place in UNIT_FILES.items())


@pytest.mark.deploy
def test_a_container_engine_accepts_the_compose_file(tmp_path: Path) -> None:
    engine = next((name for name in ("docker", "podman") if shutil.which(name)), None)
    if engine is None or any(
        subprocess.run([engine, *check], capture_output=True, timeout=SECONDS).returncode
        for check in (["info"], ["compose", "version"])
    ):
        pytest.skip("no container runtime is running here")
    folder = write_compose(tmp_path, deployment("north"))
    for profile in ("server", "node-north"):
        command = [engine, "compose", "--file", str(folder / "compose.yaml"), "--profile", profile, "config", "--quiet"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ran.returncode == 0, ran.stderr
