"""Write the policy of a new client: the text of policy.toml with the budgets that the experiment needs."""

import os
from collections.abc import Sequence
from pathlib import Path

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.declarations import client_parts
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import budget_for_run
from discreet.deploy.policy import Period
from discreet.engines.secure_terms import plan_degree, plan_session
from discreet.errors import InvalidInput, Unsupported
from discreet.experiment.configuration import toml_document
from discreet.experiment.promise.budget_check import check_budgets
from discreet.experiment.promise.promise import Privacy
from discreet.file_version import FIRST
from discreet.part import to_plain
from discreet.privacy.ledger import Budget, Ledger
from discreet.privacy.ledger.charges import charges
from discreet.privacy.release import Release, relations_for
from discreet.privacy.wording import describe_relation

POLICY_TEXT = """\
# What the owner of this data allows. The node follows it, whatever a server asks for. Read it before you start the
# node, which reads it when it starts: a change takes effect at the next start.
version = {version}              # of the form of this file
client = "{client}"
app = "{app}"{data}

# The only server whose requests are answered, by its signing key, and what it may ask for. The digest `{digest:.12}…`
# covers resolved.toml with its task and all its numbers, and the clients' names and sizes: if they change, it changes.
# It does not cover the other clients' keys: `discreet deploy accept` pins them below, as [members].
server_key = "{server_key}"
algorithms = ["{digest}"]
membership = {membership}           # the list of clients; `discreet deploy accept` shows and accepts a later one

secure_sum = {secure}       # true: updates leave only masked, inside a secure sum
minimum_cohort = {cohort}       # the fewest clients in a sum
{graph}graphs = false           # true: allow large secure sums on a graph, which do not withstand a server that lies
{trust}trust_server_with_updates = false
{code}own_code = false         # true: Python files in the app folder may run on this machine
seeds = false            # true: allow noise from a seed, which protects nobody; for data that need no protection
data_ranges = {data_ranges}      # true: allow ranges that were taken from data, which no guarantee covers

# The folder of the ledgers that count what was learned from this data. All deployments on the same rows must name the
# same folder (`discreet deploy enroll --ledgers`): with separate ledgers each of them could spend a whole budget.
ledgers = "{ledgers}"
period = "{period}"          # after which a new ledger begins: "ever", "year", "quarter" or "month"

# The most that may be learned about one unit in a period, over all runs that these ledgers count. `relation` says which
# two cases an observer must not be able to tell apart.
{relations}{budgets}"""
AGREED_BUDGET = """\
# The agreed experiment needs this much, with a tenth of its rounds to spare for rounds that have to be repeated.
"""
LEDGER_BUDGET = """\
# The budgets with which {ledger} was created, and which a ledger keeps. What it has counted is spent.
"""

CLEAR_WARNING = """
# !!! READ THIS. In this experiment updates leave in clear, and nothing is promised against the server: central noise is
# !!! added by the server, afterwards. The server's operator sees each update of this client and can learn about single
# !!! rows from it. The budget below is about everybody else. The node refuses every request until you decide that the
# !!! server may see this much, and set this to true.
"""
GRAPH_WARNING = """
# !!! READ THIS. This experiment has so many clients that its secure sums are made on a graph. The node refuses them
# !!! until you decide that the server follows the protocol, and set this to true.
"""
CODE_WARNING = """
# !!! READ THIS. This experiment has files of its own, {files}, which would run on this machine
# !!! with all your rights: they could read other files, or send rows away. Neither noise nor budget protects from that.
# !!! The node does not start until you have read the files and set this to true. A changed file changes the digest in
# !!! `algorithms`, and is refused.
"""
PARTS_WARNING = """
# !!! READ THIS. This experiment brings parts of its own that bound and noise updates, or choose who joins: {titles}.
# !!! Nothing vouches for what they declare of themselves. The node does not start until you have read their files and
# !!! set a price: the noise, relative to the most that one unit of a budget moves what leaves this client in a round.
{entries}"""
PARTS_ENTRY = """\
# [[parts]]
# sha256 = "{sha256}"
# price = {{ kind = "gaussian", noise_multiplier = … }}
"""
TRUST_COMMENT = (
    "# true: the server may see updates that no noise protects from it; this experiment does not need that\n"
)


