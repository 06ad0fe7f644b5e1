"""`discreet tradeoff`: what the papers prove about privacy, utility, bits and work; as tables, JSON and pictures."""

from discreet.cli.help_page import command_group
from discreet.cli.tradeoff.clients import ClientsOptions
from discreet.cli.tradeoff.cohort import CohortOptions
from discreet.cli.tradeoff.epochs import EpochsOptions
from discreet.cli.tradeoff.iterations import IterationsOptions
from discreet.cli.tradeoff.ldp import LdpOptions
from discreet.cli.tradeoff.promise import promise
from discreet.cli.tradeoff.sam import SamOptions
from discreet.cli.tradeoff.tradeoff_output import tradeoff_command

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

app = command_group("What privacy costs, by the papers' theory; and pictures of it.", EPILOG)
app.command("ldp")(tradeoff_command(LdpOptions))
app.command("iterations")(tradeoff_command(IterationsOptions))
app.command("epochs")(tradeoff_command(EpochsOptions))
app.command("clients")(tradeoff_command(ClientsOptions))
app.command("cohort")(tradeoff_command(CohortOptions))
app.command("sam")(tradeoff_command(SamOptions))
app.command("promise")(promise)
