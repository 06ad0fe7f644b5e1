"""Every kind of damaged file with every command that reads it: the table of cases."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

FOLDER, MISSING, LOOP = "a folder", "missing", "a loop of links"  # instead of the file
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut in half": lambda content: content[: len(content) // 2],
    "not UTF-8": lambda content: b"\xff\xfe\x00" + content,
    "after a byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "zeros": lambda _: bytes(50),
    "lists nested too deep": lambda _: b"[" * 100_000,
    "objects nested too deep": lambda _: b'{"a":' * 100_000,
    "a list": lambda _: b"[]",
    "a list of numbers": lambda _: b"[1, 2]",
    "an empty object": lambda _: b"{}",
    "null": lambda _: b"null",
    "a number of 5,000 digits": lambda _: b'{"round": ' + b"9" * 5000 + b"}",
    "TOML nested too deep": lambda _: b"a = " + b"[" * 100_000,
    "TOML with a number of 5,000 digits": lambda _: b"rounds = " + b"9" * 5000,
}
LINES: dict[str, Callable[[bytes], bytes]] = {  # files of lines, whose last one may be unfinished
    "begun with a line that is not UTF-8": lambda content: b"\xff\xfe\x00" + content,
    "begun with an empty line": lambda content: b"\n" + content,
    "begun with zeros": lambda content: bytes(50) + b"\n" + content,
    "begun with lists nested too deep": lambda content: b"[" * 100_000 + b"\n" + content,
    "begun with a list": lambda content: b"[1, 2]\n" + content,
    "begun with an empty object": lambda content: b"{}\n" + content,
    "begun with null": lambda content: b"null\n" + content,
    "begun with a number of 5,000 digits": lambda content: b'{"trial": ' + b"9" * 5000 + b"}\n" + content,
    "begun with a score that is no number": lambda content: b'{"trial": 0, "settings": {}, "score": []}\n' + content,
}
DAMAGES.update(LINES)
BROKEN = ("cut in half", "zeros", "lists nested too deep", "objects nested too deep", "a number of 5,000 digits")
NOT_JSON = (*BROKEN, "not UTF-8")
BROKEN_JSON = (*NOT_JSON, "after a byte order mark")
NO_OBJECT = ("a list", "a list of numbers", "null")
BROKEN_TOML = (
    *("cut in half", "not UTF-8", "zeros", "TOML nested too deep", "TOML with a number of 5,000 digits"),
    *("null", "an empty object"),
)
GONE = (FOLDER, MISSING, LOOP)


@dataclass(frozen=True)
class Case:
    """A damage to a file, a command line that reads it, the exit code, and words of the sentence."""

    file: str
    damage: str
    line: str
    code: int
    says: str

    def __str__(self) -> str:
        return f"{self.line} · {self.file} is {self.damage}"


ROWS: list[tuple[str, tuple[str, ...], tuple[str, ...], int, str]] = [
    (
        "small.toml",
        (*BROKEN_TOML, "empty", *GONE),
        ("plan small.toml", "run small.toml --out new", "compare small.toml --seeds 1 --out new"),
        2,
        "",
    ),
    (
        "small.toml",
        ("TOML nested too deep", "TOML with a number of 5,000 digits", LOOP),
        (
            *("trust small.toml", "audit small.toml --runs 1 --canaries 20", "tradeoff promise small.toml --epsilon 1"),
            *("tune small.toml --public-data --out new", "deploy init new small.toml"),
        ),
        2,
        "small.toml",
    ),
    (
        "ranges.toml",
        (*BROKEN_TOML, *GONE),
        ("data check visits.csv --client clinic --label back --ranges ranges.toml",),
        2,
        "ranges.toml",
    ),
    (
        "visits.csv",
        ("empty", "zeros", "not UTF-8", *GONE),
        ("data check visits.csv --client clinic --label back", "predict tabled visits.csv", "plan tabled.toml"),
        2,
        "visits.csv",
    ),
    ("card.json", (*BROKEN_JSON, *NO_OBJECT, "empty", *GONE), ("verify card.json",), 2, "card.json"),
    ("ledger.jsonl", (*BROKEN_JSON, *NO_OBJECT), ("ledger show ledger.jsonl",), 1, "ledger.jsonl"),
    (
        "run/guarantee.json",
        (*BROKEN_JSON, *NO_OBJECT, "empty", "an empty object"),
        ("export run --to safetensors", "audit run --runs 1 --canaries 20"),
        2,
        "guarantee.json",
    ),
    (
        "run/run.json",
        (*BROKEN_JSON, *NO_OBJECT, "empty", "an empty object", *GONE),
        ("run --resume run", "export run --to safetensors", "audit run --runs 1 --canaries 20"),
        2,
        "run.json",
    ),
    ("run/resolved.toml", BROKEN_TOML, ("audit run --runs 1 --canaries 20",), 2, "resolved.toml"),
    (
        "run/model.safetensors",
        (*BROKEN, "empty", FOLDER),
        ("export run --to safetensors", "export run --to torchscript"),
        2,
        "model.safetensors",
    ),
    ("tabled/model.safetensors", (*BROKEN, "empty", FOLDER), ("predict tabled visits.csv",), 2, "model.safetensors"),
    ("tabled/table.json", (*BROKEN_JSON, *NO_OBJECT, FOLDER), ("predict tabled visits.csv",), 2, "table.json"),
    (
        "sites/site/app/deployment.toml",
        (*BROKEN_TOML, "empty", *GONE),
        ("deploy enroll client-0 --app sites/site/app --out node", "deploy accept sites/client-0"),
        2,
        "deployment.toml",
    ),
    (
        "tuned/study.jsonl",
        (*LINES, FOLDER, LOOP),
        ("tune tuned.toml --public-data --out tuned",),
        2,
        "study.jsonl",
    ),
    (
        "tuned/search.json",
        (*NOT_JSON, *NO_OBJECT, "empty", "an empty object"),
        ("tune tuned.toml --public-data --out tuned",),
        2,
        "search.json",
    ),
    (
        "state/discreet/trusted.json",
        (*NOT_JSON, "a list of numbers", "null", "empty", FOLDER),
        ("trust --list",),
        2,
        "trusted.json",
    ),
    ("sites/client-0/policy.toml", (*BROKEN_TOML, "empty", *GONE), ("deploy accept sites/client-0",), 2, "policy.toml"),
]


def cases() -> Iterator[Case]:
    """Return every case of the table."""
    for file, damages, lines, code, says in ROWS:
        for damage in damages:
            yield from (Case(file, damage, line, code, says) for line in lines)
