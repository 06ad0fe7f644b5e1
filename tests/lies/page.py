"""Write docs/results/lies.md from the records of played lies: a table for clients, and one for servers."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
_WORDS = ("no", "one", "two", "three")

HEAD = (
    "# Lies: what each achieves, and who is named\n\n"
    "Written by `python -m tests.lies`, which tells {total} lies: {clients} of clients and {servers} of servers. Each "
    "is told in a whole run of three rounds, in every round unless its text says otherwise. The run is that of a "
    "deployment with its server, nodes, policies and ledgers, in one process; TLS and Flower are not part of it. "
    "`tests/lies/test_lies.py` tells the lies again and compares. [Who may be hostile](../security.md) says what the "
    "tables mean, and [decision 7](../decisions/0007-secure-aggregation.md#clients-that-lie) why.\n\n"
    "In all {total} runs together:\n\n"
    "- A liar cost one round at most: {costly} lies of clients lost rounds, and {free} lost none. "
    "A server that lied lost {server_lost} of its own. Mere silence of more clients than the plan allows for lost two "
    "rounds in a row in {silent} runs, which stopped.\n"
    "- Where no more clients were at fault than the sum withstands, nobody honest was accused or left out. In the "
    "{beyond} run with more, an honest client that was silent was left out, with just this reason.\n"
    "- In {quarrels} runs the operator read of a quarrel in which one side or the other lies. A liar was a side in "
    "each, and no quarrel cost a round while the client whose shares were in question answered.\n"
    "- Every update that left a node was counted in its own ledger: {updates} different updates, {counted} counted.\n"
    "- Of {sums} secure sums, {exact} were exactly those of the clients in them, and {noise} were uniform noise, "
    "which shows nothing. None had fewer than three clients.\n"
)
CLIENTS = (
    "## A client lies\n\n"
    "Five clients with a secure sum that withstands two drop-outs: three shares open a secret, and a sum needs three "
    "clients. Client 0 lies where no other is named. Updates in clear are those of three clients. *Paid* is how many "
    "rounds each honest client counted, and for how many sums. *Named* is what the server's operator reads; owners of "
    "nodes read about shares that they can't use. Silence is not named as a lie, since most of it is an accident; "
    "where it loses a round, the operator reads who did not answer."
)
SERVERS = (
    "## A server lies\n\n"
    "The same five clients. The server has its own signing key, and lies to client 0 where no other is named. It can "
    "always do without a client, which then is in no sum, and waste rounds: what nodes answered is counted, until a "
    "ledger refuses. Each refusal is printed for the owner of the node that "
    "refuses. *Paid* is what each client counted, in the order of their numbers. An answer is one that an honest "
    "server would get too: to what can't be told from its questions, as another list that nobody else signs."
)

CLIENT_HEAD = "| a client | what it achieves | rounds lost | paid | named |\n|---|---|---|---|---|"
SERVER_HEAD = (
    "| a server | what it achieves | rounds lost | paid | what the nodes reply to the lie |\n|---|---|---|---|---|"
)


def write_page(records: Sequence[Record], path: Path) -> None:
    path.write_text(render_page(records))


def render_page(records: Sequence[Record]) -> str:
    clients = [record for record in records if record["who"] == "client"]
    servers = [record for record in records if record["who"] == "server"]
    return "\n".join(
        [
            _summary(clients, servers),
            CLIENTS,
            *_tables(clients, CLIENT_HEAD, _client_row),
            "",
            SERVERS,
            *_tables(servers, SERVER_HEAD, _server_row),
            "",
        ]
    )


def _tables(records: Sequence[Record], head: str, row: Any) -> Iterator[str]:
    for stage, group in groupby(records, lambda record: record["stage"]):
        yield f"\n### {stage}\n\n{head}"
        yield from (row(record) for record in group)


def _summary(clients: Sequence[Record], servers: Sequence[Record]) -> str:
    records = [*clients, *servers]
    lies = [record for record in clients if record["limit"] != "silence"]
    costly = [record for record in lies if lost_rounds(record)]
    exact = [each for record in records for each in record["exact"]]
    return HEAD.format(
        total=len(records),
        clients=len(clients),
        servers=len(servers),
        costly=len(costly),
        free=len(lies) - len(costly),
        server_lost=sum(map(lost_rounds, servers)),
        silent=sum(record["limit"] == "silence" for record in clients),
        beyond=_WORDS[sum(record["limit"] == "beyond" for record in clients)],
        quarrels=sum(bool(record["quarrel"]) for record in clients),
        updates=sum(sum(record["updates"]) for record in records),
        counted=sum(sum(record["counted"]) for record in records),
        sums=len(exact),
        exact=sum(exact),
        noise=len(exact) - sum(exact),
    )


def lost_rounds(record: Record) -> int:
    return sum(each is None for each in record["rounds"])


def _client_row(record: Record) -> str:
    honest = [count for client, count in enumerate(record["counted"]) if client not in record["liars"]]
    sums = len(record["rounds"]) - lost_rounds(record)
    paid = f"{' or '.join(map(str, sorted(set(honest))))} for {sums}"
    return f"| {record['lie']} | {_effect(record)} | {lost_rounds(record)} | {paid} | {_names_cell(record)} |"


def _server_row(record: Record) -> str:
    replies = " ".join(record["replies"]) or "–"
    paid = " ".join(map(str, record["counted"]))
    return f"| {record['lie']} | {_effect(record)} | {lost_rounds(record)} | {paid} | {replies} |"


def _effect(record: Record) -> str:
    """Return what became of the run: whose updates are in its sums, who is left out, and whether it ended."""
    sums = [each for each in record["rounds"] if each is not None]
    everybody = range(len(record["counted"]))
    missing = [client for client in everybody if any(client not in each for each in sums)]
    gone = [client for client in missing if client not in record["left_out"]]
    if not record["rounds"]:
        return "the node does not start"
    parts = []
    if record["noise"]:
        parts.append("the sum is noise")
    if lost_rounds(record):
        parts.append(f"{_count(lost_rounds(record), 'round')} lost")
    if record["left_out"]:
        parts.append(f"{_clients(record['left_out'])} left out of the later ones")
    if gone:
        parts.append(f"sums without {_clients(gone)}")
    if record["stopped"]:
        parts.append(f"the run stops after {_count(len(record['rounds']), 'round')}")
    return "; ".join(parts) or "nothing: every sum has all updates"


def _names_cell(record: Record) -> str:
    parts = []
    if record["named"]:
        parts.append(_clients(record["named"]))
    if record["quarrel"]:
        parts.append(f"one side of a quarrel between {_clients(record['quarrel'])}")
    if record["strangers"]:
        parts.append("a node that can't prove who it is")
    if record["silence"]:
        parts.append(f"who did not answer: {_clients(record['silence'])}")
    for client, owners in record["owners"].items():
        if not record["quarrel"]:
            parts.append(f"client {client} or the server, to the owners of {_clients(owners)}")
    return "; ".join(parts) or "nobody"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _clients(clients: Sequence[int]) -> str:
    names = [str(each) for each in clients]
    return f"client {names[0]}" if len(names) == 1 else f"clients {', '.join(names[:-1])} and {names[-1]}"
