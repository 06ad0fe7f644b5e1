"""A client joins: keys that never leave its machine, a card to hand on, and a policy for its owner to read."""

import os
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from discreet.algorithms.algorithm import Algorithm
from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.task_loading import check_names_persons
from discreet.deploy import certificates
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import budget_for_run, find_ledgers
from discreet.deploy.client_node import today
from discreet.deploy.deployment import Card
from discreet.deploy.learner import load_client_data
from discreet.deploy.policy import POLICY_FILE as POLICY_FILE
from discreet.deploy.policy import ClientFolder, Period
from discreet.engines.secure_terms import plan_degree, plan_session
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration import toml_document
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.promise.data_ranges import check_accepted
from discreet.experiment.run_directory.run_record import check_path_is_free, explain_os_errors
from discreet.part import to_plain
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.ledger.charges import charges
from discreet.privacy.release import Release, relations_for
from discreet.privacy.wording import describe_relation

POLICY_TEXT = """\
# What the owner of this data allows. The node keeps to it whatever a server says. Read it before you start the node,
# which reads it once, when it starts: a change counts from the next start on.
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
{code}own_code = false         # true: Python that lies in the app folder may run on this machine
seeds = false            # true: noise from a seed, which protects nobody: for data that need no protection
data_ranges = {data_ranges}      # true: ranges that were taken from data, which no guarantee covers

# Where it is counted what was learned of this data. Every deployment on the same rows has to name the same folder (with
# `discreet deploy enroll --ledgers`): those that count apart allow each its own budget, and together the sum of them.
ledgers = "{ledgers}"
period = "{period}"          # after which a new ledger begins; "ever", "year", "quarter" or "month"

# The most that may be learned of one unit in a period, over all runs that are counted there. `relation` says what an
# onlooker may not tell apart.
{relations}{budgets}"""
AGREED_BUDGET = """\
# This is what the agreed experiment takes, with a tenth of its rounds to spare for those that have to be made again.
"""
LEDGER_BUDGET = """\
# These are the budgets that {ledger} was opened with, which a ledger keeps; what it counted is spent.
"""

CLEAR_WARNING = """
# !!! READ THIS. In this experiment every update leaves in clear, and nothing is promised against the server: where
# !!! noise is central, only the server adds it, afterwards. Whoever runs the server sees each update of this client by
# !!! itself, and can learn from it about single rows. The budget below is about everybody else. The node answers
# !!! nothing until you have decided that the server may see that much, and have set this to true.
"""
GRAPH_WARNING = """
# !!! READ THIS. So many clients take part that this experiment's secure sums are made on a graph, and the node refuses
# !!! them until you have decided that the server keeps to the rules, and have set this to true.
"""
CODE_WARNING = """
# !!! READ THIS. This experiment brings files of its own, {files}, and as part of the training they would
# !!! run on this machine, with all that you may do here: they could read other files, or send rows away. Neither
# !!! noise nor budget protects from that. The node does not start until you have read them, and have set this to true.
# !!! Another version of them is another algorithm, which is refused.
"""
TRUST_COMMENT = (
    "# true: the server may see updates that no noise protects from it; this experiment does not ask for that\n"
)


