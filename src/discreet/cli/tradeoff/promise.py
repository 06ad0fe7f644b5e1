"""`discreet tradeoff promise`: what another ε would cost an experiment."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from discreet.cli.experiment_options import ExperimentOptions
from discreet.cli.options import expand_records, number_option
from discreet.cli.output import Json
from discreet.cli.tradeoff.tradeoff_options import POSITIVES
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff

Epsilons: TypeAlias = Annotated[
    Sequence[float], number_option(POSITIVES, "E,...", "Epsilons to compare, separated by commas.")
]


@expand_records
def promise(
    experiment: ExperimentOptions,
    epsilon: Epsilons = (0.5, 1.0, 2.0, 4.0),
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """What another epsilon would cost the experiment in FILE.

    For each epsilon: the noise for all rounds and its size beside the signal, or the rounds at today's noise, and their
    bytes. Data is read to count clients; nothing is trained or spent. Without FILE: the built-in experiment on digits.
    """
    from discreet.planning.curves.promise_tradeoff import compute_promise_tradeoff

    source, terms, _ = experiment.prepare(trusted=False, quiet=as_json)
    show_tradeoff(compute_promise_tradeoff(source, terms, epsilon), picture, as_json=as_json)
