"""What an owner's policy allows: the algorithm, by its digest, and whether updates leave in clear or in which sums."""

from dataclasses import replace
from pathlib import Path

import pytest

from discreet.deploy.app_folder import AppFolder
from discreet.deploy.certificates import read_key
from discreet.deploy.client_node import ClientNode
from discreet.deploy.deployed_run import DeployedRun
from discreet.deploy.policy import ClientFolder, PolicyRefusal
from discreet.engines.flower import signed_messages
from discreet.engines.flower.flower_errors import ClientsRefused
from discreet.engines.flower.signed_messages import RequestHeader
from discreet.engines.secure_terms import SessionPlan
from discreet.errors import InvalidInput
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg import key_agreement
from discreet.secure_sums.secagg.degree import Assumptions
from discreet.secure_sums.secagg.session_terms import Terms
from tests.deploy.example_sites import CENTRAL, PLAIN, SECURE, connect_nodes, copy_site, edit_policy
from tests.deploy.node_requests import RUN, RequestCase, refusal, restart

pytestmark = pytest.mark.usefixtures("one_thread")


def test_an_algorithm_that_the_owner_did_not_allow_is_refused(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    edit_policy(folder / "client-0", node.app.digest, "f" * 64)
    with pytest.raises(PolicyRefusal, match="The policy does not allow the algorithm"):
        restart(node)
    strict = replace(node, client_folder=ClientFolder.open(folder / "client-0"))
    assert "The policy does not allow the algorithm" in refusal(strict, signed_messages.sign_request(about, body, key))


def test_a_change_of_the_policy_counts_from_the_next_start_on(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    edit_policy(folder / "client-0", "minimum_cohort = 2", "minimum_cohort = 4")
    assert isinstance(signed_messages.read_reply(node.answer(signed_messages.sign_request(about, body, key))), bytes)
    assert "sums of at least 4 clients" in refusal(restart(node), signed_messages.sign_request(about, body, key))


def test_a_changed_algorithm_has_another_digest(request_case: RequestCase) -> None:
    _, site, _, _, _, _ = request_case
    before, path = AppFolder.open(site.app).digest, site.app / "resolved.toml"
    path.write_text(path.read_text().replace("clip_norm = 0.5", "clip_norm = 5.0"))
    assert AppFolder.open(site.app).digest != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("resolved.toml", "test_fraction = 0.2", "test_fraction = 0.1"),
        ("deployment.toml", 'name = "client-1"', 'name = "another"'),
        ("deployment.toml", "examples = 479", "examples = 480"),
    ],
)
def test_another_task_another_client_or_another_size_has_another_digest(
    tmp_path: Path, file: str, old: str, new: str
) -> None:
    site = copy_site(tmp_path, PLAIN)
    before, path = AppFolder.open(site.app).digest, site.app / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    assert AppFolder.open(site.app).digest != before


