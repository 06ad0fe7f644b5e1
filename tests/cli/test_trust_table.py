"""Which command runs code that an experiment names, and when: the table of docs/guides/trust.md, tried out."""

import re
import shutil
from pathlib import Path

import pytest

from discreet.cli.main import run
from tests.cli.conftest import Discreet
from tests.cli.test_main import TREE, click
from tests.small_experiment import SMALL

ASKED, THIS_CALL, POLICY, NEVER, NO_EXPERIMENT = (
    "after `--trust`, `discreet trust` or a yes",
    "after `--trust` on this very command",
    "after the owner allows it in `policy.toml`",
    "never",
    "never: it reads no experiment",
)
WHEN = {  # a new command must be listed here, and in the guide
    "run": ASKED,
    "compare": ASKED,
    "tune": ASKED,
    "audit": ASKED,
    "deploy init": ASKED,
    "deploy add": ASKED,
    "deploy revoke": ASKED,
    "deploy submit": ASKED,
    "deploy simulate": ASKED,
    "predict": ASKED,
    "export": ASKED,
    "plan": THIS_CALL,
    "deploy client": POLICY,
    "tradeoff promise": NEVER,
    "trust": NEVER,
    "report": NEVER,
    "verify": NEVER,
    "ledger show": NEVER,
    "ledger verify": NEVER,
    "ledger restate": NEVER,
    "deploy enroll": NEVER,
    "deploy accept": NEVER,
    "deploy server": NEVER,
    "deploy renew": NEVER,
    "deploy status": NEVER,
    **dict.fromkeys(("init", "demo", "algorithms", "schema", "ledger create"), NO_EXPERIMENT),
    **dict.fromkeys(("data check", "data get", "data list"), NO_EXPERIMENT),
    **dict.fromkeys((f"tradeoff {name}" for name in ("ldp", "epochs", "clients", "cohort", "sam")), NO_EXPERIMENT),
    "tradeoff iterations": NO_EXPERIMENT,
    **dict.fromkeys((f"account {name}" for name in ("gaussian", "laplace", "skellam", "averaging")), NO_EXPERIMENT),
    **dict.fromkeys((f"account {n}" for n in ("discrete-gaussian", "zcdp", "randomised-response")), NO_EXPERIMENT),
}
LINES = {  # each would run code of net.py if nothing prevented it
    "run": "run mine.toml --out another",
    "compare": "compare mine.toml --seeds 1 --out table",
    "tune": "tune mine.toml --out search",
    "audit": "audit mine.toml",
    "predict": "predict tabled rows.csv",
    "export": "export tabled --to torchscript",
    "plan": "plan mine.toml",
    "tradeoff promise": "tradeoff promise mine.toml",
    "trust": "trust mine.toml",
    "report": "report first",
    "verify": "verify first",
    "ledger show": "ledger show first/ledger.jsonl",
    "ledger verify": "ledger verify first/ledger.jsonl",
    "ledger restate": "ledger restate first/ledger.jsonl",
    "deploy init": "deploy init other mine.toml",
    "deploy submit": "deploy submit site",
    "deploy simulate": "deploy simulate site",
    "deploy enroll": "deploy enroll client-0 --app site/app --out node",
    "deploy accept": "deploy accept enrolled",
    "deploy client": "deploy client enrolled",
    "deploy server": "deploy server site",  # stops at once, since no client has handed in its card
    "deploy status": "deploy status site",
    "deploy renew": "deploy renew site",
    "deploy add": "deploy add site west=300",
    "deploy revoke": "deploy revoke site client-0",
}
NET = """\
from torch import nn
open({mark!r}, "w").close()
def net(task):
    return nn.Linear(64 if task.classes == 10 else 1, task.classes)
def loss(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")
def worst(outputs, targets):
    return {{"worst": float(outputs.min())}}
class Step:
    def step(self, params, mean, state):
        return {{name: value + mean[name] for name, value in params.items()}}, state
"""
MINE = (
    SMALL.replace("rounds = 4", "rounds = 2")
    .replace('"linear"', '"net.py:net"')
    .replace("evaluate_every = 2", 'loss = "net.py:loss"\nmetric = "net.py:worst"\n')
    + 'server = { kind = "net.py:Step" }\n'
)

TABLED = """\
rounds = 1
model = { kind = "net.py:net" }
task = { kind = "csv", path = "rows.csv", client = "who", label = "y", ranges = { x = { min = 0, max = 1 }, \
y = { values = [0, 1] } } }
algorithm = { recipe = "fedavg", learning_rate = 0.1, batch_size = 2 }
"""


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment that names code everywhere, a run of it, a deployment and an enrolled client."""
    folder = tmp_path_factory.mktemp("mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "net.py").write_text(NET.format(mark=str(folder / "it-ran")))
        (folder / "mine.toml").write_text(MINE)
        assert run(["run", "mine.toml", "--out", "first", "--trust", "--json"]) == 0
        (folder / "rows.csv").write_text("who,x,y\n" + "a,0.5,1\nb,0.2,0\n" * 5)
        (folder / "tabled.toml").write_text(TABLED)
        assert run(["run", "tabled.toml", "--out", "tabled", "--trust", "--json"]) == 0
        assert run(["deploy", "init", "site", "mine.toml", "--trust", "--json"]) == 0
        assert run(["deploy", "enroll", "client-0", "--app", "site/app", "--out", "enrolled", "--json"]) == 0
    return folder


def test_every_command_is_listed() -> None:
    assert set(WHEN) == {path for path, command in TREE.items() if not isinstance(command, click.Group)}
    assert set(LINES) == {path for path, when in WHEN.items() if when != NO_EXPERIMENT}


def test_the_guide_has_the_same_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "guides" / "trust.md").read_text().partition("In Python |")[0]
    shown = {
        name: when
        for names, when in re.findall(r"^\| (`.*?) \| (.*?) \|$", page, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", names)
    }
    assert shown == WHEN


@pytest.mark.parametrize("path", LINES)
def test_no_command_runs_code_that_was_not_trusted(
    path: str, pattern: Path, tmp_path: Path, discreet: Discreet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(pattern)
    mark = pattern / "it-ran"
    mark.unlink(missing_ok=True)
    ran = discreet(LINES[path])
    assert not mark.exists()
    if WHEN[path] in (ASKED, THIS_CALL):
        assert ran.code == 2
        assert "would run net.py:" in ran.err
    for made in ("another", "table", "other", "node"):
        shutil.rmtree(pattern / made, ignore_errors=True)
