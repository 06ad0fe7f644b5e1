"""What somebody with a node's disk does to it between two requests."""

from tests.lies.moment import ServerTurn

NEWEST = ".newest"  # of a ledger in whose place an older copy was put
_older: dict[str, bytes] = {}


def roll_back_ledger(asked: ServerTurn) -> list[bytes]:
    """Keep the ledger of the first round, and put it back before the third; the newest one stays beside it."""
    folder = asked.node.client_folder.folder
    (ledger,) = folder.glob("ledger-*.jsonl") if asked.earlier else (None,)
    if len(asked.earlier) == 1 and ledger is not None:
        _older[str(folder)] = ledger.read_bytes()
    if len(asked.earlier) == 2 and ledger is not None:
        ledger.rename(ledger.with_suffix(NEWEST))
        ledger.write_bytes(_older.pop(str(folder)))
    return [asked.honest]


def remove_counter(asked: ServerTurn) -> list[bytes]:
    if len(asked.earlier) == 1:
        (asked.node.client_folder.folder / "counter.json").unlink()
    return [asked.honest]


def forget_journal(asked: ServerTurn) -> list[bytes]:
    """Remove what the node remembers of its answers before the second round."""
    if len(asked.earlier) == 1:
        for path in asked.node.client_folder.folder.glob("runs/*/*/*"):
            path.unlink()
    return [asked.honest]


TAMPERINGS = (roll_back_ledger, remove_counter, forget_journal)
