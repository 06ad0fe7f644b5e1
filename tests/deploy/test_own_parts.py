"""A mechanism of the experiment's own: it runs on a node at its owner's price, whatever it declares of itself."""

from pathlib import Path

import pytest

from discreet.algorithms.declarations import client_parts
from discreet.deploy.app_folder import AppFolder, user_files
from discreet.deploy.client_node import ClientNode
from discreet.deploy.policy import PolicyRefusal
from discreet.privacy.events import GaussianNoise
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


def test_the_servers_own_optimiser_never_runs_on_a_node(tmp_path: Path, mark: Path) -> None:
    site = create_site(tmp_path, SIGN)
    mark.unlink()
    app = AppFolder.open(site.app)
    assert user_files(app.experiment) == ()
    assert (site.app / "mine.py").is_file()
    open_node(tmp_path / "client-0").close()
    assert not mark.exists()
