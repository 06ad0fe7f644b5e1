"""A client's side of `discreet deploy`: enroll, accept, and client, which stays."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from discreet.cli.options import AcceptDataRanges, DataDir, Number
from discreet.cli.output import Json, emit, print_note
from discreet.errors import InvalidInput, Unsupported
from discreet.part import NonNegative

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def enroll(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    app: Annotated[
        Path, typer.Option(metavar="DIR", show_default=False, help="The folder that the server handed out (app).")
    ] = Path("app"),
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="This client's own table.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to; default: NAME.")] = None,
    ledgers: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where other deployments on the same rows count; one budget.")
    ] = None,
    accept_data_ranges: AcceptDataRanges = False,
    as_json: Json = False,
) -> None:
    """Make the client NAME's folder: keys, card and policy.

    The policy is for the data's owner to read, and to change.
    """
    from discreet.deploy.app_folder import AppFolder
    from discreet.deploy.enrolment import enroll as make
    from discreet.deploy.enrolment import find_shared_ledger
    from discreet.deploy.peer_cards import fingerprint

    where, agreed = folder or Path(name), AppFolder.open(app)
    kept = None if ledgers is None else find_shared_ledger(ledgers)
    made = make(agreed, name, where, data, ledgers, accept_data_ranges=accept_data_ranges)
    card = where / f"{name}.toml"
    page = [
        f"Made {where}. Its card is {fingerprint(made)}. Next:",
        f"  read {where / 'policy.toml'}, and change what you don't allow",
        f"  hand {card} to whoever runs the server; all else in {where} stays here",
        f"  when the server has handed out all cards: discreet deploy accept {quote(str(where))}",
        f"  discreet deploy client {quote(str(where))}",
    ]
    if kept is not None:
        page.append(f"Note: {kept[1]} has begun, so the policy has its budgets, and what it counted is spent.")
    elif ledgers is not None:
        page.append(
            f"Note: no ledger has begun in {ledgers}. The first node that counts there begins it with its own budgets, "
            "and the\nothers can count there once their policies have the same."
        )
    if agreed.user_files:
        page.append(
            f"Note: the experiment brings files of its own ({', '.join(agreed.user_files)}) that would run on this "
            "machine, and\nthe node does not start before its owner has set own_code = true. Read them first, in "
            f"{app}."
        )
    result = {
        "folder": str(where),
        "card": str(card),
        "fingerprint": fingerprint(made),
        "ledger": None if kept is None else str(kept[1]),
        "own_code": list(agreed.user_files),
    }
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def accept(
    folder: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    code: Annotated[
        str | None, typer.Option(metavar="CODE", help="What the others read out; if it is the same, pin the cards.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say who the other clients are, for secure sums.

    Without --code: show the cards' fingerprints and their common code, for the owners to compare by telephone. Whoever
    could choose the cards could be all the other clients.
    """
    from discreet.deploy.peer_cards import PeerCards

    cards = PeerCards.open(folder)
    wide = max(map(len, cards.fingerprints))
    page = [f"{name:<{wide}}  {each}" for name, each in cards.fingerprints.items()]
    if code is None:
        page += [
            f"All together: {cards.code}",
            "Ask each of the others for this code, by a number that you did not get from the server. Then:",
            f"  discreet deploy accept {quote(str(folder))} --code CODE",
        ]
    else:
        cards.pin(code)
        page.append(f"Pinned in {folder / 'policy.toml'}. Next: discreet deploy client {quote(str(folder))}")
    result = {"code": cards.code, "fingerprints": cards.fingerprints, "pinned": code is not None}
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def client(
    folder: Annotated[Path, typer.Argument(metavar="DIR", hidden=True)],
    supernode: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Work for a stock SuperNode there (--isolation process).")
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            click_type=Number("seconds", NonNegative),
            metavar="SECONDS",
            show_default=False,
            help="For a server that is up and does not know this node yet (60); one that is away is always waited for.",
        ),
    ] = 60.0,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Answer the server as DIR/policy.toml allows, and stay.

    No code that a server ships is run, unless the policy has own_code = true. What is refused is said here and to the
    server.
    """
    from discreet.deploy.client_node import ClientNode

    if supernode is not None and supernode.rpartition(":")[0] not in LOOPBACK:
        raise InvalidInput(
            f"A stock SuperNode is worked for on this machine alone, unencrypted, and got {supernode!r}.",
            fix="Say --supernode 127.0.0.1:PORT",
        )
    os.umask(0o077)  # what is written from here on is the owner's alone
    node = replace(ClientNode.open(folder, print_note, data_dir), told=print_note)
    node.ready()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the server hears that it went
    try:
        from discreet.engines.flower import task_executor
        from discreet.engines.flower.supernode import SuperLinkAddress, run_node
    except ImportError:
        raise Unsupported("Flower is not installed here.", fix="pip install 'discreet[flower]'") from None
    emit(lambda: {"client": node.client_folder.policy.client, "app": node.app.digest}, list, as_json=as_json)
    print_note(
        f"{node.client_folder.policy.client} has its data, {node.learner.data.sizes[node.learner.place]} examples."
    )
    for sentence in node.learner.notices:
        print_note(sentence)
    if supernode is not None:
        task_executor.run_executor(supernode, node.answer, print_note)
    else:
        place = SuperLinkAddress(node.app.deployment.address, node.app.certificate, folder / "node.key", wait)
        run_node(place, node.answer, print_note)
