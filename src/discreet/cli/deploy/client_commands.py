"""A client's commands of `discreet deploy`: enroll, accept and client."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli.deploy.health_option import HealthPort, print_health_address
from discreet.cli.deploy.status_command import Folder
from discreet.cli.options import AcceptDataRanges, DataDir, Number, number_option
from discreet.cli.output import Json, emit, print_note
from discreet.errors import InvalidInput, Unsupported
from discreet.part import NonNegative

if TYPE_CHECKING:
    from discreet.deploy.peer_cards import PeerCards

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def enroll(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    app: Annotated[
        Path, typer.Option(metavar="DIR", help="The app folder that the server's operator handed out.")
    ] = Path("app"),
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="This client's own table.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", show_default="NAME", help="Folder to create.")
    ] = None,
    ledgers: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder in which other deployments on the same rows count, for one common budget."
        ),
    ] = None,
    accept_data_ranges: AcceptDataRanges = False,
    as_json: Json = False,
) -> None:
    """Create a client's folder with keys, card and policy.

    The owner of the data reads the policy, and changes it if needed.
    """
    from discreet.deploy import enrolment
    from discreet.deploy.app_folder import AppFolder
    from discreet.deploy.peer_cards import fingerprint

    where, agreed = folder or Path(name), AppFolder.open(app)
    shared = None if ledgers is None else enrolment.find_shared_ledger(ledgers)
    own_card = enrolment.enroll(agreed, name, where, data, ledgers, accept_data_ranges=accept_data_ranges)
    card = where / f"{name}.toml"
    page = [
        f"Created {where}. Its card is {fingerprint(own_card)}. Next:",
        f"  read {where / 'policy.toml'}, and change what you don't allow",
        f"  hand {card} to the server's operator; everything else in {where} stays here",
        f"  when the server has handed out all cards: discreet deploy accept {quote(str(where))}",
        f"  discreet deploy client {quote(str(where))}",
    ]
    if shared is not None:
        page.append(f"Note: {shared[1]} has begun, so the policy has its budgets, and what it has counted is spent.")
    elif ledgers is not None:
        page.append(
            f"Note: no ledger has begun in {ledgers}. The first node that counts there creates it with its own "
            "budgets,\nand the others can count there if their policies have the same budgets."
        )
    if agreed.user_files:
        page.append(
            f"Note: the experiment has files of its own ({', '.join(agreed.user_files)}) that would run on this "
            "machine.\nThe node does not start until its owner sets own_code = true. Read the files first, in "
            f"{app}."
        )
    result = {
        "folder": str(where),
        "card": str(card),
        "fingerprint": fingerprint(own_card),
        "ledger": None if shared is None else str(shared[1]),
        "own_code": list(agreed.user_files),
    }
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def accept(
    folder: Folder,
    code: Annotated[
        str | None,
        typer.Option(
            metavar="CODE", help="The code that the other clients read out. If it is the same here, pin the cards."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the other clients' cards, and pin them for secure sums.

    Without --code, show the cards' fingerprints and their common code, for the owners to compare by telephone. Somebody
    who could choose the cards could play all other clients.

    If clients were added, revoked or given new keys since, show what changed. Then --code also signs the new list.
    """
    from discreet.deploy.peer_cards import PeerCards

    cards = PeerCards.open(folder)
    page = _describe_membership(cards)
    signed = None
    if code is None:
        page += [f"All together: {cards.code}", *_comparing_steps(cards, folder)]
    else:
        signed = cards.pin(code)
        page += _pinned_steps(folder, signed)
    result = {
        "code": cards.code,
        "fingerprints": cards.fingerprints,
        "membership": cards.membership.number,
        **cards.changes._asdict(),
        "pinned": code is not None,
        "signature": None if signed is None else str(signed),
    }
    emit(lambda: result, lambda: ["\n".join(page)], as_json=as_json)


