"""Every parser reads the kept inputs or refuses them in one sentence, and what Hypothesis makes of them."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.attempts import find_fault
from tests.fuzz.corpus_files import CORPUS, VALID, kept_inputs
from tests.fuzz.mutations import ODD_VALUES, Edit, apply_edits
from tests.fuzz.parsers import PARSERS

LARGEST_CORPUS = 300_000  # bytes
EXAMPLES = 20  # for each parser in each run of the tests; `make fuzz` tries more, and fresh ones
SHARE = st.floats(0, 1, exclude_max=True)
EDITS = st.lists(st.builds(Edit, st.integers(0, 63), SHARE, SHARE, st.sampled_from(ODD_VALUES)), min_size=1, max_size=4)


def test_every_parser_has_a_valid_input_and_the_corpus_is_small():
    assert {folder.name for folder in CORPUS.iterdir()} == set(PARSERS)
    assert all(any(path.name.startswith(VALID) for path in kept_inputs(parser)) for parser in PARSERS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < LARGEST_CORPUS


@pytest.mark.parametrize("parser", PARSERS)
def test_valid_inputs_are_read(parser: str, tmp_path: Path):
    for path in kept_inputs(parser):
        if path.name.startswith(VALID):
            PARSERS[parser](path.read_bytes(), tmp_path)


@pytest.mark.parametrize("parser", PARSERS)
def test_kept_inputs_are_read_or_refused_in_one_sentence(parser: str):
    faults = {path.name: fault for path in kept_inputs(parser) if (fault := find_fault(parser, path.read_bytes()))}
    assert not faults


@pytest.mark.parametrize("parser", PARSERS)
def test_damaged_inputs_are_read_or_refused_in_one_sentence(parser: str):
    seeds = [path.read_bytes() for path in kept_inputs(parser)]

    @settings(max_examples=EXAMPLES)
    @given(st.sampled_from(seeds), EDITS)
    def check(seed: bytes, edits: list[Edit]) -> None:
        assert not find_fault(parser, apply_edits(seed, edits))

    check()
