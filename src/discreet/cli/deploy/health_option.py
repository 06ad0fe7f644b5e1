"""The option --health of `discreet deploy server` and `discreet deploy client`."""

from typing import Annotated, TypeAlias

import typer

from discreet.cli.output import print_note

HealthPort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=0,
        max=65535,
        show_default="off",
        help="Serve /health and /metrics at this port of 127.0.0.1. 0 takes a free one.",
    ),
]


def print_health_address(port: int | None) -> None:
    """Print where /health and /metrics are, if they are anywhere."""
    if port is not None:
        print_note(f"Health and metrics are at http://127.0.0.1:{port}/health and /metrics.")
