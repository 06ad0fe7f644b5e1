"""`discreet deploy`: run an experiment on real clients, each on its own machine, over Flower."""

import typer

from discreet.cli.deploy import client_commands, membership_commands, renew_command, server_commands, status_command
from discreet.extras import is_installed, missing_library

EPILOG = """\b
In order, at the server (S) and at each client (C):
S discreet deploy init hospitals visits.toml \\
      --clients north=480,south=350,east=410 --host fl.example.org
C discreet deploy enroll north --app app --data north.csv
C discreet deploy accept north
S discreet deploy server hospitals
C discreet deploy client north
S discreet deploy submit hospitals --name first
S discreet deploy status hospitals
"""

app = typer.Typer(help="Run an experiment on real clients, over Flower.", no_args_is_help=True, epilog=EPILOG)


@app.callback()
def _check_extra() -> None:
    if not is_installed("cryptography"):  # name the extra that has all of it at once
        raise missing_library("flwr", "A deployment")


app.command("init")(server_commands.init)
app.command("enroll")(client_commands.enroll)
app.command("accept")(client_commands.accept)
app.command("server")(server_commands.server)
app.command("client")(client_commands.client)
app.command("submit")(server_commands.submit)
app.command("simulate")(server_commands.simulate)
app.command("status")(status_command.status)
app.command("renew")(renew_command.renew)
app.command("add")(membership_commands.add)
app.command("revoke")(membership_commands.revoke)
