"""A user's own class as a part of an algorithm: from a file or from Python, and nothing is certified by its word."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import discreet
from discreet import api
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import trusted_parts
from discreet.algorithms.mechanisms import Gaussian, Mechanism
from discreet.algorithms.population import Population
from discreet.algorithms.server_optimizers import ServerOptimizer
from discreet.algorithms.sparsifiers import PublishedTopK
from discreet.algorithms.training import LocalSgd
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.configuration import experiment_file, toml_document
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.experiment.loop import training_loop
from discreet.experiment.run_directory.run_data import read_run
from discreet.part import part, to_plain
from discreet.privacy.ledger import Budget, Ledger
from discreet.report.verdict import judge
from discreet.trust import Trust
from discreet.user_part import UserPart, load_user_parts, user_parts

MINE = '''\
import torch
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import trusted_parts
from discreet.algorithms.mechanisms import Gaussian
from discreet.algorithms.server_optimizers import ServerOptimizer
from discreet.algorithms.training import LocalSgd
from discreet.privacy.events import GaussianNoise


class SignStep:
    """Moves every weight by the sign of its mean update."""

    def __init__(self, rate=0.01):
        self.rate = rate

    def init(self, params):
        return {}

    def step(self, params, mean, state):
        return {name: value + self.rate * torch.sign(mean[name]) for name, value in params.items()}, state


class Loud(Gaussian):
    """Declares everything itself, so it is a part of the user's own."""

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 0
    is_local = False
    integer_shares = None
    server_choices = frozenset()

    def noise_deviation(self, clients):
        return self.noise_multiplier

    def sum_noise(self, grid=None, known_shares=0, contributors=None):
        return GaussianNoise(noise_multiplier=self.noise_multiplier)

    def upload_noise(self, grid=None):
        return None


class Quiet(Loud):
    """Adds half of the noise that it declares."""

    def release_sum(self, total, *rest):
        released, state = super().release_sum(total, *rest)
        return {name: (value + total[name] * self.clip_norm) / 2 for name, value in released.items()}, state


class Broken(Loud):
    def bound(self, delta, broadcast):
        raise RuntimeError("out of luck")


def two_steps(learning_rate: float, server: "SignStep" = SignStep()):
    return Algorithm(trainer=LocalSgd(learning_rate=learning_rate, batch_size=8, steps=2), server=server)


class Recall:
    def __init__(self, label):
        self.label = label

    def __call__(self, outputs, targets):
        found = outputs.argmax(dim=1) == targets
        return {f"recall_{self.label}": found[targets == self.label].float().mean()}
