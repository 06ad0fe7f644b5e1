"""No text of a card escapes the language file: in a language without words, only values are left.

Every template of that language is its placeholders between brackets. So a letter on a card is part of a value, or of a
text that the code writes itself, also where such a text goes into a placeholder.

What this can't see: sentences of cases that are not tried here (the public data sets, whose files are not here; real
clients; most reasons of the second engine), whether a template fits its place, and texts that are neither on a card
nor in a verdict, such as errors, plans and other sections of a page.
"""

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest
import torch

from discreet import clients_from_arrays, words
from discreet.cli.main import run as run_command
from discreet.code_version import SHORT
from discreet.data.datasets.owner_checksums import FileContent, describe_origin, disclose_checksums
from discreet.data.features.extractors import Scatternet
from discreet.data.tasks.image_examples import describe_public_data, describe_scaling
from discreet.data.tasks.lending_club import LendingClub
from discreet.experiment.run_directory.run_data import RunData, read_run
from discreet.paths import Paths
from discreet.privacy import second_engine
from discreet.privacy.events import (
    Composed,
    DiscreteGaussianNoise,
    DistributedDiscreteGaussianNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    SkellamNoise,
)
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.release import Person, Relation, Release, Unit, View
from discreet.report import brief_page
from discreet.report.guarantee_card import guarantee_card, other_clients_table
from discreet.report.verdict import judge
from tests.experiment.test_person_unit import EXPERIMENT as PERSONS
from tests.experiment.test_person_unit import experiment as write_table
from tests.test_user_part import LOUD, MINE

NUMBER = re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}…|\d[\d.,]*(?:e[-+]?\d+)?|\binf\b")
NAMES = ("cpu", "float64", "float32", "gaussian", "Accuracy", "loss", "linear", "Mse", "MSE")
DIGESTS = Path(__file__).parent / "digests" / "experiments"
PATIENT = Person(column="patient", at_most=5)
NOISE = GaussianNoise(noise_multiplier=1.5)
EVENTS: dict[str, Event] = {
    "gaussian": NOISE,
    "sampled": Repeated(count=60, event=PoissonSampled(sampling_rate=0.25, event=NOISE)),
    "fixed size": Repeated(count=60, event=SampledWithoutReplacement(cohort=2, population=9, event=NOISE)),
    "laplace": LaplaceNoise(noise_multiplier=2.0),
    "skellam": SkellamNoise(variance=900.0, l2_sensitivity=3.0, dimension=10),
    "discrete": DiscreteGaussianNoise(variance=900.0, l2_sensitivity=3.0),
    "shares": DistributedDiscreteGaussianNoise(variance=90.0, shares=10, l2_sensitivity=3.0, dimension=10),
    "many": Composed(events=tuple(GaussianNoise(noise_multiplier=float(size)) for size in range(5, 10))),
    "none": Composed(events=()),
}
NOT_PRIVATE = """\
rounds = 1
task = { kind = "digits", clients = 2 }
model = { kind = "linear" }
algorithm = { recipe = "fedavg", learning_rate = 0.1, batch_size = 8 }
"""
SHARED = """\
rounds = 1
task = { kind = "digits", clients = 3, partition = { kind = "dirichlet", alpha = 5.0 } }
model = { kind = "linear" }
evaluate_training = true
privacy = { unit = "example", against = "server", epsilon = 50.0, delta = 1e-4 }

[algorithm]
recipe = "ddp_fedavg"
gradients = "local"
as_published = true
local_steps = 2
sampling_rate = 0.1
clip_norm = 0.5
learning_rate = 4.0
"""
TABLE = re.sub(r"ranges = (\{.*\})", r"ranges = { taken_from_data = true, columns = \1 }", PERSONS)


