"""Attack a run or an experiment from Python; the command line uses the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from discreet.api.experiment_jobs import choose_key, read_experiment
from discreet.audit.attacks.inversion_attack import InversionAttack, attack_inversion
from discreet.audit.attacks.label_inference import LabelAttack, attack_labels
from discreet.audit.attacks.membership_attack import SHADOWS, MembershipAttack, attack_membership
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import Source, load_experiment
from discreet.experiment.job import Job
from discreet.experiment.loop import job_builder
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.experiment.run_directory.run_data import read_run
from discreet.experiment.run_directory.run_record import RunRecord
from discreet.part import Count, Flag, WholeNumber, check_value
from discreet.paths import PathLike, Paths, optional_path, to_path
from discreet.privacy.guarantee import Guarantee
from discreet.report import run_page
from discreet.trust import Trust
from discreet.trust_store import trust_remembered

if TYPE_CHECKING:
    from discreet.api.run_result import Run

AttackKind: TypeAlias = Literal["membership", "inversion", "labels"]
FoundAttack: TypeAlias = MembershipAttack | InversionAttack | LabelAttack

REMEDY = "Read it; then pass trust=True."


@dataclass(frozen=True)
class AttackOptions:
    """What attacks take, each what it needs.

    Attributes:
        shadows: Models that membership inference trains.
        compare: Whether membership inference trains as many models without privacy.
        batch: Examples in the batch that gradient inversion rebuilds.
        on_data: Whether inversion and labels attack the clients' own data, and not stand-in data.
        seed: Makes the attack repeatable. None for fresh randomness.
        announce: Called with the estimated seconds before shadow models are trained.
        watch: Called with what is done, how much of it, and how much there is.
    """

    shadows: int = SHADOWS
    compare: bool = False
    batch: int = 1
    on_data: bool = False
    seed: int | None = None
    announce: Callable[[float], None] = field(default=lambda seconds: None, repr=False)
    watch: Callable[[str, int, int], None] = field(default=lambda what, done, total: None, repr=False)

    def __post_init__(self) -> None:
        kinds: dict[str, Any] = {"shadows": Count, "compare": Flag, "batch": Count, "on_data": Flag}
        for name, kind in {**kinds, "seed": WholeNumber | None}.items():
            check_value(name, kind, getattr(self, name))


def attack(
    run: Run | PathLike,
    kind: AttackKind,
    *,
    shadows: int = SHADOWS,
    compare: bool = False,
    batch: int = 1,
    on_data: bool = False,
    seed: int | None = None,
    data_dir: PathLike | None = None,
    trust: bool = False,
) -> FoundAttack:
    """Attack a run or an experiment in a way that people know, for the owner of its data.

    Nothing is spent: no model of an attack leaves this function. What it finds is not covered by a guarantee, so it is
    kept in the run directory for the owner's page and never put on a public one.

    Args:
        run: A run, its directory, or an experiment's file.
        kind: "membership": repeat the experiment on random halves of its data, and guess which half each model saw.
            "inversion": rebuild examples from what the server sees. "labels": count a client's labels from it.
        shadows: Number of models that membership inference trains.
        compare: With "membership": train as many models by FedAvg, without privacy, to see what privacy prevents.
        batch: With "inversion": examples in the client's batch, from 1 to 4.
        on_data: With "inversion" and "labels": attack the clients' own data, and not stand-in data.
        seed: Makes the attack repeatable.
        data_dir: The folder of downloaded data sets.
        trust: Whether Python files that the experiment names may run.

    Returns:
        What was found; its `sentences()` say it in plain words, and `to_plain()` returns it as data.

    Raises:
        InvalidInput: There is no such run, or an argument is out of range.
        Unsupported: The attack doesn't fit the task, or the data is elsewhere.
        UntrustedCode: The experiment names Python files that would have to run, and nobody has trusted them.

    Example:
        >>> found = discreet.attack("runs/first", "inversion")
        >>> found.sentences()[0]
        'With raw FedAvg, the server recovers the examples (mean correlation with the originals 1.00).'
    """
    path = to_path(run.directory if hasattr(run, "directory") else run)
    check_value("kind", AttackKind, kind)
    check_value("trust", Flag, trust)
    options = AttackOptions(shadows, compare, batch, on_data, seed)
    allowed = Trust.all_code() if trust else trust_remembered(REMEDY)
    if path.is_dir():
        return attack_run(path, kind, options, optional_path(data_dir), allowed)
    return attack_source(load_experiment(path, (), optional_path(data_dir), allowed), kind, options)


def attack_run(
    directory: Path, kind: AttackKind, options: AttackOptions, data_dir: Path | None, trust: Trust
) -> FoundAttack:
    """Attack a run, keep what was found in its directory, and write the owner's page again."""
    record = RunRecord.open(directory)
    if record.identity.folder is None:
        raise InvalidInput(
            f"{directory} was made from Python, so its model and data can't be built again.",
            fix="Write the experiment as a file, and attack that.",
        )
    record.read_outcome()  # refuses a run that has not ended
    experiment = read_experiment(record)
    paths = Paths.default(Path(record.identity.folder), data_dir, trust)
    source = Source(experiment, record.read_text("experiment.toml"), paths)
    job = _build_job(source, options)
    found = attack_job(job, _main_guarantee(read_run(directory).guarantees), kind, options)
    record.write_attack(_plain(found))
    run_page.write(directory)
    return found


def attack_source(source: Source, kind: AttackKind, options: AttackOptions) -> FoundAttack:
    """Attack an experiment that could be trained now."""
    job = _build_job(source, options)
    return attack_job(job, _main_guarantee(certify_run(job.terms, job.rounds, None, shared=False)), kind, options)


def _build_job(source: Source, options: AttackOptions) -> Job:
    """Build the job. Where the experiment has no seed, the attack's own decides how a task deals its examples."""
    seed = source.experiment.seed
    return job_builder.build_job(source, choose_key(options.seed if seed is None else seed))


def attack_job(job: Job, guarantee: Guarantee | None, kind: AttackKind, options: AttackOptions) -> FoundAttack:
    """Attack a job that is built."""
    key = None if options.seed is None else choose_key(options.seed)
    match kind:
        case "membership":
            return attack_membership(
                job,
                guarantee,
                shadows=options.shadows,
                compare=options.compare,
                key=key,
                announce=options.announce,
                watch=options.watch,
            )
        case "inversion":
            return attack_inversion(
                job, guarantee, batch=options.batch, on_data=options.on_data, key=key, watch=options.watch
            )
        case "labels":
            return attack_labels(job, guarantee, on_data=options.on_data, key=key, watch=options.watch)
    raise InvalidInput(f"An attack must be membership, inversion or labels, and got {kind!r}.")


def _main_guarantee(cards: Any) -> Guarantee | None:
    """Return the promised guarantee; of clients with different ones, the largest ε."""
    listed: list[Guarantee] = list(cards)
    alike = [card for card in listed if (card.unit, card.view) == (listed[0].unit, listed[0].view)]
    return max(alike, key=lambda card: card.epsilon, default=None)


def _plain(found: FoundAttack) -> Mapping[str, Any]:
    return found.to_plain()
