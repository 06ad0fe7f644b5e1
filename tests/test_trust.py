"""No code that an experiment names runs before it is trusted, and what was trusted is what runs."""

import json
import py_compile
import stat
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from discreet.durable_files import state_folder
from discreet.errors import InvalidInput
from discreet.trust import CodeFile, OwnCode, Trust, UntrustedCode
from discreet.trust_store import forget, read_trusted, remember, store_path, trust_remembered
from discreet.user_code import find_code, find_file_code, load_object, run_code

NOTHING = Trust.no_code("Ask first.")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that the code in `net.py` writes when it runs."""
    path = tmp_path / "it-ran"
    (tmp_path / "net.py").write_text(f"open({str(path)!r}, 'w').close()\ndef answer():\n    return 1\n")
    return path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a package with a module, both of which write a file when they run, and a module that it imports."""
    folder = tmp_path / "trust_outer"
    folder.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    mark = f"open({str(tmp_path / 'it-ran')!r}, 'w').close()\n"
    (folder / "__init__.py").write_text(mark)
    (folder / "inner.py").write_text(f"{mark}from trust_outer import helper\ndef answer():\n    return helper.VALUE\n")
    (folder / "helper.py").write_text("VALUE = 1\n")
    for name in ("trust_outer", "trust_outer.inner", "trust_outer.helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return "trust_outer.inner"


def test_code_that_is_not_trusted_is_named_and_not_run(tmp_path: Path, mark: Path) -> None:
    code = find_code("net.py:answer", tmp_path)
    with pytest.raises(UntrustedCode) as refused:
        run_code(code, NOTHING)
    assert not mark.exists()
    assert f"This would run net.py:answer from {tmp_path / 'net.py'} (3 lines, owned by " in refused.value.problem
    assert f"sha256 {code.sha256[:12]}…), and you have not trusted it." in refused.value.problem
    assert (refused.value.fix, refused.value.exit_code) == ("Ask first.", 2)
    assert run_code(code, Trust.all_code())() == 1
    assert mark.exists()


def test_finding_a_module_imports_neither_it_nor_the_package_around_it(tmp_path: Path, package: str) -> None:
    code = find_code(f"{package}:answer", tmp_path)
    assert [file.path.name for file in code.files] == ["inner.py", "__init__.py", "helper.py"]
    with pytest.raises(UntrustedCode):
        run_code(code, NOTHING)
    assert not (tmp_path / "it-ran").exists()
    assert "trust_outer" not in sys.modules
    assert run_code(code, Trust.all_code())() == 1
    assert (tmp_path / "it-ran").exists()


@pytest.mark.parametrize("name", ["__init__.py", "inner.py", "helper.py"])
def test_the_digest_of_a_module_covers_every_file_that_it_imports(tmp_path: Path, package: str, name: str) -> None:
    before = find_code(f"{package}:answer", tmp_path).sha256
    file = tmp_path / "trust_outer" / name
    file.write_text(file.read_text() + "# changed\n")
    assert find_code(f"{package}:answer", tmp_path).sha256 != before


def test_the_bytes_that_were_hashed_are_the_bytes_that_run(tmp_path: Path, mark: Path, package: str) -> None:
    """Files that change between the two, and compiled code whose header tells Python not to look at the source."""
    codes = [find_code("net.py:answer", tmp_path), find_code(f"{package}:answer", tmp_path)]
    other = tmp_path / "other.py"
    other.write_text("VALUE = 2\ndef answer():\n    return 2\n")
    for path in (tmp_path / "net.py", tmp_path / "trust_outer" / "inner.py", tmp_path / "trust_outer" / "helper.py"):
        beside = Path(cache_from_source(str(path)))
        py_compile.compile(str(other), str(beside), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        path.write_text(other.read_text())
    assert [run_code(code, Trust.all_code())() for code in codes] == [1, 1]


def test_a_file_alone_has_its_own_sha256_wherever_it_is(tmp_path: Path, mark: Path) -> None:
    code = find_code("net.py:answer", tmp_path)
    assert code.sha256 == code.files[0].sha256
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "renamed.py").write_bytes((tmp_path / "net.py").read_bytes())
    assert find_code("renamed.py:answer", tmp_path / "copy").sha256 == code.sha256


@pytest.mark.parametrize("reference", ["tools.py:run", "tools.py:alias", "subprocess:run", "builtins:exec"])
def test_trust_in_a_function_that_a_file_only_imports_holds_for_its_arguments_alone(
    tmp_path: Path, reference: str
) -> None:
    """Else an experiment could start any program by a file that was trusted for another use of it."""
    (tmp_path / "tools.py").write_text("from subprocess import run\nimport os\nalias = os.system\n")
    harmless, harmful = (
        find_code(reference, tmp_path, {"arguments": {"args": [word]}}) for word in ("true", "touch harm")
    )
    remember([harmless])
    trust = trust_remembered("")
    assert trust.allows(harmless)
    assert not trust.allows(harmful)


def test_remembered_code_runs_until_it_changes(tmp_path: Path, mark: Path) -> None:
    remember([find_code("net.py:answer", tmp_path)])
    assert load_object("net.py:answer", tmp_path, trust_remembered(""))() == 1
    (tmp_path / "net.py").write_text((tmp_path / "net.py").read_text() + "\n")
    with pytest.raises(UntrustedCode):
        load_object("net.py:answer", tmp_path, trust_remembered(""))


def test_the_list_is_the_users_alone_and_in_the_users_folder(tmp_path: Path, mark: Path, state: Path) -> None:
    (entry,) = remember([find_code("net.py:answer", tmp_path)])
    assert store_path() == state / "discreet" / "trusted.json"
    assert stat.S_IMODE(store_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(store_path().parent.stat().st_mode) == 0o700
    assert read_trusted() == [entry]
    assert (entry.path, len(entry.sha256), len(entry.date)) == (str(tmp_path / "net.py"), 64, 10)


def test_a_relative_state_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be a folder of the current directory, which may be that of the experiment."""
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_folder() == tmp_path / ".local" / "state" / "discreet"


def test_code_is_forgotten_by_its_path_or_its_digest(tmp_path: Path, mark: Path) -> None:
    code = find_code("net.py:answer", tmp_path)
    for text in (str(tmp_path / "net.py"), code.sha256[:8]):
        remember([code])
        assert [entry.sha256 for entry in forget(text)] == [code.sha256]
        assert read_trusted() == []
    with pytest.raises(InvalidInput, match="No trusted code has the path or sha256"):
        forget("net.py")


def test_a_damaged_list_is_an_error_and_allows_nothing(tmp_path: Path, mark: Path) -> None:
    store_path().parent.mkdir(parents=True)
    store_path().write_text('[{"sha256": 1}]')
    with pytest.raises(InvalidInput, match=r"can't be read\. Remove it, and trust again"):
        load_object("net.py:answer", tmp_path, trust_remembered(""))
    assert not mark.exists()


def test_the_user_is_asked_once_for_each_code(tmp_path: Path, mark: Path) -> None:
    asked: list[str] = []
    trust = trust_remembered("", lambda code: bool(asked.append(code.reference)) or True)
    for _ in range(3):
        load_object("net.py:answer", tmp_path, trust)
    assert asked == ["net.py:answer"]
    assert read_trusted() == []


def test_trust_in_files_holds_only_if_every_file_is_listed(tmp_path: Path, package: str) -> None:
    code = find_code(f"{package}:answer", tmp_path)
    assert Trust.of_files([file.sha256 for file in code.files]).allows(code)
    assert not Trust.of_files([file.sha256 for file in code.files[1:]]).allows(code)
    assert not Trust.of_files([]).allows(find_code("builtins:exec", tmp_path))


def test_no_file_has_the_digest_of_a_reference(tmp_path: Path) -> None:
    """Somebody who trusts two harmless lines must not have trusted a program that they name."""
    settings = {"arguments": {"command": "touch it-ran"}}
    reference = OwnCode("posix:system", (), settings, is_installed=True)
    lines = f"posix:system\n{json.dumps(settings, sort_keys=True)}"
    (tmp_path / "innocent.py").write_text(lines)
    remember([find_file_code(tmp_path / "innocent.py")])
    assert CodeFile(tmp_path / "innocent.py", lines.encode()).sha256 != reference.sha256
    assert not trust_remembered("Ask first.").allows(reference)


def test_what_a_terminal_would_obey_is_spelt_out(tmp_path: Path) -> None:
    hidden = tmp_path / "esc\x1b[8m\u202e.py"
    hidden.write_text("x = 1\n")
    described = find_file_code(hidden).describe()
    assert "\x1b" not in described
    assert "\\x1b[8m\\u202e.py" in described
    assert str(InvalidInput(f"There is no file {hidden}.")).isprintable()


@pytest.mark.parametrize("code", ["-" * 200_000 + "1", "+".join("1" * 100_000), "\0"], ids=["deep", "long", "zero"])
def test_a_file_that_python_can_not_read_is_described_all_the_same(code: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(code)
    assert find_code("net.py:Net", tmp_path).sha256
