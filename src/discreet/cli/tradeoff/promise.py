"""`discreet tradeoff promise`: what another ε would cost an experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from discreet.cli.options import DataDir, Overrides, number_option
from discreet.cli.output import Json
from discreet.cli.progress_bar import show_preparation
from discreet.cli.tradeoff.tradeoff_options import POSITIVES
from discreet.cli.tradeoff.tradeoff_output import PictureFile, show_tradeoff

File: TypeAlias = Annotated[Path | None, typer.Argument(metavar="[FILE]", hidden=True)]
Epsilons: TypeAlias = Annotated[
    Sequence[float], number_option(POSITIVES, "E,...", "Epsilons to compare, separated by commas.")
]


def promise(
    file: File = None,
    epsilon: Epsilons = (0.5, 1.0, 2.0, 4.0),
    settings: Overrides = None,
    data_dir: DataDir = None,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """What another epsilon would cost the experiment in FILE.

    For each epsilon: the noise for all rounds and its size beside the signal, or the rounds at today's noise, and their
    bytes. Data is read to count clients; nothing is trained or spent. Without FILE: the built-in experiment on digits.
    """
    from discreet import api
    from discreet.experiment.configuration import experiment_file
    from discreet.planning.curves.promise_tradeoff import compute_promise_tradeoff

    source = experiment_file.load_experiment(file, tuple(settings or ()), data_dir)
    with show_preparation(source, quiet=as_json) as ready:
        job = api.prepare_job(ready)
    show_tradeoff(compute_promise_tradeoff(source, job, epsilon), picture, as_json=as_json)
