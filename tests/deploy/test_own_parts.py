"""A mechanism of the experiment's own: it runs on a node for no less than its owner's price."""

import re
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import client_parts
from discreet.algorithms.population import Population
from discreet.deploy.app_folder import AppFolder, user_files
from discreet.deploy.client_ledger import round_releases
from discreet.deploy.client_node import ClientNode
from discreet.deploy.owner_price import price_releases
from discreet.deploy.policy import AcceptedPart, ClientFolder, Policy, PolicyRefusal
from discreet.errors import InvalidInput
from discreet.privacy.events import GaussianNoise, Repeated
from discreet.privacy.ledger import Budget
from discreet.privacy.ledger.charges import compose_charges
from discreet.privacy.release import Person, Relation, Release, Unit
from tests.deploy.example_sites import CENTRAL, create_site, edit_policy
from tests.test_user_part import MINE

pytestmark = pytest.mark.usefixtures("one_thread")

OWN = (
    CENTRAL.partition("[algorithm]")[0]
    + """\
[algorithm]
trainer = { kind = "local_sgd", learning_rate = 0.1, batch_size = 32, steps = 5 }
mechanism = { kind = "mine.py:Loud", clip_norm = 1.0 }
"""
)
SIGN = CENTRAL + 'server = { kind = "mine.py:SignStep" }\n'


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """A file that the experiment's own code writes wherever it runs."""
    path = tmp_path / "it-ran"
    (tmp_path / "mine.py").write_text(f"open({str(path)!r}, 'w').close()\n" + MINE)
    return path


def open_node(folder: Path) -> ClientNode:
    return ClientNode.open(folder, lambda text: None)


def test_a_node_runs_a_mechanism_only_at_its_owners_price(tmp_path: Path, mark: Path) -> None:
    site, node = create_site(tmp_path, OWN), tmp_path / "client-0"
    (own,) = client_parts(AppFolder.open(site.app).experiment.algorithm)
    mark.unlink()
    edit_policy(node, "own_code = false", "own_code = true")
    with pytest.raises(PolicyRefusal, match=rf"a mechanism of its own, mine.py:Loud \(sha256 {own.sha256}\)"):
        open_node(node)
    assert not mark.exists()
    edit_policy(node, "# [[parts]]", "[[parts]]")
    edit_policy(node, f'# sha256 = "{own.sha256}"', f'sha256 = "{own.sha256}"')
    edit_policy(node, '# price = { kind = "gaussian", noise_multiplier = … }', price(0.5))
    opened = open_node(node)
    (release,) = opened._round_releases(0)
    assert release.event == GaussianNoise(noise_multiplier=0.5)
    assert (release.unit, release.view) == ("client", "public")
    assert mark.exists()
    opened.close()


def price(noise_multiplier: float) -> str:
    return f'price = {{ kind = "gaussian", noise_multiplier = {noise_multiplier} }}'


def test_an_allowed_hash_does_not_allow_another_file(tmp_path: Path, mark: Path) -> None:
    site, node = create_site(tmp_path, OWN), tmp_path / "client-0"
    edit_policy(node, "own_code = false", "own_code = true")
    edit_policy(node, "# [[parts]]", f'[[parts]]\nsha256 = "{"0" * 64}"\n{price(0.5)}')
    mark.unlink()
    with pytest.raises(PolicyRefusal, match="and the policy doesn't list it"):
        open_node(node)
    (site.app / "mine.py").write_text(MINE)
    with pytest.raises(PolicyRefusal, match="The policy does not allow the algorithm"):
        open_node(node)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["helper.py", "package/helper.py", "helper.so", "task.py"])
