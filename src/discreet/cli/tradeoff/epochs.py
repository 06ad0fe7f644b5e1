"""`discreet tradeoff epochs`: how a budget of epochs is cut into rounds (paper 000), and what its theory says of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.options import COUNT
from discreet.cli.output import Json, emit
from discreet.cli.tradeoff import pfl_options
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import counted, table, whole
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.pfl_local_epochs import Split, Training
    from discreet.report.curves import Panel, Picture

Clients: TypeAlias = Annotated[
    int,
    typer.Option(click_type=COUNT, metavar="K", show_default=False, help="Whose models are averaged; 10 by default."),
]


@dataclass(frozen=True)
class Answer:
    """What was asked, and a row for every E."""

    training: "Training"
    epsilon: float
    delta: float
    noise_multiplier: float
    splits: tuple["Split", ...]
    whole_run: float  # the bound that Theorem 2's proof gives for all rounds
    whole_noise: float  # in the released mean, after all rounds

    def data(self) -> dict[str, Any]:
        from discreet.planning.theory.pfl_local_epochs import BEST_EPOCHS_NOTE, TOTAL_COST_NOTE

        return {
            "training": to_plain(self.training),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "noise_multiplier": self.noise_multiplier,
            "sampling_rate": self.training.sampling_rate,
            "steps_per_epoch": self.training.steps_per_epoch,
            "splits": [_row(split) for split in self.splits],
            "whole_run": {"theorem2": self.whole_run, "mean_noise": self.whole_noise},
            "claim": {"best_epochs": 1, "proven": False, "reason": f"{BEST_EPOCHS_NOTE}."},
            "notes": [f"{TOTAL_COST_NOTE}."],
        }

    def page(self) -> Iterator[RenderableType]:
        from discreet.planning.theory.pfl_local_epochs import BEST_EPOCHS_NOTE, TOTAL_COST_NOTE

        training = self.training
        yield (
            f"PFL (paper 000): {counted(training.epochs, 'epoch')} of {counted(training.steps_per_epoch, 'step')} at "
            f"each of {counted(training.clients, 'client')}; ε = {compact(self.epsilon)} at δ = {compact(self.delta)}"
            " for any one example."
        )
        yield (
            f"Noise multiplier {round_up(self.noise_multiplier)} at every E: what is promised counts steps, however "
            "they are cut into rounds."
        )
        yield ""
        headings = ("E", "R", "ε of one round", "by ε/√R", "Theorem 2, one round", "corrected", "all rounds", "noise")
        yield table(headings, (self._cells(split) for split in self.splits))
        yield ""
        if any(not split.valid for split in self.splits):
            yield "* ε/√R is an asymptotic, and here less than the round really costs."
        yield f"{TOTAL_COST_NOTE}."
        yield (
            f"Noise: its expected norm in the mean of {counted(training.clients, 'model')} after one round. After all "
            f"rounds it is {compact(self.whole_noise, 4)}, and Theorem 2's bound, for that mean, "
            f"{compact(self.whole_run, 4)}: at every E."
        )
        yield f"{BEST_EPOCHS_NOTE}."

    def _cells(self, split: "Split") -> tuple[str, ...]:
        return (
            whole(split.epochs),
            whole(split.rounds),
            round_up(split.epsilon),
            f"{'' if split.valid else '* '}{compact(split.asymptotic, 4)}",
            compact(split.printed, 4),
            compact(split.corrected, 4),
            compact(split.rounds * split.printed, 4),
            compact(split.mean_noise, 4),
        )

    def picture(self) -> "Picture":
        from discreet.planning.theory.pfl_local_epochs import BEST_EPOCHS_NOTE, TOTAL_COST_NOTE
        from discreet.report.curves import Picture

        return Picture(
            title=f"PFL: {counted(self.training.epochs, 'epoch')} at ε = {compact(self.epsilon)}, cut into rounds of E",
            panels=(self._cost(), self._bounds(), self._noise()),
            notes=(f"{TOTAL_COST_NOTE}.", f"{BEST_EPOCHS_NOTE}."),
        )

    def _cost(self) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [split.epochs for split in self.splits]
        return Panel(
            title="What one round costs",
            across="local epochs a round, E",
            up="ε of one round alone",
            curves=(
                curve("exact", xs, [split.epsilon for split in self.splits]),
                curve("ε/√R, the paper's", xs, [split.asymptotic for split in self.splits], dashed=True),
            ),
            log_x=True,
            log_y=True,
        )

    def _bounds(self) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [split.epochs for split in self.splits]
        return Panel(
            title="Theorem 2: loss through privacy, at most",
            across="local epochs a round, E",
            up="bound on the difference in loss",
            curves=(
                curve("one round, printed", xs, [split.printed for split in self.splits], dashed=True),
                curve("one round, corrected", xs, [split.corrected for split in self.splits]),
                curve("all rounds, added up", xs, [split.rounds * split.printed for split in self.splits], dashed=True),
                curve("all rounds, the mean", xs, [self.whole_run] * len(xs)),
            ),
            log_x=True,
            log_y=True,
        )

    def _noise(self) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [split.epochs for split in self.splits]
        return Panel(
            title="Noise in the released mean",
            across="local epochs a round, E",
            up="expected norm",
            curves=(
                curve("after one round", xs, [split.mean_noise for split in self.splits]),
                curve("after all rounds", xs, [self.whole_noise] * len(xs)),
            ),
            log_x=True,
        )


def epochs(
    epsilon: pfl_options.Epsilon = 2.93,
    delta: pfl_options.Delta = 1e-5,
    epochs: pfl_options.Epochs = 20,
    clients: Clients = 10,
    examples: pfl_options.Examples = 6000,
    batch_size: pfl_options.BatchSize = 256,
    clip: pfl_options.Clip = 1.0,
    learning_rate: pfl_options.LearningRate = 0.3,
    dimension: pfl_options.Dimension = 26_010,
    lipschitz: pfl_options.Lipschitz = 1.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Local epochs E against rounds R at E·R = T (paper 000).

    The noise that epsilon takes, what one round of E epochs costs exactly and by the paper's rule of thumb, Theorem 2's
    bound as printed and corrected, and the noise that really reaches the mean. The defaults are the paper's for MNIST.
    """
    from discreet.planning.theory import pfl_local_epochs

    training = pfl_local_epochs.Training(
        examples=examples,
        batch_size=batch_size,
        epochs=epochs,
        clients=clients,
        clip_norm=clip,
        learning_rate=learning_rate,
        dimension=dimension,
        lipschitz=lipschitz,
    )
    noise = pfl_local_epochs.calibrate_noise(training, epsilon, delta)
    answer = Answer(
        training=training,
        epsilon=epsilon,
        delta=delta,
        noise_multiplier=noise,
        splits=tuple(pfl_local_epochs.split_epochs(training, noise, epsilon, delta)),
        whole_run=pfl_local_epochs.theorem2_whole_run(training, noise),
        whole_noise=pfl_local_epochs.expected_noise_norm(training, noise, training.steps, clients),
    )
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)


def _row(split: "Split") -> dict[str, Any]:
    return {
        "epochs": split.epochs,
        "rounds": split.rounds,
        "local_steps": split.local_steps,
        "round_epsilon": {
            "exact": split.epsilon,
            "asymptotic": split.asymptotic,
            "valid": split.valid,
            "reason": split.reason,
        },
        "theorem2": {
            "printed": split.printed,
            "corrected": split.corrected,
            "all_rounds": split.rounds * split.printed,
        },
        "noise": {"client": split.client_noise, "mean": split.mean_noise},
    }
