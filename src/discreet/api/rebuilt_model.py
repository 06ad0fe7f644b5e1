"""The network of a run, built again from its experiment: what it is made of, and the shape of its inputs."""

from pathlib import Path

import torch
from torch import Tensor, nn

from discreet.api.experiment_jobs import read_experiment
from discreet.data.tasks.task import Task, blank_task
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Experiment
from discreet.experiment.loop import job_builder
from discreet.experiment.run_directory.resume_check import check_model_files
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.paths import Paths
from discreet.trust import Trust
from discreet.user_part import load_user_parts


def rebuild_module(record: RunRecord, data_dir: Path | None, trust: Trust) -> nn.Module:
    """Return the network of a run, with any weights: the trained ones are in the record.

    Raises:
        InvalidInput: The run was started from Python, or a file of its model has changed.
        UntrustedCode: The experiment names Python files that would have to run, and nobody has trusted them.
    """
    if record.identity.folder is None:
        raise InvalidInput(
            f"{record.path} was made from Python, and only that program knows its module.",
            fix="Pass it: discreet.load(directory, module=...).",
        )
    check_model_files(record)
    experiment, task, paths = _rebuild_task(record, Path(record.identity.folder), data_dir, trust)
    return job_builder.build_model(experiment.model, task, paths, torch.Generator())


def rebuild_inputs(record: RunRecord, data_dir: Path | None, trust: Trust) -> Tensor:
    """Return two inputs of the run's task, of which one is blank.

    Raises:
        InvalidInput: The run was started from Python, or its data set is not here.
    """
    if record.identity.folder is None:
        raise InvalidInput(
            f"{record.path} was made from Python, so the shape of the model's inputs is not known.",
            fix="Pass some: run.export(to, out, inputs=...).",
        )
    _, task, _ = _rebuild_task(record, Path(record.identity.folder), data_dir, trust)
    first = task.train.inputs[:1]
    return torch.cat([first, torch.zeros_like(first)])


def _rebuild_task(
    record: RunRecord, folder: Path, data_dir: Path | None, trust: Trust
) -> tuple[Experiment, Task, Paths]:
    """Return the experiment of a run, its task, and the folders of both. The task of a table has no rows of it."""
    paths, columns = Paths.default(folder, data_dir, trust), record.read_columns()
    needless = ("algorithm", "metric") if columns is None else ("algorithm", "metric", "task")
    experiment = load_user_parts(read_experiment(record), paths.folder, trust, skip=needless)
    task = experiment.load_task(torch.Generator(), paths) if columns is None else blank_task(columns)
    return experiment, task, paths
