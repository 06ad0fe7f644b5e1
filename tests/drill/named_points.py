"""The named points at which the drill holds a process: around a method, or before a file changes as a run is made."""

from typing import NamedTuple


class Point(NamedTuple):
    """A place in the code of a node ("client") or of a run's process ("run")."""

    role: str
    module: str
    method: str
    after: bool


class Change(NamedTuple):
    """A change of a file below the folder of runs: an audit event of Python, and how the changed path ends."""

    event: str
    path: str  # a regular expression


_RECORD, _PLAYER = "discreet.experiment.run_directory.run_record", "discreet.experiment.loop.round_player"
_NODE, _JOURNAL = "discreet.deploy.client_ledger", "discreet.deploy.journal"
POINTS = {
    "before the server reserves": Point("run", _PLAYER, "RoundPlayer.reserve", after=False),
    "after the server reserved": Point("run", _PLAYER, "RoundPlayer.reserve", after=True),
    "after the gather, before the checkpoint": Point("run", _RECORD, "RunRecord.save_checkpoint", after=False),
    "after the checkpoint, before the commit": Point("run", _RECORD, "RunRecord.save_checkpoint", after=True),
    "after the commit": Point("run", _PLAYER, "RoundPlayer.settle", after=True),
    "before a node reserves": Point("client", _NODE, "ClientLedger.reserve", after=False),
    "after a node reserved": Point("client", _NODE, "ClientLedger.reserve", after=True),
    "after an attempt is noted": Point("client", _JOURNAL, "Journal.begin_attempt", after=True),
    "between a reply announced and pushed": Point(
        "client", "flwr.supernode.fleet_http_client", "FleetHttpClient.PushMessages", after=True
    ),
}
CREATION = {
    "creation: before the run's lock": Change("open", r"/run-\d+\.lock"),
    "creation: before the draft folder": Change("os.mkdir", r"/\.run-\d+\.\w+"),
    "creation: before resolved.toml is drafted": Change("open", r"/\.resolved\.toml\.draft"),
    "creation: before resolved.toml is renamed": Change("os.rename", r"/\.resolved\.toml\.draft"),
    "creation: before environment.json is drafted": Change("open", r"/\.environment\.json\.draft"),
    "creation: before environment.json is renamed": Change("os.rename", r"/\.environment\.json\.draft"),
    "creation: before run.json is drafted": Change("open", r"/\.run\.json\.draft"),
    "creation: before run.json is renamed": Change("os.rename", r"/\.run\.json\.draft"),
    "creation: before the ledger is drafted": Change("open", r"/\.ledger\.jsonl\.[\d-]+"),
    "creation: before the ledger's draft is removed": Change("os.remove", r"/\.ledger\.jsonl\.[\d-]+"),
    "creation: before the draft folder is renamed": Change("os.rename", r"/\.run-\d+\.\w+"),
    "creation: before the ledger is opened": Change("open", r"/run-\d+/ledger\.jsonl"),
}


def role_at(point: str, client: str) -> str:
    """Return which process reaches this point: a node by its client's name, or the run's process."""
    return client if point in POINTS and POINTS[point].role == "client" else "run"