'''
FEDAVG = """\
rounds = 2
task = { kind = "digits", clients = 3 }
model = { kind = "linear" }

[algorithm]
recipe = "fedavg"
learning_rate = 0.1
batch_size = 32
epochs = 1
"""
SIGN = FEDAVG + 'server = { kind = "mine.py:SignStep", rate = 0.02 }\n'
LOUD = """\
rounds = 2
task = { kind = "digits", clients = 3 }
model = { kind = "linear" }
privacy = { unit = "client", against = "public", epsilon = 50.0, delta = 1e-4 }

[algorithm]
trainer = { kind = "local_sgd", learning_rate = 0.1, batch_size = 32, epochs = 1 }
mechanism = { kind = "mine.py:Loud", clip_norm = 0.5 }
"""
TRAINER = LocalSgd(learning_rate=0.1, batch_size=8, steps=2)
POPULATION = Population(examples=(10, 10, 10))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    torch.set_num_threads(1)
    (tmp_path / "mine.py").write_text(MINE)
    return tmp_path


def run(folder: Path, text: str) -> api.Run:
    (folder / "experiment.toml").write_text(text)
    job = api.prepare_job(experiment_file.load_experiment(folder / "experiment.toml", trust=Trust.all_code()))
    return api.run_of_outcome(training_loop.start(job, folder / "run", None, None, no_watch))


def no_watch(*events: Any) -> None:
    """Watch nothing."""


def test_a_plain_class_with_init_and_step_trains_from_a_file(folder: Path) -> None:
    trained = run(folder, SIGN)
    assert trained.rounds == 2
    assert trained.guarantees == ()
    assert 'kind = "mine.py:SignStep"' in (trained.directory / "resolved.toml").read_text()


def test_a_server_optimiser_of_ones_own_changes_no_card(folder: Path) -> None:
    promise = 'privacy = { unit = "example", against = "server", epsilon = 8.0, delta = 1e-4 }\n'
    pfl = '[algorithm]\nrecipe = "pfl"\nlocal_steps = 1\nsampling_rate = 0.1\nclip_norm = 0.5\nlearning_rate = 1.0\n'
    text = FEDAVG.partition("[algorithm]")[0] + promise + pfl
    (card, *_) = run(folder, text + 'server = { kind = "mine.py:SignStep" }\n').guarantees
    assert card.is_certified


def test_reading_a_run_directory_runs_none_of_its_code(folder: Path) -> None:
    trained = run(folder, SIGN)
    mark = folder / "it-ran"
    (folder / "mine.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    experiment = toml_document.build_record(
        Experiment, toml_document.parse_toml((trained.directory / "resolved.toml").read_text(), "resolved.toml")
    )
    (own,) = user_parts(experiment.algorithm)
    assert not own.is_loaded
    assert discreet.load(trained.directory).rounds == 2
    assert judge(read_run(trained.directory)).mood == "none"
    assert not mark.exists()
    with pytest.raises(InvalidInput, match=r"mine.py:SignStep has changed: its sha256 is"):
        load_user_parts(experiment.algorithm, folder, Trust.all_code())


def test_a_card_on_the_word_of_a_part_is_never_green(folder: Path) -> None:
    trained = run(folder, LOUD)
    (card, *_) = trained.guarantees
    assert not card.is_certified
    assert "mine.py:Loud (sha256 " in card.on_word_of[0]
    text = card.as_text()
    assert text.startswith("Declared by a user's own code, not certified")
    assert "On the word of mine.py:Loud" in text
    assert "Certified" not in text
    assert judge(read_run(trained.directory)).mood == "none"


def test_a_part_that_adds_half_of_its_declared_noise_is_refused_before_training(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="Add more noise, or declare less"):
        run(folder, LOUD.replace("Loud", "Quiet"))
    assert not (folder / "run").exists()


def test_the_card_says_what_was_tried(folder: Path) -> None:
    assert "Tried before training, which proves nothing." in " ".join(run(folder, LOUD).guarantees[0].assumptions)


def test_a_fault_in_own_code_is_reported_with_its_place(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="RuntimeError: out of luck"):
        run(folder, LOUD.replace("Loud", "Broken"))


def test_the_noise_of_ones_own_mechanism_is_calibrated_and_stored(folder: Path) -> None:
    """A part that declares what Gaussian declares gets Gaussian's noise."""
    trained = run(folder, LOUD)
    stored = toml_document.parse_toml((trained.directory / "resolved.toml").read_text(), "resolved.toml")
    (folder / "shipped.toml").write_text(LOUD.replace("mine.py:Loud", "gaussian"))
    shipped = api.prepare_job(experiment_file.load_experiment(folder / "shipped.toml", trust=Trust.all_code()))
    assert stored["algorithm"]["mechanism"]["noise_multiplier"] == shipped.algorithm.mechanism.noise_multiplier
    assert stored["algorithm"]["mechanism"]["kind"] == "mine.py:Loud"
    assert trained.guarantees[0].epsilon <= 50


def test_a_recipe_of_ones_own_is_called_with_the_other_keys(folder: Path) -> None:
    text = FEDAVG.partition("[algorithm]")[0] + '[algorithm]\nrecipe = "mine.py:two_steps"\n'
    assert run(folder, text + "learning_rate = 0.1\n").rounds == 2
    (folder / "experiment.toml").write_text(text + "rate = 0.1\n")
    with pytest.raises(InvalidInput, match=r"the recipe 'mine.py:two_steps' takes no 'rate'"):
        experiment_file.load_experiment(folder / "experiment.toml", trust=Trust.all_code())


def test_a_metric_of_ones_own_may_take_arguments(folder: Path) -> None:
    trained = run(folder, 'metric = { kind = "mine.py:Recall", label = 3 }\n' + FEDAVG)
    assert "recall_3" in trained.metrics


class Half:
    """Half of the mean update."""

    def init(self, params: Any) -> dict[str, Any]:
        return {}

    def step(self, params: Any, mean: Any, state: Any) -> tuple[Any, Any]:
        return {name: value + mean[name] / 2 for name, value in params.items()}, state


def test_an_object_of_a_python_program_is_a_part() -> None:
    algorithm = replace(discreet.fedavg(learning_rate=0.1, batch_size=8, steps=1), server=Half())  # type: ignore[arg-type]
    assert isinstance(algorithm.server, UserPart)
    assert to_plain(algorithm)["server"]["kind"] == "test_user_part.py:Half"
    assert len(to_plain(algorithm)["server"]["sha256"]) == 64


def test_an_object_without_what_the_contract_needs_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"test_user_part.py:Empty can't be a server optimiser: it lacks step"):
        discreet.fedavg(learning_rate=0.1, batch_size=8, steps=1, server=Empty())  # type: ignore[arg-type]


class Empty:
    pass


def test_a_subclass_of_a_part_that_declares_only_some_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Quiet is a subclass of Gaussian, and a guarantee would be"):
        type("Quiet", (Gaussian,), {"sum_noise": lambda *given: None, "is_private": True})


def test_an_undeclared_part_gets_no_card_and_no_promise() -> None:
    class BoundMechanism:
        """What a mechanism does, and nothing of what a card needs."""

        def __init__(self) -> None:
            self.with_defaults = True

        def bound(self, delta: Any, broadcast: Any) -> Any:
            return delta

        def add_noise_share(self, encoded: Any, *rest: Any) -> Any:
            return encoded

        def release_sum(self, total: Any, state: Any, *rest: Any) -> Any:
            return total, state

    algorithm = Algorithm(trainer=LocalSgd(learning_rate=0.1, batch_size=8, steps=1), mechanism=BoundMechanism())  # type: ignore[arg-type]
    assert algorithm.planned_releases(3, POPULATION) == []


def test_own_code_that_replaces_a_method_of_a_part_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gaussian, "release_sum", lambda self, total, state, *rest: (total, state))
    with pytest.raises(InvalidInput, match="must be a Gaussian as it is shipped, and its 'release_sum' was replaced"):
        discreet.dp_fedavg(learning_rate=0.1, batch_size=8, steps=1, clip_norm=1.0, sampling_rate=0.5)


def test_what_is_only_declared_is_not_counted_in_a_ledger_that_other_runs_share(folder: Path) -> None:
    (folder / "experiment.toml").write_text(LOUD)
    job = api.prepare_job(experiment_file.load_experiment(folder / "experiment.toml", trust=Trust.all_code()))
    budget = Budget(unit="client", relation="add_or_remove", view="public", epsilon=100.0, delta=1e-4)
    Ledger.create(folder / "shared.jsonl", [budget])
    with pytest.raises(InvalidInput, match="and this noise is declared by mine"):
        training_loop.start(job, folder / "run", folder / "shared.jsonl", None, no_watch)
    assert not (folder / "run").exists()


@part
class OwnRecord(ServerOptimizer):
    """A user's own part that is written as ours are."""

    kind: str = "own"
    rate: float = 0.5

    def step(self, params: Any, mean: Any, state: Any) -> tuple[Any, Any]:
        return {name: value + self.rate * mean[name] for name, value in params.items()}, state


def test_a_users_own_record_is_a_users_own_part() -> None:
    algorithm = discreet.fedavg(learning_rate=0.1, batch_size=8, steps=1, server=OwnRecord(rate=0.25))  # type: ignore[arg-type]
    assert isinstance(algorithm.server, UserPart)
    assert to_plain(algorithm)["server"]["rate"] == 0.25


def test_a_schedule_of_ones_own_is_trusted_only_where_the_bound_follows_from_it() -> None:
    class HalvingSchedule:
        def factor(self, k: int) -> float:
            return 0.5**k

    rates = {"learning_rate": 0.5, "sampling_rate": 0.1, "clip_norm": 1.0, "schedule": HalvingSchedule()}
    assert trusted_parts(discreet.pfl(local_steps=1, **rates)) == []  # type: ignore[arg-type]
    (own,) = trusted_parts(discreet.ddp_fedavg(local_steps=1, **rates))  # type: ignore[arg-type]
    assert own.contract.name == "schedule"


class Shares(Mechanism):
    """A mechanism of which only its own class knows who adds the noise."""

    is_private = True
    unit = "client"
    norm_order = 2
    extra_values = 0

    def bound(self, *args: Any) -> Any: ...
    def add_noise_share(self, *args: Any) -> Any: ...
    def release_sum(self, *args: Any) -> Any: ...
    def sum_noise(self, *args: Any) -> Any: ...
    def upload_noise(self, *args: Any) -> Any: ...


def test_noise_that_a_user_adds_may_be_in_shares_that_a_sparsifier_thins() -> None:
    with pytest.raises(UnsoundCombination, match="deletes its share of noise"):
        Algorithm(trainer=TRAINER, mechanism=Shares(), sparsifier=PublishedTopK(fraction=0.5))  # type: ignore[arg-type]


class OneResult:
    """Forgets the state."""

    def step(self, params: Any, mean: Any, state: Any) -> Any:
        return params


class NoExposure:
    """A trainer that returns nothing where its exposure is asked for."""

    def train(self, loss: Any, broadcast: Any, batches: Any, rows: Any) -> Any:
        return {}

    def exposure(self, round: int) -> Any:
        return None


def test_a_result_of_another_kind_is_reported_with_the_part_and_its_member() -> None:
    algorithm = discreet.fedavg(learning_rate=0.1, batch_size=8, steps=1, server=OneResult())  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"OneResult: step must return a tuple of 2, and returned .* class dict"):
        algorithm.server.step({}, {}, {})
    with pytest.raises(InvalidInput, match=r"NoExposure: exposure must return a Exposure, and returned .* NoneType"):
        Algorithm(trainer=NoExposure(), mechanism=Gaussian(clip_norm=1.0)).planned_releases(1, POPULATION)  # type: ignore[arg-type]
