"""Accounting needs no torch: what is imported without the extras, and how a missing one is named."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from discreet.extras import EXTRAS, import_library

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "discreet"
WITHOUT = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {libraries}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
"""
TORCH_FREE = ("algorithms.recipes", "experiment.configuration", "experiment.promise", "privacy", "planning.theory")


def run_without_extras(program: str, hidden: Iterable[str] = EXTRAS) -> subprocess.CompletedProcess[str]:
    hide = WITHOUT.format(libraries=sorted(hidden))
    return subprocess.run([sys.executable, "-c", hide + program], capture_output=True, text=True)


def run_command(*words: str, hidden: Iterable[str] = EXTRAS) -> subprocess.CompletedProcess[str]:
    return run_without_extras(f"from discreet.cli.main import run; sys.exit(run({list(words)}))", hidden)


def test_rooms_of_accounting_are_imported_without_any_extra():
    program = f"""
import importlib, pkgutil
for room in {TORCH_FREE}:
    package = importlib.import_module("discreet." + room)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
"""
    done = run_without_extras(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "--version",
        "account gaussian --noise-multiplier 1 --sampling-rate 0.01 --steps 100 --delta 1e-5 --card",
        "account skellam --variance 100 --l2-sensitivity 10 --dimension 100 --steps 10 --delta 1e-5",
        "algorithms pfl",
        "algorithms",
        "tradeoff clients --clients 10,100",
        "tradeoff cohort --clients 10,50",
        "ledger --help",
        "init --help",
    ],
)
def test_a_command_of_accounting_runs_without_any_extra(command):
    done = run_command(*command.split())
    assert done.returncode == 0, done.stderr


def test_a_ledger_is_created_and_verified_without_any_extra(tmp_path):
    path = str(tmp_path / "ledger.jsonl")
    done = run_command("ledger", "create", path, "--epsilon", "2", "--delta", "1e-5")
    assert done.returncode == 0, done.stderr
    done = run_command("ledger", "verify", path)
    assert done.returncode == 0, done.stderr


def test_the_card_says_that_no_second_engine_was_asked():
    command = "account gaussian --noise-multiplier 1 --steps 10 --delta 1e-5 --card"
    done = run_command(*command.split())
    assert "discreet[check]" in done.stdout


def test_a_picture_without_matplotlib_names_the_extra_and_a_page_has_the_numbers(tmp_path):
    image, page = tmp_path / "a.png", tmp_path / "a.html"
    command = ["tradeoff", "clients", "--clients", "10,100", "--picture"]
    done = run_command(*command, str(image))
    assert (done.returncode, image.exists()) == (2, False)
    assert "A picture like a.png needs matplotlib, which is not installed." in done.stderr
    assert "pip install 'discreet[report]'" in done.stderr
    assert run_command(*command, str(page)).returncode == 0
    assert "discreet[report]" in page.read_text()
    assert page.read_text().count("<table") == 3


def test_a_run_without_matplotlib_ends_well_and_its_page_has_the_numbers(tmp_path):
    words = ["run", "--set", "rounds=2", "--out", str(tmp_path / "run")]
    done = run_command(*words, hidden=["matplotlib", "PIL"])
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text()
    assert "discreet[report]" in page
    assert "<svg" not in page
    assert "<caption>Accuracy</caption>" in page


PLAN_KEYS = ("rounds", "clients", "examples", "noise_multiplier", "affordable_rounds", "epsilon", "delta", "certified")
TABLE = """
model = { kind = "linear" }
rounds = 5
privacy = { unit = "example", against = "server", epsilon = 2, delta = 1e-4 }
algorithm = { recipe = "pfl", learning_rate = 0.5, clip_norm = 1.0, sampling_rate = 0.1, local_steps = 1 }

[task]
kind = "csv"
path = "visits.csv"
client = "hospital"
label = "ill"
ranges = { age = { min = 0, max = 100 }, ill = { values = ["no", "yes"] } }
"""


