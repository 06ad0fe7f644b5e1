"""Train a model in one call, or round by round in a loop of one's own."""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Required, Unpack

from rich.console import Console
from torch import nn

from discreet.algorithms.algorithm import Algorithm
from discreet.api.argument_checks import check_arguments, check_session_names
from discreet.api.experiment_jobs import choose_key, has_accepted_ranges, open_for_resume
from discreet.api.run_result import Run, new_run_path, run_of_outcome, write_page
from discreet.data.tasks.any_task import AnyTask
from discreet.data.tasks.task import Task
from discreet.data.tasks.task_loading import load_task
from discreet.experiment.configuration.run_settings import SettingKeywords, Settings
from discreet.experiment.loop import job_builder, progress, training_loop
from discreet.experiment.loop.callbacks import Callback, Callbacks, Record
from discreet.experiment.loop.outcome import Outcome
from discreet.experiment.loop.session import Session
from discreet.experiment.promise.promise import Privacy
from discreet.experiment.run_directory import run_keys
from discreet.experiment.run_directory.run_files import IDENTITY, RunFiles
from discreet.models import AnyModel
from discreet.part import Flag, check_value, from_plain
from discreet.paths import PathLike, Paths, optional_path
from discreet.randomness.purposes import Purpose
from discreet.round_clock import NO_CLOCK, PhaseClock
from discreet.trust_store import trust_remembered

TRUST_REMEDY = "Read it; then remember it with `discreet trust FILE`, or import it yourself and pass the object."


def train(
    model: nn.Module | AnyModel,
    clients: Task | AnyTask,
    *,
    rounds: int,
    algorithm: Algorithm,
    privacy: Privacy | None = None,
    loss: Callable[..., Any] | None = None,
    metric: Callable[..., Any] | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    resume: PathLike | None = None,
    key_dir: PathLike | None = None,
    data_dir: PathLike | None = None,
    progress: bool | None = None,
    callbacks: Sequence[Callback | Callable[[Record], bool | None]] = (),
    accept_data_ranges: bool = False,
    as_far_as_it_goes: bool = False,
    profile: bool = False,
    **settings: Unpack[SettingKeywords],
) -> Run:
    """Train a model on the clients' data under a promise, and write a run directory.

    The noise is computed from the promise. The module that is passed in is never changed.

    Args:
        model: The module to train, or a model's record such as `Linear()`.
        clients: The clients' data, from `clients_from_csv`, `clients_from_arrays` or a task's record.
        rounds: Number of rounds.
        algorithm: What happens in a round, from a recipe such as `pfl(...)` or `dp_fedavg(...)`.
        privacy: The promise. None for a run without privacy.
        loss: A function of (outputs, targets), where the task's own loss doesn't fit.
        metric: A function of (outputs, targets) that is reported beside the loss.
        out: Where to write the run directory. By default a new folder in runs/.
        ledger: A ledger that outlives this run. Without it the run keeps its own, which counts this run only.
        resume: The directory of a stopped run to resume. Other arguments, data or code than before are refused.
        key_dir: Where the run's key is kept until the run is finished. By default in the user's state folder.
        data_dir: The folder of downloaded data sets, where `discreet data get` puts them.
        progress: Whether to show a progress bar. By default in a terminal and in a notebook.
        callbacks: What to call at each round: objects that inherit `Callback`, or functions of the record of a round.
            They may stop the run, and can't change it.
        accept_data_ranges: Train on a table whose ranges were taken from the data. No guarantee covers what they
            reveal.
        as_far_as_it_goes: Train though the ledger can't pay for all rounds, and stop when it can't pay for the next.
        profile: Measure where the time of a round goes, and write profile.json and profile.svg. Times may tell who took
            part: keep them to yourself.
        **settings: The other settings of a run:
            seed: Makes the run repeatable; its noise then protects nobody.
            engine: What computes the sum of a cohort, such as `Embedded()`, which is the default.
            evaluate_every: Rounds between two evaluations. By default about twenty evaluations in a run.
            evaluate_training: Whether to evaluate on training examples too.
            checkpoint_every: Rounds between two checkpoints.
            track: Where the numbers of each round are also written, such as `{"kind": "tensorboard"}`.
            dtype: "float32" or "float64".
            precision: "float32", or "tf32" or "bf16" for products inside gradients on a GPU.
            compile: Whether to compile the steps of local SGD and gradient descent. It takes up to minutes at first.
            device: "auto", "cpu" or "cuda".

    Returns:
        The run: its model, metrics, guarantees and directory.

    Raises:
        InvalidInput: Something doesn't fit together; the message says what to do. Nothing was written.
        BudgetRefused: The noise can't keep the promise, or the ledger can't pay for all rounds.
        CallbackFailed: A callback raised an error. The rounds that were played stay counted, and are kept.

    Warns:
        UserWarning: The promise says little: δ is one over the number of those protected or more, or ε is above 10.

    Example:
        >>> import discreet, torch
        >>> clients = discreet.clients_from_csv(
        ...     "visits.csv", client="hospital", label="readmitted", ranges="ranges.toml"
        ... )
        >>> run = discreet.train(
        ...     torch.nn.Linear(54, 2),
        ...     clients,
        ...     rounds=60,
        ...     algorithm=discreet.pfl(local_steps=1, sampling_rate=0.25, clip_norm=0.5, learning_rate=4.0),
        ...     privacy=discreet.Privacy(unit="example", against="server", epsilon=2, delta=1e-4),
        ... )
        >>> print(run.guarantee)
    """
    own = Callbacks(callbacks)
    check_value("progress", Flag | None, progress)
    told = own.with_first(_show_progress(rounds, privacy, _shared_ledger(ledger, resume), Console(), progress))
    opened = _open_session(
        model,
        clients,
        rounds=rounds,
        algorithm=algorithm,
        privacy=privacy,
        loss=loss,
        metric=metric,
        out=out,
        ledger=ledger,
        resume=resume,
        key_dir=key_dir,
        data_dir=data_dir,
        accept_data_ranges=accept_data_ranges,
        as_far_as_it_goes=as_far_as_it_goes,
        profile=profile,
        told=told,
        is_open=not own.is_empty,
        is_stop_free=told.may_stop,
        **settings,
    )
    with opened, opened.catch_interrupts(), told:
        for _ in opened:
            pass
        told.finish(opened.run)
    return opened.run


