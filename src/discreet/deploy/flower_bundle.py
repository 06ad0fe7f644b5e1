"""The files that make the agreed folder a Flower app: what Flower's own commands start."""

from pathlib import Path

PYPROJECT = """\
# A Flower app, written by `discreet deploy init`. Nodes run their own code, never what is shipped in a bundle.
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "1.0.0"
description = "A deployment of discreet"
license = "Apache-2.0"
dependencies = []  # discreet is installed on every machine by its owner

[tool.flwr.app]
publisher = "discreet"

[tool.flwr.app.components]
serverapp = "server_app:app"
clientapp = "client_app:app"

[tool.flwr.app.config]
folder = ""  # of the deployment, on the server's machine
name = "first"  # of the run
nodes = ""  # in a simulation: where the clients' folders lie
trusted = ""  # digests of the code in this folder that may run at the server
"""

SERVER_APP = '''\
"""The server's half, as Flower starts it: by `discreet deploy submit`, or by `flwr run`."""

from task import main

from discreet.engines.flower.flower_apps import server_app

app = server_app(main)
'''

CLIENT_APP = '''\
"""A client's half, for a stock SuperNode; `discreet deploy client` runs the same code, and imports no bundle."""

from task import build_responder

from discreet.engines.flower.flower_apps import client_app

app = client_app(build_responder)
'''

TASK = '''\
"""What both halves do: the code is the installed package's, and all that it reads lies on the machine it runs on."""

from discreet.deploy.entry_points import build_responder, main

__all__ = ["build_responder", "main"]
'''


BUNDLE_FILES = {"server_app.py": SERVER_APP, "client_app.py": CLIENT_APP, "task.py": TASK}


def write_bundle(app: Path, deployment: str) -> None:
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in deployment.lower()).strip("-")
    (app / "pyproject.toml").write_text(PYPROJECT.format(name=name or "deployment"), encoding="utf-8")
    for file, text in BUNDLE_FILES.items():
        (app / file).write_text(text, encoding="utf-8")