def test_a_seed_is_refused_unless_the_owner_allows_it(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    edit_policy(tmp_path / "client-0", "seeds = true", "seeds = false")
    with pytest.raises(Exception, match="The experiment has a seed"):
        ClientNode.open(tmp_path / "client-0", lambda text: None)


def test_an_announced_clip_that_would_let_more_out_is_refused(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    wire = connect_nodes(tmp_path, site, heard)
    job = DeployedRun(site, "first").prepare_job(RunKey.from_seed(7), wire, heard.append)
    assert job.remote_engine is not None
    broadcast = job.algorithm.broadcast(job.algorithm.init(job.params), 0)
    loud = replace(broadcast, announcement={name: value / 100 for name, value in broadcast.announcement.items()})
    with pytest.raises(ClientsRefused, match="announced another 'clip' than this algorithm has"):
        job.remote_engine.gather(loud, [0, 1, 2])


def test_an_update_in_clear_is_refused_where_the_owner_asks_for_a_secure_sum(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    edit_policy(folder / "client-0", "secure_sum = false", "secure_sum = true")
    again = restart(node)
    assert "The policy asks for a secure sum" in refusal(again, signed_messages.sign_request(about, body, key))


def test_an_update_in_clear_is_refused_where_the_noise_is_enough_only_for_sums(tmp_path: Path) -> None:
    site, heard = copy_site(tmp_path, SECURE), list[str]()
    node, key = ClientNode.open(tmp_path / "client-0", heard.append), read_key(site.server / "server.key")
    about = RequestHeader(
        kind="train", run=RUN, experiment=AppFolder.open(site.app).digest, round=0, client=0, cohort=(0, 1, 2)
    )
    assert "enough only for sums" in refusal(node, signed_messages.sign_request(about, b"", key))


def test_a_cohort_below_the_owners_minimum_is_refused(request_case: RequestCase) -> None:
    folder, _, node, about, body, key = request_case
    edit_policy(folder / "client-0", "minimum_cohort = 2", "minimum_cohort = 4")
    again = restart(node)
    assert "sums of at least 4 clients, and the server would make one of 3" in refusal(
        again, signed_messages.sign_request(about, body, key)
    )


def test_updates_that_only_the_server_adds_noise_to_leave_when_the_owner_says_so(tmp_path: Path) -> None:
    site, node = copy_site(tmp_path, CENTRAL), tmp_path / "client-0"
    algorithm = AppFolder.open(site.app).experiment.algorithm
    assert "READ THIS. In this experiment updates leave in clear" in (node / "policy.toml").read_text()
    with pytest.raises(PolicyRefusal, match="promise nothing against the server"):
        ClientFolder.open(node).policy.allow_clear_update(algorithm)
    edit_policy(node, "trust_server_with_updates = false", "trust_server_with_updates = true")
    ClientFolder.open(node).policy.allow_clear_update(algorithm)


def test_updates_with_their_own_noise_need_no_such_word(tmp_path: Path) -> None:
    site, node = copy_site(tmp_path, PLAIN), tmp_path / "client-0"
    assert "!!!" not in (node / "policy.toml").read_text()
    ClientFolder.open(node).policy.allow_clear_update(AppFolder.open(site.app).experiment.algorithm)


def on_a_graph(identities: list[bytes], assumed: Assumptions) -> Terms:
    return Terms.choose(clients=len(identities), length=5, identities=tuple(identities), assumptions=assumed)


def test_a_graph_is_refused_unless_the_owner_allows_it_and_it_withstands_what_the_noise_was_sized_for(
    tmp_path: Path,
) -> None:
    """Of 300 clients the graph lets 30 collude and 15 leave; the noise was sized for as many, and then for one more."""
    copy_site(tmp_path, SECURE)
    identities = [key_agreement.identity_key(key_agreement.random_bytes(32)) for _ in range(300)]
    members = {f"client-{at}": each.hex() for at, each in enumerate(identities)}
    policy = replace(ClientFolder.open(tmp_path / "client-0").policy, members=members)
    terms = on_a_graph(identities, Assumptions(colluding=0.1, leaving=0.05))
    assert terms.is_on_graph
    with pytest.raises(PolicyRefusal, match="promises nothing against a server that lies"):
        policy.allow_terms(terms, identities, SessionPlan(30, 15, 200))
    allowing = replace(policy, graphs=True)
    allowing.allow_terms(terms, identities, SessionPlan(30, 15, 200))
    with pytest.raises(PolicyRefusal, match=r"0\.1 of 300 clients colluding, and the noise was computed for 31"):
        allowing.allow_terms(terms, identities, SessionPlan(31, 15, 200))
    with pytest.raises(PolicyRefusal, match=r"0\.05 of 300 clients leaving, and the noise was computed for 16"):
        allowing.allow_terms(terms, identities, SessionPlan(30, 16, 200))


@pytest.mark.parametrize(
    ("line", "new", "why"),
    [
        ("epsilon", 'epsilon = "3"', "budgets.0.epsilon: must be a number, and got '3'."),
        ("secure_sum", "secure_sum = yes", "this is not valid TOML: Invalid value (at line 14, column 14)."),
        ("period", 'period = "week"', "period: must be 'ever', 'year', 'quarter' or 'month', and got 'week'."),
    ],
)
def test_a_wrong_line_of_a_policy_is_named_once_and_to_be_corrected_there(
    tmp_path: Path, line: str, new: str, why: str
) -> None:
    """Enrolling again instead would create other keys and a second ledger."""
    copy_site(tmp_path, PLAIN)
    node = tmp_path / "client-0"
    policy = (node / "policy.toml").read_text().splitlines()
    edit_policy(node, next(each for each in policy if each.startswith(line)), new)
    with pytest.raises(InvalidInput) as refused:
        ClientFolder.open(node)
    assert refused.value.problem == f"{node / 'policy.toml'}: {why}"
    assert refused.value.fix.startswith("Correct the file")


def test_a_policy_without_a_budget_is_refused(tmp_path: Path) -> None:
    copy_site(tmp_path, PLAIN)
    policy = ClientFolder.open(tmp_path / "client-0").policy
    with pytest.raises(InvalidInput, match="budgets must not be empty"):
        replace(policy, budgets=())


def test_a_folder_without_a_policy_is_one_that_nobody_enrolled_in(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file .*policy\.toml\. Create it with: discreet deploy enroll"):
        ClientFolder.open(tmp_path)
