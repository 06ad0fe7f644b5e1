"""`discreet tradeoff`: what the papers prove about privacy, utility, bits and work; as tables, JSON and pictures."""

import typer

from discreet.cli.tradeoff.clients import clients
from discreet.cli.tradeoff.cohort import cohort
from discreet.cli.tradeoff.epochs import epochs
from discreet.cli.tradeoff.iterations import iterations
from discreet.cli.tradeoff.ldp import ldp
from discreet.cli.tradeoff.promise import promise
from discreet.cli.tradeoff.sam import sam

EPILOG = """\b
Examples:
  discreet tradeoff ldp --epsilon 1 --delta 1e-4 --sampling-rate 1e-3 \\
      --rounds 70000 --dimension 10000 --clients 100
  discreet tradeoff iterations --noise gaussian --picture iterations.html
  discreet tradeoff epochs --epsilon 1.2 --picture epochs.html
  discreet tradeoff clients --clients 10,100,1000
  discreet tradeoff cohort --clients 10,50,100 --dropouts 5
  discreet tradeoff sam --radius 0.1 --learning-rate 0.01
  discreet tradeoff promise experiment.toml --epsilon 0.5,1,2,4
"""

app = typer.Typer(
    help="What privacy costs, by the papers' theory; and pictures of it.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
)

for command in (ldp, iterations, epochs, clients, cohort, sam, promise):
    app.command()(command)
