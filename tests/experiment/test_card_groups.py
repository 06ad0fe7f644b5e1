"""A run's cards say who must check each assumption, and say nothing twice."""

from pathlib import Path

import pytest

from discreet import api
from discreet.experiment.configuration import experiment_file
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.privacy.guarantee import Guarantee
from discreet.trust import Trust
from tests.test_user_part import LOUD, MINE

HEAD = 'rounds = 4\nmodel = { kind = "linear" }\nevaluate_every = 1\n'
DIGITS = 'task = { kind = "digits", clients = 4 }\n'
NOISY = "learning_rate = 1.0\nnoise_multiplier = 2.0\n"
ROWS = f"{NOISY}clip_norm = 1.0\nsampling_rate = 0.1\n"
DRAWN = 'clip_norm = 1.0\nbatch_size = 5\nsteps = 1\nsampling = { kind = "poisson", rate = 0.5 }\n'
RECIPES = {
    "each client": f'[algorithm]\nrecipe = "pfl"\n{ROWS}',
    "server": f'[algorithm]\nrecipe = "dp_fedavg"\n{NOISY}{DRAWN}',
    "secure sum": f'[algorithm]\nrecipe = "ddp_fedavg"\n{ROWS}colluding = 1\n',
    "trusted sum": f'[algorithm]\nrecipe = "ddp_fedavg"\n{ROWS}noise = "gaussian"\n',
    "each client, whole": f'[algorithm]\nrecipe = "ldp_fedavg"\n{NOISY}gradient_bound = 1.0\nlocal_iterations = 1\n',
}
FIRST = {  # who must check the noise: the source of the line, and words of it
    "each client": ("clients", "Each client draws its noise afresh"),
    "server": ("server", "The server draws the noise afresh"),
    "secure sum": ("clients", "The server learns the sum and nothing else; at most 1"),
    "trusted sum": ("server", "the server shows nobody what it received"),
    "each client, whole": ("clients", "Each client draws its noise afresh"),
}


def cards(folder: Path, text: str, *overrides: str) -> list[Guarantee]:
    file = folder / "experiment.toml"
    file.write_text(HEAD + text)
    job = api.prepare_job(experiment_file.load_experiment(file, overrides))
    return certify_run(job.terms, job.rounds, None, shared=False)


def lines(card: Guarantee, *sources: str) -> list[str]:
    found = zip(card.assumptions, card.assumption_sources, strict=True)
    return [sentence for sentence, source in found if source in sources]


@pytest.mark.parametrize("name", RECIPES)
def test_every_card_names_who_must_check_the_data_the_noise_and_other_releases(tmp_path: Path, name: str):
    for card in cards(tmp_path, DIGITS + RECIPES[name]):
        # the server sees each upload of a trusted sum, and that has its client's own noise
        source, words = FIRST["each client" if (name, card.view) == ("trusted sum", "server") else name]
        owner, noise, project = (lines(card, each)[0] for each in ("owner", source, "project"))
        assert owner.startswith("Each person")
        assert words in noise
        assert project.startswith("Nothing else was released")
        assert lines(card, "machine")[0].startswith("The run is simulated")


@pytest.mark.parametrize("name", RECIPES)
def test_no_sentence_is_on_a_card_twice(tmp_path: Path, name: str):
    for card in cards(tmp_path, DIGITS + RECIPES[name]):
        sentences = [*card.assumptions, *card.not_covered]
        assert len(set(sentences)) == len(sentences)
        for words in ("is public", "hold the same example", "held by one client", "on the same data"):
            assert sum(words in sentence for sentence in sentences) <= 1, words


def test_a_draw_of_clients_is_kept_secret_by_the_server_and_a_draw_of_examples_by_each_client(tmp_path: Path):
    drawn = {name: cards(tmp_path, DIGITS + RECIPES[name])[0] for name in ("server", "each client")}
    for name, source in (("server", "server"), ("each client", "clients")):
        assert any(line.startswith("Who is sampled is drawn in secret") for line in lines(drawn[name], source))


def test_a_seed_comes_first_of_what_the_machine_decides(tmp_path: Path):
    (card, *_) = cards(tmp_path, DIGITS + RECIPES["each client"], "seed=1")
    assert lines(card, "machine")[0].startswith("Nobody knows the seed")
    assert card.as_text().splitlines()[2].startswith("This run protects nobody: its noise comes from a seed")


def test_shared_examples_are_said_by_those_who_know_it(tmp_path: Path):
    dealt = 'task = { kind = "digits", clients = 4, partition = { kind = "overlapping", fraction = 0.5 } }\n'
    (card, *_) = cards(tmp_path, dealt + RECIPES["each client"], "seed=0")
    (counted,) = [line for line in lines(card, "program") if "hold the same example" in line]
    (most,) = [word for word in counted.split() if word.isdigit()]
    assert f"held by at most {most} clients" in lines(card, "owner")[0]


def test_the_bound_of_a_users_own_part_is_its_authors_word(tmp_path: Path):
    (tmp_path / "mine.py").write_text(MINE)
    file = tmp_path / "experiment.toml"
    file.write_text(LOUD)
    job = api.prepare_job(experiment_file.load_experiment(file, trust=Trust.all_code()))
    (card, *_) = certify_run(job.terms, job.rounds, None, shared=False)
    assert "adds the noise as it declares; nobody proved it" in lines(card, "author")[0]
    assert any("moves each sum by no more than the sensitivity" in line for line in lines(card, "author"))
    assert not any("moves each sum by no more" in line for line in lines(card, "program"))