class SessionKeywords(SettingKeywords, total=False):
    """The keywords of `session`, for type checkers; a test compares them with those of `train`."""

    rounds: Required[int]
    algorithm: Required[Algorithm]
    privacy: Privacy | None
    loss: Callable[..., Any] | None
    metric: Callable[..., Any] | None
    out: PathLike | None
    ledger: PathLike | None
    resume: PathLike | None
    key_dir: PathLike | None
    data_dir: PathLike | None
    accept_data_ranges: bool
    as_far_as_it_goes: bool
    profile: bool


def session(model: nn.Module | AnyModel, clients: Task | AnyTask, **arguments: Unpack[SessionKeywords]) -> Session[Run]:
    """Open a run as a loop of your own: each step of the iteration plays one round, and yields its record.

    The rounds are those of `train`, bit for bit. The loop may be left at any time, and the run resumed by either.
    A run that is left before its last round is certified at all its planned rounds, because what its caller saw may be
    the reason. A ledger that other runs share must be a filter, which stays sound however a run is cut short.

    Args:
        model: The module to train, or a model's record, as for `train`.
        clients: The clients' data, as for `train`. Arrays are copied, so that the loop can't change them.
        **arguments: All other arguments of `train`, without `progress` and `callbacks`.

    Returns:
        The session: an iterator and a context manager. Its `run` is what `train` returns.

    Raises:
        InvalidInput: Something doesn't fit together; the message says what to do. Nothing was written.
        BudgetRefused: The noise can't keep the promise, or the ledger can't pay for all rounds.

    Example:
        >>> with discreet.session(net, clients, rounds=60, algorithm=algorithm, privacy=privacy) as rounds:
        ...     for record in rounds:
        ...         if record.get("evaluation", {}).get("accuracy", 0) > 0.9:
        ...             break
        >>> print(rounds.run.guarantee)
    """
    check_session_names(arguments, SessionKeywords.__annotations__, SessionKeywords.__required_keys__)
    return _open_session(model, clients, told=Callbacks(), is_open=True, is_stop_free=True, **arguments)