def test_code_beside_a_users_file_is_agreed_on_too(tmp_path: Path, mark: Path, name: str) -> None:
    site, node = create_site(tmp_path, OWN), tmp_path / "client-0"
    assert AppFolder.open(site.app).user_files == ("mine.py",)
    mark.unlink()
    (site.app / name).parent.mkdir(exist_ok=True)
    (site.app / name).write_text("SCALE = 1\n")
    changed = AppFolder.open(site.app)
    assert changed.user_files == tuple(sorted(("mine.py", name)))
    with pytest.raises(PolicyRefusal, match="The policy does not allow the algorithm"):
        open_node(node)
    (agreed,) = ClientFolder.read(node).policy.algorithms
    edit_policy(node, agreed, changed.digest)
    with pytest.raises(PolicyRefusal, match=re.escape(", ".join(changed.user_files))):
        open_node(node)
    (site.app / name).write_text("SCALE = 2\n")
    assert AppFolder.open(site.app).digest != changed.digest
    assert not mark.exists()


def test_code_beside_a_users_file_has_a_plain_path(tmp_path: Path, mark: Path) -> None:
    site = create_site(tmp_path, OWN)
    (site.app / "a\nseeds = true.py").write_text("")
    with pytest.raises(InvalidInput, match="code must have a path of letters"):
        AppFolder.open(site.app).digest  # noqa: B018


def test_the_servers_own_optimiser_never_runs_on_a_node(tmp_path: Path, mark: Path) -> None:
    site = create_site(tmp_path, SIGN)
    mark.unlink()
    app = AppFolder.open(site.app)
    assert app.user_files == user_files(app.experiment) == ()
    assert (site.app / "mine.py").is_file()
    open_node(tmp_path / "client-0").close()
    assert not mark.exists()


class HalfEachRound:
    """A schedule of the experiment's own."""

    def factor(self, k: int) -> float:
        return 0.5**k


POPULATION = Population(examples=(100, 100, 100), max_multiplicity=3)
COSTLY, CHEAP = GaussianNoise(noise_multiplier=0.01), GaussianNoise(noise_multiplier=100.0)


def pfl_with_own_schedule() -> Algorithm:
    """Return PFL with 20 local steps, in which nothing but the schedule is the experiment's own."""
    return discreet.pfl(
        local_steps=20, sampling_rate=0.5, clip_norm=0.5, learning_rate=0.5, noise_multiplier=1.0, schedule=own_part()
    )


def own_part() -> Any:
    return HalfEachRound()


def budget_for(unit: Unit) -> Budget:
    relation: Relation = "replace" if unit == "client" else "zero_out"
    return Budget(unit=unit, relation=relation, view="server", epsilon=4.0, delta=1e-5)


def price_round(algorithm: Algorithm, unit: Unit, noise: GaussianNoise) -> Release:
    """Return what a round costs an owner with one budget, who has set this price."""
    (own,) = client_parts(algorithm)
    policy = Policy(
        client="a",
        app="app",
        server_key="0" * 64,
        algorithms=(),
        parts=(AcceptedPart(sha256=own.sha256 or "", price=noise),),
        budgets=(budget_for(unit),),
    )
    (release,) = price_releases(policy, algorithm, POPULATION, round_releases(algorithm, POPULATION, 0, 0))
    return release


def test_the_owners_price_counts_once_for_each_client_that_may_hold_an_example() -> None:
    algorithm = pfl_with_own_schedule()
    assert price_round(algorithm, "example", COSTLY).event == Repeated(count=3, event=COSTLY)
    assert price_round(algorithm, Person(column="id", at_most=2), COSTLY).event == Repeated(count=3, event=COSTLY)
    assert price_round(algorithm, "client", COSTLY).event == COSTLY


@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(pfl_with_own_schedule(), id="priced for examples"),
        pytest.param(
            discreet.ldp_fedavg(
                learning_rate=0.5, gradient_bound=1.0, noise="gaussian", noise_multiplier=1.0, schedule=own_part()
            ),
            id="priced as another update of the client",
        ),
    ],
)
def test_a_round_costs_no_less_than_the_algorithm_declares(algorithm: Algorithm) -> None:
    budget, release = budget_for("example"), price_round(algorithm, "example", CHEAP)
    assert compose_charges(budget, [release]) == compose_charges(budget, round_releases(algorithm, POPULATION, 0, 0))


def test_the_price_counts_where_the_declared_releases_say_nothing_of_a_budget() -> None:
    assert price_round(pfl_with_own_schedule(), "client", CHEAP).event == CHEAP
