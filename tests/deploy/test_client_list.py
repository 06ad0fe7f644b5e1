"""The clients of a command line: what is refused, in words of the command line."""

import pytest

from discreet.cli.deploy.client_list import parse_clients
from discreet.errors import InvalidInput


@pytest.mark.parametrize(
    ("clients", "problem"),
    [
        ("north", "Clients must be NAME=EXAMPLES, separated by commas, and got 'north'."),
        (
            "n\u00f8rd=3",
            "The name of a client must be 1 to 40 letters (a to z, A to Z), digits, - and _, and got 'n\u00f8rd'.",
        ),
        ("south=3,=3", "The name of a client must be 1 to 40 letters (a to z, A to Z), digits, - and _, and got ''."),
        ("north=0", "A client must have 1 example or more, and got 'north=0'."),
        ("north=3,north=4", "Clients must have different names, and got 'north' more than once."),
    ],
)
def test_clients_that_cannot_be_are_refused_in_words_of_the_command_line(clients: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_clients(clients)
    assert refused.value.problem == problem