@pytest.fixture(autouse=True)
def wordless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a language in which every template is its placeholders between brackets; return a folder to work in."""
    folder = tmp_path / "languages"
    folder.mkdir()
    shutil.copy(words.FOLDER / "en.toml", folder)
    english = words.read_templates(words.FOLDER / "en.toml")
    lines = (f"{key} = {json.dumps(remove_words(text), ensure_ascii=False)}\n" for key, text in english.items())
    (folder / "xx.toml").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setattr(words, "FOLDER", folder)
    monkeypatch.setenv(words.VARIABLE, "xx")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    second_engine.epsilon.cache_clear()  # it keeps reasons, which are words
    yield tmp_path
    second_engine.epsilon.cache_clear()


def remove_words(template: str) -> str:
    names = dict.fromkeys(name for _, name, _, _ in Formatter().parse(template) if name is not None)
    return f"⟦ {' '.join(f'{{{name}}}' for name in names)} ⟧"


def foreign_words(text: str, *values: str) -> list[str]:
    """Return the words of a text that are no numbers, and none of these values."""
    text = " ".join(text.split())
    for value in sorted((*values, *NAMES), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", " ", text)
    return re.findall(r"[^\W\d_]+", NUMBER.sub(" ", text))


def card_values(card: Guarantee) -> list[str]:
    """Return what a card names: the code, the second engine, the ledger's head, and a user's own names."""
    column = [repr(card.unit.column)] if isinstance(card.unit, Person) else []
    code = [card.code.public, str(card.commit)[:SHORT]]
    return [*code, card.second.engine, *column, *(card.on_word_of)]


class PageText(HTMLParser):
    """All that a reader can see or hear of a page: its text, and attributes that hold text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.pieces += [value or "" for name, value in attributes if name in ("title", "alt", "aria-label", "summary")]


def page_text(page: object) -> str:
    return " ".join(PageText(str(page)).pieces)


def check_card(card: Guarantee, *values: str) -> None:
    known = [*card_values(card), *values]
    assert foreign_words(card.as_text(), *known) == []
    assert foreign_words(page_text(guarantee_card(card)), *known) == []


@pytest.mark.parametrize("unit", ["example", "client", PATIENT, replace(PATIENT, clients_at_most=3)])
@pytest.mark.parametrize("relation", get_args(Relation))
@pytest.mark.parametrize("view", get_args(View))
def test_a_card_has_no_words_of_its_own_whatever_it_protects(unit: Unit, relation: Relation, view: View):
    card = Guarantee.certify(Release(unit=unit, relation=relation, view=view, event=NOISE), 1e-5)
    check_card(card, "'patient'")
    check_card(replace(card, clients=(3,), other_code=("0.3.0",), dirty=True))
    check_card(replace(card, clients=tuple(range(0, 40, 3)), commit=None))
    assert foreign_words(page_text(other_clients_table([replace(card, clients=(0, 1))]))) == []


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("relation", ["replace", "add_or_remove"])
def test_a_card_has_no_words_of_its_own_whatever_the_noise(name: str, relation: Relation):
    event: Event = EVENTS["gaussian" if (name, relation) == ("fixed size", "add_or_remove") else name]  # not accounted
    check_card(Guarantee.certify(Release(unit="example", relation=relation, view="server", event=event), 1e-5))


@pytest.mark.parametrize(
    "name",
    [
        "as_published",  # with a claim
        "discrete_gaussian",  # a secure sum, from which clients drop out
        "shards_skellam",
        "own_budgets",  # clients that differ
        "local_gaussian",  # with public examples
    ],
)
def test_a_run_has_no_words_of_its_own_on_its_cards(name: str, wordless: Path):
    check_run(train(wordless, (DIGESTS / f"{name}.toml").read_text()))


@pytest.mark.parametrize("bound", ["at_most = 2", "at_most = 1", "at_most = 2, clients_at_most = 2"])
def test_a_run_on_a_table_has_none(bound: str, wordless: Path):
    write_table(wordless)
    run = train(wordless, TABLE.replace("at_most = 2", bound), "--accept-data-ranges")
    assert run.has_data_ranges
    check_run(run, "'patient'", "'hospital'")


def test_a_run_with_a_part_of_the_users_own_has_none(wordless: Path):
    (wordless / "mine.py").write_text(MINE)
    run = train(wordless, LOUD, "--trust")
    (own,) = run.guarantees[0].on_word_of
    check_run(run, own, "mine.py:Loud", "Linear")


