"""Enrol a client: create its keys, its card for the server, and the policy that its owner decides on."""

from pathlib import Path
from shlex import quote

from discreet.data.tables.table_task import TableTask
from discreet.data.tasks.task_loading import check_names_persons
from discreet.deploy import certificates
from discreet.deploy.app_folder import AppFolder
from discreet.deploy.client_ledger import find_ledgers
from discreet.deploy.client_node import today
from discreet.deploy.deployment import Card, write_record
from discreet.deploy.learner import load_client_data
from discreet.deploy.policy import POLICY_FILE, ClientFolder, Period
from discreet.deploy.policy_template import write_policy
from discreet.durable_files import write_durably
from discreet.errors import InvalidInput
from discreet.experiment.promise.data_ranges import check_accepted
from discreet.experiment.run_directory.run_record import check_path_is_free, explain_os_errors


def enroll(
    app: AppFolder,
    client: str,
    folder: Path,
    data: Path | None,
    ledgers: Path | None = None,
    *,
    accept_data_ranges: bool = False,
) -> Card:
    """Create a client's folder with keys, card and policy. Loads no Python of the experiment.

    The policy's budgets are what the experiment needs, for the owner to change.

    Args:
        app: The app folder.
        client: The client's name.
        folder: A folder that does not exist or is empty.
        data: The client's own table. None: its share of the experiment's task.
        ledgers: Folder in which other deployments on the same data count. A ledger that has begun there keeps its
            budgets and its period.
        accept_data_ranges: Whether to accept ranges that were taken from data.

    Returns:
        The client's card.

    Raises:
        InvalidInput: The data is not as declared, or the shared ledger can't count the experiment.
    """
    check_path_is_free(folder)
    accepted = _check_data(app, app.client_number(client), data, accept_data_ranges=accept_data_ranges)
    algorithm = app.experiment.algorithm
    shared = None if ledgers is None else find_shared_ledger(ledgers)
    text = write_policy(app, algorithm, client, folder, data, ledgers or folder, shared, data_ranges=accepted)
    with explain_os_errors("client's folder", folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        card = Card(
            name=client,
            node_key=certificates.write_node_key(folder / "node.key"),
            identity=certificates.write_signing_key(folder / "identity.key"),
        )
        certificates.write_key(folder / "noise.key")
        write_durably(folder / POLICY_FILE, text.encode())
        write_record(card, folder / f"{client}.toml")
    return card


def _check_data(app: AppFolder, client: int, data: Path | None, *, accept_data_ranges: bool) -> bool:
    """Check the client's data as its node will, before the card is handed out.

    Returns:
        Whether the columns are scaled by ranges that were taken from data and accepted.
    """
    privacy = app.experiment.privacy
    if privacy is not None and privacy.person is not None:
        check_names_persons(app.experiment.task, privacy.person)
    if data is None:
        if isinstance(app.experiment.task, TableTask):
            raise InvalidInput(
                "Each client of this experiment has its own table, and none was named.",
                fix="Name this client's own table: --data FILE",
            )
        return False  # the node loads its share of the task when it starts
    if not data.is_file():
        raise InvalidInput(f"There is no file {data}.", fix="Name this client's own table: --data FILE")
    loaded = load_client_data(app, client, data, app.source().paths)
    check_accepted(loaded.ranges_from_data, accepted=accept_data_ranges)
    return loaded.ranges_from_data


def find_shared_ledger(ledgers: Path) -> tuple[Period, Path] | None:
    """Find the ledger in this folder that counts today, with its kind of period; None if none has begun.

    Raises:
        InvalidInput: The folder does not exist (a mistyped name would begin a second budget), belongs to a client who
            counts elsewhere, or has several ledgers for today.
    """
    if not ledgers.exists():
        raise InvalidInput(
            f"There is no folder {ledgers}.",
            fix="Name the folder in which the other deployments on the same rows count; or, if this is the first one, "
            "create an empty folder.",
        )
    if not ledgers.is_dir():
        raise InvalidInput(f"{ledgers} is not a folder.", fix="Name the folder of the ledgers: --ledgers DIR")
    if (ledgers / POLICY_FILE).exists() and (theirs := ClientFolder.read(ledgers).policy.ledgers) != ".":
        raise InvalidInput(
            f"{ledgers} is the folder of a client whose ledgers are in another folder.",
            fix=f"Use --ledgers {quote(str(ledgers / theirs))}",
        )
    matches = list(find_ledgers(ledgers, today()).items())
    if len(matches) > 1:
        raise InvalidInput(
            f"{ledgers} has {len(matches)} ledgers for today, {', '.join(path.name for _, path in matches)}.",
            fix="Name a folder with one ledger: nobody can tell which of them counts.",
        )
    return matches[0] if matches else None
