"""The words of cards are in one file for each language; a translation that is not complete is refused."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet import words
from discreet.cli.main import run
from discreet.errors import InvalidInput
from discreet.privacy.release import describe_clients
from discreet.privacy.wording import describe_relation, describe_unit, join_names, sentence
from discreet.words import fill

ENGLISH = words.read_templates(words.FOLDER / "en.toml")
SOURCE = Path(discreet.__file__).parent
STORED = ("assumes.", "not_covered.", "data.", "trial.", "claim.", "second.")
ANY_NAME = "[a-z_]+"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of languages with English in it, and a translation to be written."""
    shutil.copy(words.FOLDER / "en.toml", tmp_path)
    monkeypatch.setattr(words, "FOLDER", tmp_path)
    monkeypatch.setenv(words.VARIABLE, "de")
    return tmp_path


def change_template(folder: Path, old: str, new: str) -> None:
    english = (folder / "en.toml").read_text(encoding="utf-8")
    assert english.count(old) == 1
    (folder / "de.toml").write_text(english.replace(old, new), encoding="utf-8")


def test_values_are_inserted_as_they_are():
    column = "{0} {unit.__class__} {{}} %s"
    assert fill("not_covered.rows_left_out", column=column).startswith(
        f"How many rows were left out because a person, by column {column}, has"
    )


@pytest.mark.parametrize("language", words.languages(words.FOLDER))
def test_every_language_has_the_keys_and_placeholders_of_english(language: str):
    assert list(words.load_templates(words.FOLDER, language)) == list(ENGLISH)


@pytest.mark.parametrize("language", words.languages(words.FOLDER))
def test_every_language_states_an_epsilon_where_english_does(language: str):
    """The public page removes the numbers of sentences that state no ε, so a stray "ε = " would reveal some."""
    templates = words.load_templates(words.FOLDER, language)
    stated = [{key for key, text in each.items() if "ε = " in text} for each in (templates, ENGLISH)]
    assert stated[0] == stated[1]


def test_a_placeholder_is_a_name_and_nothing_more():
    for key, template in ENGLISH.items():
        assert all(name.isidentifier() for name in words.placeholders(template)), key


def test_a_translation_is_used_where_the_variable_names_it(folder: Path):
    change_template(folder, 'title = "Guarantee card"', 'title = "Garantiekarte"')
    assert fill("card.title") == "Garantiekarte"


def test_an_empty_variable_means_english(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(words.VARIABLE, "")
    assert fill("card.title") == "Guarantee card"


@pytest.mark.parametrize("language", ["xx", "../languages/en", "en.toml", "EN"])
def test_an_unknown_language_is_refused_before_a_command_begins(
    language: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv(words.VARIABLE, language)
    assert run(["account", "gaussian", "--noise-multiplier", "1"]) == InvalidInput.exit_code
    said = " ".join(capsys.readouterr().err.split())
    assert f"DISCREET_LANGUAGE must be one of en, and got '{language}'. Unset it for English." in said


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('seeded = "Nobody', 'sown = "Nobody', "de.toml lacks assumes.seeded. It needs the keys of en.toml."),
        ("[accountant]", '[accountant]\nzcdp = "z"', "de.toml must not have accountant.zcdp."),
        ("head {head}", "head", "of card.ledger in de.toml must be entries, head, and got entries."),
        ("head {head}", "head {tail}", "must be entries, head, and got entries, tail."),
        ("head {head}", "head {head:>9}", "must be entries, head, and got entries, head:>9."),
        ("head {head}", "head {head!r}", "must be entries, head, and got entries, head!r."),
        ("head {head}", "head {head.real}", "must be entries, head, and got entries, head.real."),
        ("head {head}", "head {head", "must be entries, head, and got '{entries} entries, head {head' \\("),
        ('title = "Guarantee card"', "title = 7", "de.toml must hold text only, and card.title is 7."),
        ('title = "Guarantee card"', "title = ", "de.toml can't be read: Invalid value"),
    ],
)
def test_a_translation_that_is_not_complete_is_refused(folder: Path, old: str, new: str, problem: str):
    change_template(folder, old, new)
    with pytest.raises(InvalidInput, match=problem):
        fill("card.title")


def test_every_key_that_the_code_fills_exists_and_every_key_is_filled():
    """A key is a constant where it is filled, or an f-string whose names stand for any: `f"unit.{name}"`."""
    patterns = list(filled_keys())
    missing = [pattern for pattern in patterns if not any(re.fullmatch(pattern, key) for key in ENGLISH)]
    unused = [key for key in ENGLISH if not any(re.fullmatch(pattern, key) for pattern in patterns)]
    assert (missing, unused) == ([], [])


def filled_keys() -> Iterator[str]:
    sources = [path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))]
    for source in (source for source in sources if "from discreet.words import fill\n" in source):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "fill":
                yield from key_patterns(node.args[0])


def key_patterns(key: ast.expr) -> Iterator[str]:
    match key:
        case ast.Constant(value=str(text)):
            yield re.escape(text)
        case ast.IfExp():
            yield from (*key_patterns(key.body), *key_patterns(key.orelse))
        case ast.JoinedStr():
            yield "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ANY_NAME for part in key.values
            )
        case _:
            raise AssertionError(f"a key must be written where it is filled: {ast.unparse(key)}")


def test_the_file_says_which_sentences_are_stored():
    head = (words.FOLDER / "en.toml").read_text(encoding="utf-8").partition("\n\n")[0]
    assert all(f"[{name.rstrip('.')}]" in head for name in STORED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (describe_unit("example", "client"), "one example, of any other client"),
        (describe_unit("client", "server", [0, 1, 2]), "clients 0 to 2, with all their data"),
        (describe_unit("client", "server", [7]), "client 7, with all its data"),
        (describe_unit("example", "public", [0, 2]), "one example of clients 0, 2"),
        (describe_clients(range(0, 20, 2)), "clients 0, 2, 4, 6, 8, 10 and 4 more"),
        (describe_relation("replace", "client"), "replace: this client, or any other in its place; how many there "),
        (join_names(["a", "b", "c"]), "a and b and c"),
        (
            sentence("results", "client", "replace", 0.001, 1.0),
            "Next to nothing is promised: anyone who sees ",
        ),
    ],
)
def test_english_reads_as_before(text: str, expected: str):
    assert text.startswith(expected)


def test_no_language_is_read_before_a_word_is_needed():
    code = "import discreet.cli.main; from discreet.words import load_templates as load; print(load.cache_info())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.endswith("currsize=0)\n")
