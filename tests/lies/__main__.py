"""`python -m tests.lies`: tell every lie in a whole run, and write docs/results/lies.json and lies.md."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.lies.client_table import CLIENT_LIES
from tests.lies.describe import describe
from tests.lies.page import write_page
from tests.lies.play import play_clients, play_folder, play_server
from tests.lies.server_table import SERVER_LIES

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "lies.json"
LIES = len(CLIENT_LIES) + len(SERVER_LIES)


def play_lie(place: int) -> dict[str, Any]:
    """Play the lie at this place of the two tables together, and return its record."""
    if place < len(CLIENT_LIES):
        case = CLIENT_LIES[place]
        played = play_clients(case.plan, case.lies)
        record = describe(case.stage, case.text, played, set(case.lies) - case.honest)
        return {"who": "client", "limit": case.limit, **record}
    told = SERVER_LIES[place - len(CLIENT_LIES)]
    played = play_server(told.plan, told.lies) if told.folder is None else play_folder(told.plan, told.folder)
    record = describe(told.stage, told.text, played, set())
    return {"who": "server", "limit": "", **record}


def write_results(records: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    RESULTS.write_text(f"[\n{lines}\n]\n")
    write_page(records, RESULTS.with_suffix(".md"))


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as workers:
        write_results(list(workers.map(play_lie, range(LIES))))
