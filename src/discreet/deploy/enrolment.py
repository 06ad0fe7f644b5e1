"""A client joins: keys that never leave its machine, a card to hand on, and a policy for its owner to read."""

import os
from pathlib import Path

from discreet.algorithms import Algorithm
from discreet.deploy import certificates
from discreet.deploy.app import App
from discreet.deploy.deployment import Card
from discreet.deploy.spending import allowance
from discreet.engines.planned_sums import degree_of, planned
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment import document
from discreet.experiment.record import refuse_taken
from discreet.part import plain
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Relation, Release

POLICY = """\
# What the owner of this data allows. The node keeps to it whatever a server says. Read it before you start the node.
client = "{client}"
app = "{app}"{data}

# The one server whose requests are heard, by the key it signs them with; and what it may ask for. `{digest:.12}…`
# stands for resolved.toml with its task and all its numbers, and for the clients' names and sizes: a change there is a
# change here. The other clients' keys are not in it: `discreet deploy accept` pins those, as [members].
server_key = "{server_key}"
algorithms = ["{digest}"]

secure_sum = {secure}       # true: an update leaves only under masks, inside a sum
minimum_cohort = {cohort}       # no sum of fewer clients
{graph}graphs = false           # true: large secure sums on a graph, which does not withstand a server that lies
{trust}trust_server_with_updates = false
seeds = false            # true: noise from a seed, which protects nobody: for data that need no protection
period = "year"          # after which a new ledger begins; "ever", "year", "quarter" or "month"

# The most that may be learned of one unit in a period, over all runs. This is what the agreed experiment takes, with
# a tenth of its rounds to spare for those that have to be made again.
"""

CLEAR = """
# !!! READ THIS. In this experiment every update leaves in clear, and nothing is promised against the server: where
# !!! noise is central, only the server adds it, afterwards. Whoever runs the server sees each update of this client by
# !!! itself, and can learn from it about single rows. The budget below is about everybody else. The node answers
# !!! nothing until you have decided that the server may see that much, and have set this to true.
"""
GRAPH = """
# !!! READ THIS. So many clients take part that this experiment's secure sums are made on a graph, and the node refuses
# !!! them until you have decided that the server keeps to the rules, and have set this to true.
"""
SUMMED = "# true: the server may see updates that no noise protects from it; this experiment does not ask for that\n"


def enroll(app: App, client: str, folder: Path, data: Path | None) -> Card:
    """Make the client's folder. What is written as budget is what the agreed experiment takes; its owner decides."""
    refuse_taken(folder)
    app.number(client)
    if data is not None and not data.is_file():
        raise InvalidInput(f"There is no file {data}.", fix="Name this client's own table: --data FILE")
    algorithm = app.experiment.algorithm
    assert isinstance(algorithm, Algorithm)  # the agreed folder has it in full
    budget = _budget(app, algorithm)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    card = Card(
        name=client,
        node_key=certificates.write_node_key(folder / "node.key"),
        identity=certificates.write_signing_key(folder / "identity.key"),
    )
    certificates.write_key(folder / "noise.key")
    head = POLICY.format(
        client=client,
        app=_seen_from(app.folder, folder),
        data="" if data is None else f'\ndata = "{_seen_from(data, folder)}"',
        server_key=app.deployment.server_key,
        digest=app.digest,
        secure=str(algorithm.aggregation.secure).lower(),
        cohort=max(2, planned(algorithm, app.population.clients).needed),
        graph=GRAPH if on_a_graph(app) else "",
        trust=CLEAR if trusts_server(app) else SUMMED,
    )
    text = head + document.written({"budgets": [plain(budget)]})
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    (folder / f"{client}.toml").write_text(document.written(plain(card)), encoding="utf-8")
    return card


def trusts_server(app: App) -> bool:
    """Whether the server sees updates in clear, and what is promised is promised against others."""
    algorithm, privacy = app.experiment.algorithm, app.experiment.privacy
    assert isinstance(algorithm, Algorithm)
    if algorithm.aggregation.secure:
        return False
    views = [privacy.against] if privacy else [each.view for each in algorithm.over(1, app.population)][:1]
    return views != ["server"]


def on_a_graph(app: App) -> bool:
    """Whether the secure sums are so large that each client shares masks with some of the others only."""
    algorithm = app.experiment.algorithm
    assert isinstance(algorithm, Algorithm)
    secure = algorithm.aggregation.secure
    return secure and degree_of(algorithm, app.population, signed=True).assumed is not None


def _budget(app: App, algorithm: Algorithm) -> Budget:
    """For the unit and view that were promised, or else those that the algorithm protects."""
    privacy, rounds = app.experiment.privacy, app.experiment.rounds
    found: list[Release] = algorithm.over(rounds, app.population)
    if not found:
        raise InvalidInput("The experiment adds no noise: there is nothing that a policy could allow.")
    unit, view = (privacy.unit, privacy.against) if privacy else (found[0].unit, found[0].view)
    relations: tuple[Relation, ...] = ("add_or_remove", "zero_out", "replace")
    for relation in relations:
        budget = Budget(
            unit=unit,
            relation=relation,
            view=view,
            epsilon=privacy.most if privacy else 1.0,
            delta=privacy.delta if privacy else 1e-5,
        )
        try:
            return allowance(budget, algorithm, app.population, rounds)
        except Unsupported:
            continue
    raise InvalidInput(f"The experiment does not protect one {unit} against the {view}.")


def _seen_from(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