def _open_session(
    model: nn.Module | AnyModel,
    clients: Task | AnyTask,
    *,
    rounds: int,
    algorithm: Algorithm,
    privacy: Privacy | None = None,
    loss: Callable[..., Any] | None = None,
    metric: Callable[..., Any] | None = None,
    out: PathLike | None = None,
    ledger: PathLike | None = None,
    resume: PathLike | None = None,
    key_dir: PathLike | None = None,
    data_dir: PathLike | None = None,
    accept_data_ranges: bool = False,
    as_far_as_it_goes: bool = False,
    profile: bool = False,
    told: Callbacks,
    is_open: bool,
    is_stop_free: bool,
    **settings: Unpack[SettingKeywords],
) -> Session[Run]:
    """Start or resume the run of `train` and of `session`, which describe most arguments.

    Args:
        told: What to call at each round.
        is_open: Whether code of the caller runs between two rounds.
        is_stop_free: Whether that code may stop the run.
    """
    functions = {"loss": loss, "metric": metric}
    check_value("accept_data_ranges", Flag, accept_data_ranges)
    check_value("as_far_as_it_goes", Flag, as_far_as_it_goes)
    check_value("profile", Flag, profile)
    check_arguments(model, clients, algorithm, privacy, functions, settings, SessionKeywords.__annotations__)
    run_settings = Settings(rounds=rounds, **settings)  # type: ignore[arg-type]  # trackers may be mappings too
    keys = optional_path(key_dir)
    stopped = optional_path(resume)
    before = None if stopped is None else open_for_resume(stopped, keys)
    if before is None or run_settings.seed is not None:
        key = choose_key(run_settings.seed)
    else:
        key = run_keys.load_key(before.identity.id, keys)
    paths = Paths.default(data=optional_path(data_dir), trust=trust_remembered(TRUST_REMEDY))
    if isinstance(clients, Task):
        task = clients
    else:
        source: AnyTask = from_plain(AnyTask, clients)  # wraps a task of the user's own
        task = load_task(source, key.generator(Purpose.TASK), paths, None if privacy is None else privacy.person)
    if is_open:
        task = copy.deepcopy(task)  # the caller may hold its arrays, and change them between two rounds
    if isinstance(model, nn.Module):
        module = model
    else:
        module = job_builder.build_model(model, task, paths, key.generator(Purpose.MODEL))
    job = job_builder.build_job_from_objects(
        task,
        module,
        functions,
        key=key,
        algorithm=algorithm,
        privacy=privacy,
        settings=run_settings,
    )
    accepted = accept_data_ranges or has_accepted_ranges(before)
    job = replace(job, accept_data_ranges=accepted, as_far_as_it_goes=as_far_as_it_goes)
    for sentence in job.start_warnings():
        warnings.warn(sentence, UserWarning, stacklevel=3)  # at the call of `train` or `session`
    clock = PhaseClock.for_device(job.device.type) if profile else NO_CLOCK
    if before is None:
        path = optional_path(out) or new_run_path(task.name)
        loop = training_loop.start_loop(
            job, path, optional_path(ledger), keys, told, is_stop_free=is_stop_free, clock=clock
        )
    else:
        loop = training_loop.resume_loop(job, before, keys, told, is_stop_free=is_stop_free, clock=clock)

    def conclude(outcome: Outcome) -> Run:
        write_page(outcome.record.path)
        return run_of_outcome(outcome, job.model.module_with_params(job.model.params))

    return Session(loop, conclude)


def _shared_ledger(ledger: PathLike | None, resume: PathLike | None) -> Path | None:
    """Return the ledger that the run shares with others; that of a resumed run is in its directory's run.json."""
    if (stopped := optional_path(resume)) is None:
        return optional_path(ledger)
    identity = RunFiles(stopped).json(IDENTITY)
    if not isinstance(identity, Mapping):  # it is damaged, and refused where the run is opened
        return None
    return optional_path(identity.get("ledger"))


def _show_progress(
    rounds: int, privacy: Privacy | None, ledger: Path | None, console: Console, wanted: bool | None
) -> Callback:
    left = progress.epsilon_left(privacy if isinstance(privacy, Privacy) else None, ledger)
    if console.is_jupyter and wanted is not False:
        return progress.ProgressCallback(progress.notebook_bar(rounds, left))
    if wanted or (wanted is None and console.is_terminal):
        return progress.ProgressCallback(progress.progress_bar(rounds, 0, left, console))
    return progress.ProgressCallback(progress.no_progress())