def write_table(folder: Path) -> str:
    rows = [f"{'north' if row % 3 else 'south'},{row % 90},{'yes' if row % 2 else 'no'}" for row in range(100)]
    (folder / "visits.csv").write_text("\n".join(["hospital,age,ill", *rows]) + "\n")
    (folder / "experiment.toml").write_text(TABLE.lstrip())
    return str(folder / "experiment.toml")


def test_a_plan_without_torch_has_the_numbers_of_a_plan_with_it(tmp_path):
    for words in (["plan", "--json"], ["plan", write_table(tmp_path), "--json"]):
        done = run_command(*words)
        assert done.returncode == 0, done.stderr
        without = json.loads(done.stdout)
        with_torch = json.loads(subprocess.run([sys.executable, "-m", "discreet", *words], capture_output=True).stdout)
        assert {key: without[key] for key in PLAN_KEYS} == {key: with_torch[key] for key in PLAN_KEYS}
        assert without["parameters"] is None
        assert "discreet[train]" in without["unknown"][0]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["task.partition={kind='dirichlet', alpha=1.0}"], "Counting the examples of the partition 'dirichlet' needs"),
        (["task={kind='mnist', clients=10}"], "Counting the examples of the task 'mnist' needs torch"),
        (
            ["algorithm={recipe='ddp_fedavg', noise='skellam', learning_rate=1.0, clip_norm=1.0, sampling_rate=0.1}"],
            "depends on the model's size, which needs torch",
        ),
    ],
)
def test_a_plan_that_needs_torch_says_what_for(settings, sentence):
    done = run_command("plan", *(word for setting in settings for word in ("--set", setting)))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "discreet[train]" in done.stderr


def test_training_without_torch_names_the_extra_and_exits_with_2():
    done = run_command("run")
    assert done.returncode == 2
    assert done.stderr == "Error: This needs torch, which is not installed. Install it: pip install 'discreet[train]'\n"


def test_a_deployment_names_the_one_extra_that_has_all_it_needs():
    done = run_command("deploy", "status", ".")
    assert done.returncode == 2
    assert "pip install 'discreet[flower]'" in done.stderr


def test_a_python_program_without_torch_is_told_the_extra():
    done = run_without_extras("import discreet; discreet.train")
    assert "MissingExtra: discreet.train needs torch, which is not installed." in done.stderr


def test_a_library_of_no_extra_keeps_its_own_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        import_library("no_such_library")


def test_every_extra_that_is_named_exists_and_has_its_library():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        name = library.replace("_", "-")
        assert any(line.startswith((name, f"python-{name}")) for line in extras[extra]), library


def test_the_core_depends_on_no_library_of_an_extra():
    core = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    heavy = {*(library.replace("_", "-") for library in EXTRAS), "scipy", "scikit-learn"}
    assert not [line for line in core if line.startswith(tuple(heavy))]


def runtime_names(tree: ast.AST) -> Iterator[ast.Name]:
    """Yield every name that is evaluated when the code runs: not those in annotations and type aliases."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.arg):
            continue
        if isinstance(node, ast.AnnAssign):
            is_alias = isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias"
            if node.value is not None and not is_alias:
                yield from runtime_names(ast.Expression(node.value))
            continue
        if isinstance(node, ast.Name):
            yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        yield from runtime_names(node)


def test_the_lazy_name_of_a_tensor_stands_in_annotations_only():
    used = [
        f"{path.relative_to(PACKAGE)}:{name.lineno}"
        for path in PACKAGE.rglob("*.py")
        if "lazy_torch import" in (text := path.read_text())
        for name in runtime_names(ast.parse(text))
        if name.id == "Tensor"
    ]
    assert not used, "write torch.Tensor there"


def test_a_tensor_in_a_condition_would_be_found():
    names = [name.id for name in runtime_names(ast.parse("def f(x: Tensor) -> Tensor:\n    return type(x) is Tensor"))]
    assert names.count("Tensor") == 1