def _describe_membership(cards: "PeerCards") -> list[str]:
    """Return the lines of all cards and, for a later membership that is not pinned yet, who is in it at which ε."""
    wide = max(map(len, cards.fingerprints))
    lines = [f"{name:<{wide}}  {card}" for name, card in cards.fingerprints.items()]
    accepted, number = cards.policy.membership, cards.membership.number
    if number == accepted and (cards.membership.is_first or cards.policy.members is not None):
        return lines
    sizes = {each.name: each.examples for each in cards.app.deployment.clients}
    joining = [f"{name} with {sizes[name]:,} examples" for name in cards.changes.join]
    changes = {"joins": joining, "leaves": cards.changes.leave, "has a new key": cards.changes.new_keys}
    head = [f"Membership {number}:" if number == accepted else f"Membership {number} replaces membership {accepted}:"]
    head += [f"  {what}: {', '.join(names)}" for what, names in changes.items() if names]
    head.append(f"  examples: {', '.join(f'{name} {size:,}' for name, size in sizes.items())}")
    costs = [f"ε {needed:g} of the {allowed:g} that policy.toml allows" for needed, allowed in cards.run_costs()]
    head += [f"  a whole run takes, with a tenth of its rounds to spare: {', '.join(costs)}"] if costs else []
    head.append(
        "  the experiment with its numbers: read resolved.toml in the app folder, which may differ in more than noise"
    )
    if cards.policy.own_code:
        head.append("  own_code becomes false in policy.toml: read its Python files again before you set it to true")
    return head + lines


def _comparing_steps(cards: "PeerCards", folder: Path) -> list[str]:
    """Return whom the owner asks before the cards are pinned."""
    ask = "Ask each of the other clients for this code, by a number that you did not get from the server. Then:"
    if cards.policy.members is not None and not cards.membership.is_first:
        ask = (
            "Ask each client that joins or has a new key for the digits of its card, by a number that you did not get "
            "from\nthe server. The others sign with keys that you know. Then:"
        )
    return [ask, f"  discreet deploy accept {quote(str(folder))} --code CODE"]


def _pinned_steps(folder: Path, signed: Path | None) -> list[str]:
    start = f"discreet deploy client {quote(str(folder))}"
    if signed is None:
        return [f"Pinned in {folder / 'policy.toml'}. Next: {start}"]
    return [
        f"Pinned in {folder / 'policy.toml'}, and signed. Next:",
        f"  hand {signed} to the server's operator",
        f"  when the app folder has come back with all signatures: {start}",
    ]


def client(
    folder: Folder,
    supernode: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Work for the stock SuperNode at this address (--isolation process)."),
    ] = None,
    wait: Annotated[
        float,
        number_option(
            Number("seconds", NonNegative),
            "SECONDS",
            "Time to wait for a server that does not know this node yet. A server that is away is always awaited.",
        ),
    ] = 60.0,
    health: HealthPort = None,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(
            help="Where this client trains; auto takes a GPU if there is one. Noise of its own key is drawn on the CPU."
        ),
    ] = "cpu",
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Answer the server's requests as DIR/policy.toml allows.

    The command runs until it is stopped. It runs no code that a server ships, unless the policy has own_code = true. It
    prints what it refuses, and tells the server.
    """
    from discreet.deploy.client_node import ClientNode
    from discreet.deploy.health_server import serve_health
    from discreet.deploy.node_health import NodeHealth

    if supernode is not None and supernode.rpartition(":")[0] not in LOOPBACK:
        raise InvalidInput(
            f"A stock SuperNode must be on this machine, since the connection is not encrypted, and got {supernode!r}.",
            fix="Use --supernode 127.0.0.1:PORT",
        )
    os.umask(0o077)  # files written from here on are private
    node = replace(ClientNode.open(folder, print_note, data_dir, device), report_answer=print_note)
    node.check_ready()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that the server learns that the node has left
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
    state = NodeHealth(folder, node.policy, node.app.certificate, node.day)
    with state.listen(), serve_health(health, state.read) as port:
        print_health_address(port)
        if supernode is not None:
            task_executor.run_executor(supernode, node.answer, print_note)
        else:
            deployment, key = node.app.deployment, folder / "node.key"
            place = SuperLinkAddress(deployment.address, node.app.certificate, key, wait, len(deployment.clients))
            run_node(place, node.answer, print_note)