def write_policy(
    app: AppFolder,
    algorithm: Algorithm,
    client: str,
    folder: Path,
    data: Path | None,
    ledgers: Path,
    shared: tuple[Period, Path] | None,
    *,
    data_ranges: bool,
) -> str:
    """Return the text of policy.toml for a new client.

    Args:
        shared: A shared ledger that has begun, with its period: its budgets are used. None: the budgets are what
            the experiment needs.

    Raises:
        InvalidInput: The experiment adds no noise, or the shared ledger can't count it.
    """
    budget, parts = _experiment_budget(app, algorithm), client_parts(algorithm)
    period, budgets = ("year", (budget,)) if shared is None else (shared[0], Ledger.open(shared[1]).budgets)
    where = "The policy" if shared is None else str(shared[1])
    check_budgets(budgets, app.experiment.privacy, algorithm, app.population, where)
    if shared is not None:
        _check_counted(budgets, app, algorithm, where)
    relations = dict.fromkeys(describe_relation(budget.relation, budget.unit) for budget in budgets)
    head = POLICY_TEXT.format(
        version=FIRST,
        client=client,
        app=_relative_path(app.folder, folder),
        data="" if data is None else f'\ndata = "{_relative_path(data, folder)}"',
        server_key=app.deployment.server_key,
        digest=app.digest,
        membership=app.deployment.membership,
        secure=str(algorithm.aggregation.is_secure).lower(),
        cohort=2 if parts else max(2, plan_session(algorithm, app.population.clients).needed),
        graph=GRAPH_WARNING if uses_graph(app) else "",
        trust=CLEAR_WARNING if needs_server_trust(app) else TRUST_COMMENT,
        data_ranges=str(data_ranges).lower(),
        code=CODE_WARNING.format(files=", ".join(app.user_files)) if app.user_files else "",
        ledgers=_relative_path(ledgers, folder),
        period=period,
        relations="".join(f"# {relation}\n" for relation in relations),
        budgets=AGREED_BUDGET if shared is None else LEDGER_BUDGET.format(ledger=shared[1].name),
    )
    if parts:
        entries = "".join(PARTS_ENTRY.format(sha256=own.sha256) for own in parts)
        head += PARTS_WARNING.format(titles=", ".join(own.kind for own in parts), entries=entries)
    return head + toml_document.format_toml({"budgets": [to_plain(budget) for budget in budgets]})


def needs_server_trust(app: AppFolder) -> bool:
    """Whether the server sees updates in clear and the promise is not against the server."""
    algorithm, privacy = app.experiment.algorithm, app.experiment.privacy
    if algorithm.aggregation.is_secure:
        return False
    if privacy is not None:
        return privacy.against != "server"
    releases = algorithm.planned_releases(1, app.population)
    return not releases or releases[0].view != "server"


def uses_graph(app: AppFolder) -> bool:
    """Whether the secure sums are so large that each client shares masks with only some of the others."""
    algorithm = app.experiment.algorithm
    secure = not client_parts(algorithm) and algorithm.aggregation.is_secure
    return secure and plan_degree(algorithm, app.population, signed=True).assumptions is not None


def _experiment_budget(app: AppFolder, algorithm: Algorithm) -> Budget:
    """Compute the budget that the experiment needs, for the promised unit and view, or those of its first release."""
    privacy, rounds = app.experiment.privacy, app.experiment.rounds
    if client_parts(algorithm):
        return _promised_budget(privacy)
    releases: list[Release] = algorithm.planned_releases(rounds, app.population)
    if not releases:
        raise InvalidInput("The experiment adds no noise, so a policy can't allow it.")
    unit, view = (privacy.unit, privacy.against) if privacy else (releases[0].unit, releases[0].view)
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


def _promised_budget(privacy: Privacy | None) -> Budget:
    """Return what the experiment promises as a budget, where only the owner's prices can say what it needs."""
    if privacy is None:
        raise InvalidInput("The experiment brings parts of its own and promises nothing, so a policy can't allow it.")
    return Budget(
        unit=privacy.unit,
        relation=relations_for(privacy.unit)[-1],
        view=privacy.against,
        epsilon=privacy.largest_epsilon,
        delta=privacy.delta,
    )


def _check_counted(budgets: Sequence[Budget], app: AppFolder, algorithm: Algorithm, ledger: str) -> None:
    """Refuse a shared ledger that can't count the experiment, as the node would."""
    releases = algorithm.planned_releases(app.experiment.rounds, app.population)
    try:
        for budget in budgets:
            charges(budget, releases)
    except Unsupported as unread:
        raise InvalidInput(f"{ledger} can't count this experiment: {unread.problem}", fix=unread.fix) from None


def _relative_path(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
