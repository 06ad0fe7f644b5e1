"""`discreet trust` and --trust: code that a file names runs only for a user who has asked for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import discreet as package
from discreet import api
from discreet.data.tasks.digits import Digits
from discreet.errors import InvalidInput
from discreet.models.networks.user_model import UserModel
from discreet.trust import UntrustedCode
from tests.cli.conftest import Discreet
from tests.small_experiment import SMALL

SOURCE = str(Path(package.__file__).parents[1])
NET = "from torch import nn\nopen({mark!r}, 'w').close()\ndef net(task):\n    return nn.Linear(64, task.classes)\n"


@pytest.fixture(autouse=True)
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that net.py writes when it runs; the experiment mine.toml names net.py."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "it-ran"
    (tmp_path / "net.py").write_text(NET.format(mark=str(path)))
    (tmp_path / "mine.toml").write_text(SMALL.replace('kind = "linear"', 'kind = "net.py:net"'))
    return path


def test_a_run_is_refused_in_one_sentence_until_its_code_is_trusted(discreet: Discreet, mark: Path) -> None:
    refused = discreet("run mine.toml --out first")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "would run net.py:net from" in refused.err
    assert "add --trust to run it this once, or remember it with: discreet trust mine.toml" in refused.err
    assert not mark.exists()
    assert not Path("first").exists()
    assert discreet("run mine.toml --out first --trust").code == 0
    assert mark.exists()
    assert discreet("run mine.toml --out second").code == 2  # --trust remembers nothing


def test_trusting_shows_the_files_runs_none_and_lasts_until_they_change(discreet: Discreet, mark: Path) -> None:
    shown = discreet("trust mine.toml")
    assert shown.code == 0
    assert "net.py:net" in shown.out
    assert "4 lines, owned by" in shown.out
    assert not mark.exists()
    (code,) = discreet("trust mine.toml --json").json["trusted"]
    (entry,) = discreet("trust --list --json").json["trusted"]
    assert code["sha256"] == code["files"][0]["sha256"] == entry["sha256"]
    assert discreet("run mine.toml --out first").code == 0
    Path("net.py").write_text(Path("net.py").read_text() + "\n")
    assert discreet("run mine.toml --out second").code == 2


def test_a_python_file_is_trusted_by_its_name_and_forgotten_again(discreet: Discreet) -> None:
    assert discreet("trust net.py").code == 0
    assert discreet("run mine.toml --out first").code == 0
    assert "net.py" in discreet("trust --list").out
    assert "No longer trusted" in discreet("trust --forget net.py").out
    assert "Nothing is trusted" in discreet("trust --list").out
    assert discreet("run mine.toml --out second").code == 2


@pytest.mark.parametrize("line", ["trust", "trust --list mine.toml", "trust --list --forget net.py"])
def test_one_thing_is_asked_for_at_a_time(line: str, discreet: Discreet) -> None:
    assert "needs a FILE, --list or --forget" in discreet(line).err


def test_an_experiment_without_code_of_its_own_needs_no_trust(discreet: Discreet) -> None:
    Path("small.toml").write_text(SMALL)
    assert "nothing to trust" in discreet("trust small.toml").out
    assert discreet("trust --list --json").json["trusted"] == []


@pytest.mark.parametrize("answer", [True, False])
def test_in_a_terminal_the_user_is_asked(
    answer: bool, discreet: Discreet, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.cli.trust_options.is_interactive", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda text, **more: answer)
    ran = discreet("run mine.toml --out first --json")
    assert ran.code == (0 if answer else 2)
    assert mark.exists() is answer
    assert "The experiment would run net.py:net from" in ran.err


def test_a_resumed_run_asks_again(discreet: Discreet, mark: Path) -> None:
    discreet("run mine.toml --out first --trust --set seed=3")
    assert discreet("trust first").code == 0
    assert discreet("trust --forget net.py").code == 0
    Path("first/guarantee.json").unlink()  # as if it had been stopped
    mark.unlink()
    refused = discreet("run --resume first")
    assert refused.code == 2
    assert "would run net.py:net" in refused.err
    assert "discreet trust first" in refused.err
    assert not mark.exists()
    discreet("run --resume first --trust")
    assert mark.exists()


def test_loading_a_run_runs_no_code_until_its_model_is_wanted(discreet: Discreet, mark: Path) -> None:
    discreet("run mine.toml --out first --trust")
    mark.unlink()
    run = api.load("first")
    assert run.guarantee is not None
    assert run.history
    with pytest.raises(UntrustedCode, match=r"discreet\.load\(directory, trust=True\)"):
        _ = run.model
    assert not mark.exists()
    assert api.load("first", trust=True).model is not None
    assert mark.exists()
    discreet("trust first")
    assert api.load("first").model is not None


def test_a_model_is_not_built_by_other_code_than_it_was_trained_with(discreet: Discreet, mark: Path) -> None:
    discreet("run mine.toml --out first --trust")
    net = Path("net.py").read_text()
    Path("net.py").write_text(f"{net}\n# another model\n")
    run = api.load("first", trust=True)
    assert run.guarantee is not None
    with pytest.raises(InvalidInput, match=r"net\.py has changed since the run in first was trained"):
        _ = run.model
    Path("net.py").write_text(net)
    assert api.load("first", trust=True).model is not None


@pytest.mark.parametrize("options", ["-m discreet", "-um discreet", "-mdiscreet", "-m discreet.__main__"])
def test_python_m_discreet_takes_no_module_from_the_current_folder(options: str, tmp_path: Path) -> None:
    """As `discreet` itself: another person's folder may hold a torch.py."""
    marked = [tmp_path / f"ran-{name}" for name in ("torch", "numpy", "typer", "pydantic", "difflib")]
    for path in marked:
        (tmp_path / f"{path.name.removeprefix('ran-')}.py").write_text(f"open({str(path)!r}, 'w').close()\n1 / 0\n")
    command = [sys.executable, *options.split(), "account", "gaussian", "--noise-multiplier", "1"]
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": SOURCE}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert not [path for path in marked if path.exists()]


