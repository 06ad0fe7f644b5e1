"""Read the clients of a command line: NAME=EXAMPLES, separated by commas."""

from typing import TYPE_CHECKING

from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.deploy.deployment import DeclaredClient


def parse_clients(clients: str) -> "list[DeclaredClient]":
    """Return the clients with their numbers of examples.

    Raises:
        InvalidInput: An entry is not NAME=EXAMPLES or has a name that is not allowed, or two have the same name.
    """
    from discreet.deploy.deployment import DeclaredClient, check_client_name, check_distinct_names

    declared = []
    for entry in clients.split(",") if clients else ():
        name, equals, examples = entry.strip().partition("=")
        if not equals or not examples.isdecimal():
            raise InvalidInput(
                f"Clients must be NAME=EXAMPLES, separated by commas, and got {entry!r}.",
                fix="For example: north=480,south=350,east=410",
            )
        check_client_name(name)
        if int(examples) < 1:
            raise InvalidInput(f"A client must have 1 example or more, and got {entry!r}.")
        declared.append(DeclaredClient(name=name, examples=int(examples)))
    check_distinct_names(declared)
    return declared
