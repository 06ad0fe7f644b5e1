"""The named points at which the drill holds a process: a method, and whether to hold before or after its call."""

from typing import NamedTuple


class Point(NamedTuple):
    """A place in the code of a node ("client") or of a run's process ("run")."""

    role: str
    module: str
    method: str
    after: bool


_RECORD, _PLAYER = "discreet.experiment.run_directory.run_record", "discreet.experiment.loop.round_player"
_NODE, _JOURNAL = "discreet.deploy.client_ledger", "discreet.deploy.journal"
POINTS = {
    "while the run directory is made": Point("run", _RECORD, "RunRecord.create", after=False),
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