def test_a_run_in_a_shared_ledger_has_none(wordless: Path):
    budget = Budget(unit="example", relation="zero_out", view="server", epsilon=100.0, delta=1e-4)
    Ledger.create(wordless / "shared.jsonl", [budget])
    run = train(wordless, SHARED, "--ledger", "shared.jsonl")
    assert run.guarantees[0].claims
    check_run(run)


def test_sentences_about_data_have_none():
    arrays = clients_from_arrays(torch.zeros(4, 2), torch.arange(4) % 2, sizes=[2, 2], max_multiplicity=2)
    own = [FileContent(name, b"", "a" * 64) for name in ("TX.csv", "NY.csv", "CA.csv", "MA.csv")]
    contents = [own[:1], own[:2], own, [*own, FileContent("NM.csv", b"")]]
    origins = [sentence for some in contents for sentence in (*describe_origin(some, ""), *disclose_checksums(some))]
    loans = [LendingClub(reduction="pca")._disclose_reduction(), LendingClub(reduction="none")._describe_reduction()]
    images = [describe_public_data("MNIST"), describe_scaling("unit"), describe_scaling("imagenet")]
    features = Scatternet().build((1, 28, 28), Paths.default()).facts
    said = [*arrays.facts, *arrays.not_covered, *origins, *itertools.chain(*loans), *images, *features]
    assert foreign_words(" ".join(said), *(content.name for content in own), "SHA256SUMS", "MNIST") == []


def test_a_run_without_privacy_has_none(wordless: Path):
    run = train(wordless, NOT_PRIVATE)
    assert foreign_words((wordless / "out" / "guarantee.txt").read_text()) == []
    check_run(run)


def train(folder: Path, experiment: str, *options: str) -> RunData:
    (folder / "experiment.toml").write_text(experiment)
    assert run_command(["run", "experiment.toml", "--out", "out", *options]) == 0
    return read_run(folder / "out")


def check_run(run: RunData, *values: str) -> None:
    """Check the cards as text and as a page, and the verdicts on the run and on what could have become of it."""
    known = [value for card in run.guarantees for value in card_values(card)]
    for card in run.guarantees:
        check_card(card, *values)
    others = replace(run, experiment={"rounds": 1, "privacy": {"unit": "client", "epsilon": 1e-9, "delta": 1e-4}})
    unfinished = replace(run, experiment=run.experiment | {"rounds": 10**6}, guarantees=(), outcome={})
    for each in (
        run,
        others,
        unfinished,
        replace(others, identity={}, outcome={}),
        replace(run, outcome={"rounds": 0}),
    ):
        verdict = judge(each)
        assert foreign_words(" ".join([verdict.sentence, *verdict.more]), *known, *values) == []
        check_brief(each, *known, *values)


def check_brief(run: RunData, *values: str) -> None:
    """Check the one page: it names the run, its data and its metrics, and the page behind it."""
    names = [run.name, run.recipe or "", str(run.value("task", "kind")), *run.metrics(), "visits.csv"]
    names += [repr(run.value("task", name)) for name in ("client", "label")]
    heads = [card.ledger.head for card in run.guarantees if card.ledger]
    for public, full in ((False, "report.html"), (True, "report-public.html")):
        page = re.sub("<style>.*?</style>", "", brief_page.render_page(run, public=public), flags=re.DOTALL)
        assert foreign_words(page_text(page), *values, *filter(None, names), *heads, full, "discreet") == []


def test_sentences_keep_the_language_in_which_a_card_was_made(monkeypatch: pytest.MonkeyPatch):
    card = Guarantee.certify(Release(unit="example", relation="zero_out", view="server", event=NOISE), 1e-5)
    monkeypatch.delenv(words.VARIABLE)
    assert set(card.assumptions) == {"⟦  ⟧"}
    assert card.as_text().startswith("Guarantee card")
    assert "\nUnit            one example, of any client\n" in card.as_text()


@pytest.mark.parametrize("text", ["⟦1⟧ and ⟦2⟧", "⟦their⟧", "Certified ⟦⟧", "⟦ε = 2⟧"])
def test_a_word_that_escapes_is_found_in_brackets_and_outside(text: str):
    assert foreign_words(text)