def enroll(
    app: AppFolder,
    client: str,
    folder: Path,
    data: Path | None,
    ledgers: Path | None = None,
    *,
    accept_data_ranges: bool = False,
) -> Card:
    """Make the client's folder. What is written as budget is what the agreed experiment takes; its owner decides.

    `ledgers` is where other deployments count what they learn of the same data; a ledger that began there keeps its
    budgets and its period. Nothing of the experiment's own Python is loaded. Ranges that were taken from data are
    refused, unless the owner accepts them.
    """
    check_path_is_free(folder)
    accepted = _check_data(app, app.client_number(client), data, accept_data_ranges=accept_data_ranges)
    algorithm = app.experiment.algorithm
    found = None if ledgers is None else find_shared_ledger(ledgers)
    text = _policy_text(app, algorithm, client, folder, data, ledgers or folder, found, data_ranges=accepted)
    with explain_os_errors("client's folder", folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        card = Card(
            name=client,
            node_key=certificates.write_node_key(folder / "node.key"),
            identity=certificates.write_signing_key(folder / "identity.key"),
        )
        certificates.write_key(folder / "noise.key")
        (folder / POLICY_FILE).write_text(text, encoding="utf-8")
        (folder / f"{client}.toml").write_text(toml_document.format_toml(to_plain(card)), encoding="utf-8")
    return card


def _check_data(app: AppFolder, client: int, data: Path | None, *, accept_data_ranges: bool) -> bool:
    """As the node will when it starts: what it would refuse is found before a card is handed out.

    Whether its columns are scaled by ranges that were taken from data, and accepted.
    """
    privacy = app.experiment.privacy
    if privacy is not None and privacy.person is not None:
        check_names_persons(app.experiment.task, privacy.person)
    if data is None:
        if isinstance(app.experiment.task, TableTask):
            raise InvalidInput(
                "The experiment is about tables, of which each client has its own, and none was named.",
                fix="Name this client's own table: --data FILE",
            )
        return False  # dealt out: the node fetches it when it starts
    if not data.is_file():
        raise InvalidInput(f"There is no file {data}.", fix="Name this client's own table: --data FILE")
    loaded = load_client_data(app, client, data)
    check_accepted(loaded.ranges_from_data, accepted=accept_data_ranges)
    return loaded.ranges_from_data


def find_shared_ledger(ledgers: Path) -> tuple[Period, Path] | None:
    """The ledger in this folder that counts today, and for which kind of period; None where none has begun.

    The folder must be there: one that is made for a name with a typing error would begin a second budget.
    """
    if not ledgers.exists():
        raise InvalidInput(
            f"There is no folder {ledgers}, so nothing was ever counted there.",
            fix="Name the folder where the other deployments on the same rows count; or, if this is the first of "
            "them, make an empty one.",
        )
    if not ledgers.is_dir():
        raise InvalidInput(f"{ledgers} is no folder.", fix="Name the one where the ledgers lie: --ledgers DIR")
    if (ledgers / POLICY_FILE).exists() and (theirs := ClientFolder.read(ledgers).policy.ledgers) != ".":
        raise InvalidInput(
            f"{ledgers} is a client's folder, and what it counts lies elsewhere.",
            fix=f"Say --ledgers {quote(str(ledgers / theirs))}",
        )
    found = list(find_ledgers(ledgers, today()).items())
    if len(found) > 1:
        raise InvalidInput(
            f"{ledgers} has {len(found)} ledgers for today, {', '.join(path.name for _, path in found)}.",
            fix="Name a folder with one: nobody can say which of them counts.",
        )
    return found[0] if found else None


def _policy_text(
    app: AppFolder,
    algorithm: Algorithm,
    client: str,
    folder: Path,
    data: Path | None,
    ledgers: Path,
    found: tuple[Period, Path] | None,
    *,
    data_ranges: bool,
) -> str:
    budget = _experiment_budget(app, algorithm)
    period, budgets = ("year", (budget,)) if found is None else (found[0], Ledger.open(found[1]).budgets)
    where = "The policy" if found is None else str(found[1])
    check_budgets(budgets, app.experiment.privacy, algorithm, app.population, where)
    if found is not None:
        _check_counted(budgets, app, algorithm, where)
    relations = dict.fromkeys(describe_relation(each.relation, each.unit) for each in budgets)
    head = POLICY_TEXT.format(
        client=client,
        app=_relative_path(app.folder, folder),
        data="" if data is None else f'\ndata = "{_relative_path(data, folder)}"',
        server_key=app.deployment.server_key,
        digest=app.digest,
        secure=str(algorithm.aggregation.is_secure).lower(),
        cohort=max(2, plan_session(algorithm, app.population.clients).needed),
        graph=GRAPH_WARNING if uses_graph(app) else "",
        trust=CLEAR_WARNING if needs_server_trust(app) else TRUST_COMMENT,
        data_ranges=str(data_ranges).lower(),
        code=CODE_WARNING.format(files=", ".join(app.user_files)) if app.user_files else "",
        ledgers=_relative_path(ledgers, folder),
        period=period,
        relations="".join(f"# {each}\n" for each in relations),
        budgets=AGREED_BUDGET if found is None else LEDGER_BUDGET.format(ledger=found[1].name),
    )
    return head + toml_document.format_toml({"budgets": [to_plain(each) for each in budgets]})


def needs_server_trust(app: AppFolder) -> bool:
    """Whether the server sees updates in clear, and what is promised is promised against others."""
    algorithm, privacy = app.experiment.algorithm, app.experiment.privacy
    if algorithm.aggregation.is_secure:
        return False
    views = [privacy.against] if privacy else [each.view for each in algorithm.planned_releases(1, app.population)][:1]
    return views != ["server"]


def uses_graph(app: AppFolder) -> bool:
    """Whether the secure sums are so large that each client shares masks with some of the others only."""
    algorithm = app.experiment.algorithm
    secure = algorithm.aggregation.is_secure
    return secure and plan_degree(algorithm, app.population, signed=True).assumptions is not None


def _experiment_budget(app: AppFolder, algorithm: Algorithm) -> Budget:
    """For the unit and view that were promised, or else those that the algorithm protects."""
    privacy, rounds = app.experiment.privacy, app.experiment.rounds
    found: list[Release] = algorithm.planned_releases(rounds, app.population)
    if not found:
        raise InvalidInput("The experiment adds no noise: there is nothing that a policy could allow.")
    unit, view = (privacy.unit, privacy.against) if privacy else (found[0].unit, found[0].view)
    for relation in relations_for(unit):
        budget = Budget(
            unit=unit,
            relation=relation,
            view=view,
            epsilon=privacy.largest_epsilon if privacy else 1.0,
            delta=privacy.delta if privacy else 1e-5,
        )
        try:
            return budget_for_run(budget, algorithm, app.population, rounds)
        except Unsupported:
            continue
    raise InvalidInput(f"The experiment does not protect one {unit} against the {view}.")


def _check_counted(budgets: Sequence[Budget], app: AppFolder, algorithm: Algorithm, ledger: str) -> None:
    """Refuse a ledger that has begun and could not count the experiment, as a node would."""
    asked = algorithm.planned_releases(app.experiment.rounds, app.population)
    try:
        for budget in budgets:
            charges(budget, asked)
    except Unsupported as unread:
        raise InvalidInput(f"{ledger} can't count this experiment: {unread.problem}", fix=unread.fix) from None


def _relative_path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