def test_a_plan_runs_no_code_and_says_what_it_leaves_out(discreet: Discreet, mark: Path) -> None:
    Path("small.toml").write_text(SMALL)
    discreet("trust mine.toml")  # that it is remembered makes no difference to a plan
    known, plan = discreet("plan small.toml --json").json, discreet("plan mine.toml --json").json
    assert not mark.exists()
    (sentence,) = plan["unknown"]
    assert sentence.startswith("net.py:net was not run, so the model's size, the bytes and the noise-to-signal ratio")
    missing = ("parameters", "noise_to_signal", "bits", "bytes")
    assert [plan[name] for name in missing] == [None] * 4
    computed = ("epsilon", "noise_multiplier", "affordable_rounds", "clients", "examples", "rounds")
    assert {name: plan[name] for name in computed} == {name: known[name] for name in computed}
    assert known["unknown"] == []
    page = discreet("plan mine.toml").out
    assert "net.py:net was not run" in page
    assert "Noise multiplier" in page
    assert not mark.exists()


def test_a_plan_with_trust_knows_everything_that_a_model_of_ones_own_decides(discreet: Discreet, mark: Path) -> None:
    Path("small.toml").write_text(SMALL)
    known, plan = discreet("plan small.toml --json").json, discreet("plan mine.toml --json --trust").json
    assert mark.exists()
    numbers = ("parameters", "noise_to_signal", "bits", "bytes", "epsilon", "unknown")
    assert {name: plan[name] for name in numbers} == {name: known[name] for name in numbers}


@pytest.mark.parametrize("setting", ["loss=net.py:net", "metric=net.py:net", 'metric={kind="net.py:net"}'])
def test_a_loss_or_metric_of_ones_own_changes_no_number_of_a_plan(setting: str, discreet: Discreet, mark: Path) -> None:
    Path("small.toml").write_text(SMALL)
    known, plan = discreet("plan small.toml --json").json, discreet("plan small.toml --json --set", setting).json
    assert not mark.exists()
    assert plan.pop("unknown") == ["net.py:net was not run and not checked; no number of a plan depends on it."]
    assert {name: plan[name] for name in plan if name not in ("guarantees", "advice")} == {
        name: known[name] for name in plan if name not in ("guarantees", "advice")
    }


@pytest.mark.parametrize(
    "setting",
    ['algorithm.server={kind="net.py:net"}', 'task={kind="net.py:net"}', 'algorithm={recipe="net.py:net"}'],
)
def test_a_plan_whose_price_depends_on_own_code_is_refused(setting: str, discreet: Discreet, mark: Path) -> None:
    Path("small.toml").write_text(SMALL)
    for line in ("plan small.toml", "tradeoff promise small.toml"):
        refused = discreet(f"{line} --set", setting)
        assert refused.code == 2
        assert "would run net.py:net from" in refused.err
        assert "discreet plan with --trust" in refused.err
        assert not mark.exists()


def test_integer_noise_depends_on_the_size_of_a_model_that_was_not_run(discreet: Discreet, mark: Path) -> None:
    own = 'algorithm={recipe="ddp_fedavg", learning_rate=1.0, clip_norm=0.5, sampling_rate=0.1, noise="skellam"}'
    refused = discreet("plan mine.toml --set", own)
    assert refused.code == 2
    assert "What a sum of integers reveals depends on the model's size, and net.py:net was not run" in refused.err
    assert not mark.exists()


def test_the_sliders_need_the_size_of_the_model(discreet: Discreet, mark: Path) -> None:
    refused = discreet("plan mine.toml --interactive --no-browser")
    assert refused.code == 2
    assert "The page needs the model's size. net.py:net was not run" in refused.err
    assert not mark.exists()


def test_the_price_of_a_promise_is_known_without_the_model(discreet: Discreet, mark: Path) -> None:
    ran = discreet("tradeoff promise mine.toml --epsilon 1 --json").json
    assert ran["costs"][0]["noise_multiplier"] > 0
    assert ran["costs"][0]["bytes_at_these_rounds"] == {"client_expected": None, "all_total": None}
    assert "net.py:net was not run" in ran["notes"][1]
    assert "net.py:net was not run" in discreet("tradeoff promise mine.toml --epsilon 1").out
    assert not mark.exists()


def test_a_record_that_names_a_file_is_not_code_that_the_caller_passes(mark: Path) -> None:
    algorithm = package.fedavg(learning_rate=0.1, batch_size=8, epochs=1)
    with pytest.raises(UntrustedCode, match="import it yourself and pass the object"):
        package.train(UserModel(kind="net.py:net"), Digits(clients=3), rounds=1, algorithm=algorithm)
    assert not mark.exists()
