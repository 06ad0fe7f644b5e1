"""Every command with wrong words on its line: for each of its options and arguments at least one, by a table."""

from collections.abc import Iterator
from itertools import cycle

import click
import typer

from discreet.cli.main import app

NOT_UTF8 = "\udcff"  # how Python hands a program the byte 0xff
LONG = "x" * 300  # longer than the name of a file may be
VALID = {  # for each command, the words with which it does its work in the stage's folder
    "demo": "",
    "algorithms": "pfl",
    "init": "new.toml",
    "plan": "small.toml",
    "run": "small.toml --out new",
    "compare": "small.toml --seeds 1 --out new",
    "tune": "tuned.toml --public-data --out new",
    "predict": "tabled visits.csv",
    "export": "run --to safetensors",
    "audit": "small.toml --runs 1 --canaries 20",
    "report": "run",
    "schema": "",
    "trust": "small.toml",
    "verify": "card.json",
    "account gaussian": "--noise-multiplier 1 --steps 10",
    "account laplace": "--noise-multiplier 1 --steps 10",
    "account skellam": "--variance 100 --l2-sensitivity 3 --dimension 10",
    "account discrete-gaussian": "--variance 100 --l2-sensitivity 3",
    "account zcdp": "--rho 0.1",
    "account randomised-response": "--categories 3 --random-share 0.5",
    "account averaging": "--local-epsilon 1 --parties 10",
    **{f"tradeoff {name}": "" for name in ("ldp", "iterations", "epochs", "clients", "cohort", "sam")},
    "tradeoff promise": "small.toml --epsilon 1",
    "ledger show": "ledger.jsonl",
    "ledger verify": "ledger.jsonl",
    "ledger create": "new.jsonl --epsilon 1 --delta 1e-5",
    "ledger restate": "ledger.jsonl",
    "data list": "",
    "data get": "mnist",
    "data check": "visits.csv --client clinic --label back",
    "deploy init": "new small.toml",
    "deploy add": "sites/site north=3",
    "deploy revoke": "sites/site client-2",
    "deploy enroll": "client-0 --app sites/site/app --out node",
    "deploy accept": "sites/client-0",
    "deploy server": "sites/site",
    "deploy client": "sites/client-0",
    "deploy submit": "sites/site",
    "deploy simulate": "sites/site",
    "deploy status": "sites/site",
    "deploy renew": "sites/site",
}
NUMBERS = ("x", "", "nan", "inf", "1e999")
WORDS: dict[str, tuple[str, ...]] = {  # wrong values of the options and arguments that take no number
    **dict.fromkeys(("--sampling", "--trials", "--relation", "--view", "--against", "--to", "--noise"), ("x",)),
    **dict.fromkeys(("--device", "--estimator", "--attack", "--mode"), ("",)),
    **dict.fromkeys(("--group", "--unit"), ("a:b:c:d:e",)),
    **dict.fromkeys(("--curve", "--picture", "--latex", "--csv"), ("x.exe",)),
    **dict.fromkeys(("--set", "--sweep", "--choose"), ("=", "rounds=nan", "a" * 1000 + "=1")),
    **dict.fromkeys(("--out", "--data-dir", "--key-dir", "--ledger", "--ledgers"), (NOT_UTF8,)),
    **dict.fromkeys(("--ranges", "--app", "--resume", "--data", "--table"), ("nowhere", LONG)),
    **dict.fromkeys(("--client", "--label"), ("x", "a" * 1000)),
    "--clients": ("x=", "=3", "a=nan", "a=1,a=2", "a=-1"),
    "clients": ("x=", "=3", "a=nan", "client-0=3"),
    "--code": ("x", ""),
    "--forget": ("x", ""),
    "--head": ("x", "", "0" * 63, "g" * 64),
    "--host": ("a..b", "-a", "x" * 64, "a b"),
    "--listen": ("a..b", "-a", "x" * 64, "a b"),
    "--name": ("../x", "", ".", LONG),
    "--page": (NOT_UTF8,),
    "--supernode": (NOT_UTF8,),
    "--track": ("x", ""),
    "--write-ranges": (NOT_UTF8,),
    "name": ("x", "", LONG),
    "file": ("nowhere/x", "", "ledger.jsonl", LONG, NOT_UTF8),
    "files": ("nowhere", "", LONG),
    "folder": ("run", LONG, NOT_UTF8),
    "path": ("", "sites", LONG, NOT_UTF8),
    "run": ("nowhere", LONG, NOT_UTF8),
    "table": ("nowhere", "", "run", LONG),
}
MORE = (  # words that don't go together, or are missing
    "",
    "nonsense",
    "run --rounds",
    "run nowhere.toml",
    "run small.toml --resume run",
    "run --resume run --set rounds=9 --out new",
    "plan small.toml --port 1",
    "compare",
    "compare small.toml small.toml --out new",
    "audit",
    "audit card.json",
    "audit small.toml --round --canaries 3",
    "audit small.toml --attack membership --estimator one-run",
    "audit small.toml --confidence 1",
    "audit small.toml --canaries 0",
    "predict run visits.csv",
    "export run",
    "trust",
    "trust --list --forget x",
    "init --table visits.csv",
    "account",
    "account gaussian",
    "account gaussian --steps 10",
    "account gaussian --noise-multiplier 1 --epsilon 1 --attack-tpr 0.5",
    "account gaussian --noise-multiplier 1 --sampling-rate 2",
    "account gaussian --noise-multiplier -1",
    "account gaussian --noise-multiplier 1 --steps 0",
    "account gaussian --noise-multiplier 1 --steps 1e13",
    "account gaussian --noise-multiplier 1 --delta 1",
    "account gaussian --noise-multiplier 1 --sampling-rate 1e-320",
    "account zcdp --rho 1e-320",
    "account randomised-response --categories 1 --random-share 0.5",
    "ledger create ledger.jsonl --epsilon 1 --delta 1e-5",
    "ledger create new.jsonl --epsilon 0 --delta 1e-5",
    "ledger create new.jsonl",
    "ledger verify ledger.jsonl --records 0",
    "data check visits.csv",
    "deploy init sites small.toml",
    "deploy init new small.toml --port 0",
    "deploy init new small.toml --port 65536",
    "deploy client sites/client-0 --health 65536",
    "deploy enroll nobody --app sites/site/app --out node",
)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command of `discreet` by its words."""
    yield from _commands(typer.main.get_command(app), ())


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(words), command
        return
    for name, inner in command.commands.items():
        yield from _commands(inner, (*words, name))


def lines() -> Iterator[tuple[str, ...]]:
    """Yield every wrong command line of the table, as words."""
    numbers = cycle(NUMBERS)
    for name, command in commands():
        words, valid = name.split(), VALID[name].split()
        yield (*words, *valid, "--no-such-option")
        if name != "compare":  # which takes any number of files
            yield (*words, *valid, *["word"] * len(command.params))
        for parameter in command.params:
            for value in wrong_values(parameter) or [next(numbers)]:
                if not is_switch(parameter):
                    yield (*words, *_replace(valid, command, parameter, value))
    yield from (tuple(line.split()) for line in MORE)


def is_switch(parameter: click.Parameter) -> bool:
    """Return whether the option takes no value."""
    return bool(getattr(parameter, "is_flag", False))


def wrong_values(parameter: click.Parameter) -> tuple[str, ...]:
    """Return wrong values of an option or argument. None are listed for numbers: each gets the next one of them."""
    return WORDS.get(parameter.opts[0] if isinstance(parameter, click.Option) else parameter.name or "", ())


def _replace(valid: list[str], command: click.Command, parameter: click.Parameter, value: str) -> list[str]:
    """Return valid words with another value of one option or argument."""
    if isinstance(parameter, click.Option):
        return [*valid, f"{parameter.opts[0]}={value}"]
    place = [each.name for each in command.params if isinstance(each, click.Argument)].index(parameter.name)
    return [*valid[:place], value, *valid[place + 1 :]]
