"""A wrong command line gets one sentence and a documented exit code from every command, and nothing is written."""

import pytest

from discreet.cli.main import run
from tests.bad_inputs import count_cases
from tests.bad_inputs.command_lines import VALID, commands, lines
from tests.bad_inputs.stage import Stage

LINES = list(lines())
SHOW_HELP: list[tuple[str, ...]] = [(), ("account",)]  # a command that only has commands, without a word more
LONGEST = 1200  # characters of a sentence that somebody reads to its end


def test_every_command_has_cases():
    assert {name for name, _ in commands()} == set(VALID)
    assert len(LINES) >= 150


def test_the_guide_for_contributors_counts_the_cases():
    assert count_cases.page_with_counts() == count_cases.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("group", sorted({words[0] for words in LINES if words}))
def test_a_wrong_command_line_gets_one_sentence_and_nothing_is_written(
    group: str, stage: Stage, capsys: pytest.CaptureFixture[str]
):
    before = stage.content()
    amiss = []
    for words in LINES:
        if words[:1] == (group,) and words not in SHOW_HELP:
            code = run(words)
            said = capsys.readouterr()
            after = stage.content()
            problems = find_problems(code, said.out, said.err)
            problems += [f"changed {name}" for name in before.keys() | after if before.get(name) != after.get(name)]
            amiss += [f"{ascii(' '.join(words))[:300]}: {', '.join(problems)}"] * bool(problems)
            if before != after:
                stage.restore()
    assert not amiss, "\n".join(amiss)


def find_problems(code: int, out: str, err: str) -> list[str]:
    """Return what is wrong with how a command refused its input."""
    problems = {
        f"exit code {code}": code != 2,
        "output": out != "",
        "no error": not err.startswith("Error: "),
        "an unexpected error": err.startswith("Error: Unexpected"),
        "more than a line": err.count("\n") != 1,
        "a long sentence": len(err) >= LONGEST,
    }
    found = [problem for problem, holds in problems.items() if holds]
    return [*found, ascii(err)[:300]] if found else []


@pytest.mark.parametrize("words", SHOW_HELP)
def test_a_group_of_commands_without_a_command_shows_its_help(words: tuple[str, ...]):
    assert run(words) == 0
