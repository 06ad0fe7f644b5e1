"""`discreet tradeoff clients`: what more clients bring, by paper 000's Theorem 3 and in noise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from rich.console import RenderableType

from discreet.cli.options import COUNT
from discreet.cli.output import Json, emit
from discreet.cli.tradeoff import pfl_options
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import AMOUNT, COUNTS, SCALE, counted, table, whole
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_down, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.pfl_client_count import ClientCount
    from discreet.planning.theory.pfl_local_epochs import Training
    from discreet.report.curves import Panel, Picture

SUMS = (
    "Shared noise holds against those who see only sums, for one step a round or gradients at the broadcast model; see "
    "discreet tradeoff cohort"
)
SPREAD = (
    "Utility takes the spread of clients' models to be the noise alone: batches and data that differ would add to it"
)
POOL = "Clients who share one training set have less each: the same ε takes more noise, and an epoch has fewer steps"

Clients: TypeAlias = Annotated[
    Sequence[int],
    typer.Option(click_type=COUNTS, metavar="K,...", show_default=False, help="How many; 1 to 500 by default."),
]
Pool: TypeAlias = Annotated[
    int,
    typer.Option(
        click_type=COUNT, metavar="N", show_default=False, help="Examples in all that clients share; 60000 by default."
    ),
]
Loss: TypeAlias = Annotated[
    float,
    typer.Option(click_type=SCALE, metavar="L", show_default=False, help="Excess loss of the utility; 0.5 by default."),
]
Bias: TypeAlias = Annotated[
    float,
    typer.Option(
        click_type=AMOUNT, metavar="B", show_default=False, help="Norm of the mean model's error; 0 by default."
    ),
]


@dataclass(frozen=True)
class Answer:
    """What was asked, and a row for every k: with examples of their own, and sharing a pool."""

    training: "Training"
    epsilon: float
    delta: float
    loss: float
    bias: float
    pool: int
    own: tuple["ClientCount", ...]
    sharing: tuple["ClientCount", ...]

    def data(self) -> dict[str, Any]:
        from discreet.planning.theory.pfl_client_count import UNBIASED_NOTE

        return {
            "training": {name: value for name, value in to_plain(self.training).items() if name != "clients"},
            "epsilon": self.epsilon,
            "delta": self.delta,
            "unit": "example",
            "relation": "zero_out",
            "loss": self.loss,
            "bias": self.bias,
            "pool": self.pool,
            "own_examples": [_row(crowd) for crowd in self.own],
            "shared_pool": [_row(crowd) for crowd in self.sharing],
            "notes": [f"{note}." for note in (SPREAD, UNBIASED_NOTE, SUMS, POOL)],
        }

    def page(self) -> Iterator[RenderableType]:
        from discreet.planning.theory.pfl_client_count import UNBIASED_NOTE

        yield (
            f"k clients of PFL (paper 000), each with ε = {compact(self.epsilon)} at δ = {compact(self.delta)} for any "
            f"one example; {counted(self.training.epochs, 'epoch')} in all, one a round."
        )
        yield ""
        yield f"Each with {counted(self.training.examples, 'example')} of its own:"
        yield table(HEADINGS, map(_cells, self.own))
        yield ""
        yield f"Sharing {self.pool:,} examples:"
        yield table(HEADINGS, map(_cells, self.sharing))
        yield ""
        yield (
            "Noise of the mean, in clips: local, where each client's own is enough (PFL); shared, where only their sum "
            f"has enough. {SUMS}."
        )
        yield (
            f"Utility: the chance that a round's mean is within {compact(self.loss)} of the best loss is at least "
            "this. As printed, a model has one parameter. A dash says nothing."
        )
        yield from (f"{note}." for note in (SPREAD, POOL, UNBIASED_NOTE))

    def picture(self) -> "Picture":
        from discreet.planning.theory.pfl_client_count import UNBIASED_NOTE
        from discreet.report.curves import Picture

        return Picture(
            title=f"PFL: more clients at ε = {compact(self.epsilon)} each",
            panels=(
                self._utility(f"Theorem 3, {self.training.examples:,} examples each", self.own),
                self._noise(f"Noise of the mean, {self.training.examples:,} examples each", self.own),
                self._noise(f"Noise of the mean, {self.pool:,} examples in all", self.sharing),
            ),
            notes=tuple(f"{note}." for note in (SPREAD, UNBIASED_NOTE, SUMS, POOL)),
        )

    def _utility(self, title: str, crowds: tuple["ClientCount", ...]) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [crowd.clients for crowd in crowds]
        return Panel(
            title=title,
            across="clients, k",
            up=f"chance to be within {compact(self.loss)}, at least",
            curves=(
                curve("printed: one parameter", xs, [max(0.0, crowd.printed) for crowd in crowds], dashed=True),
                curve("corrected", xs, [max(0.0, crowd.corrected) for crowd in crowds]),
            ),
            log_x=True,
        )

    def _noise(self, title: str, crowds: tuple["ClientCount", ...]) -> "Panel":
        from discreet.report.curves import Panel, curve

        xs = [crowd.clients for crowd in crowds]
        return Panel(
            title=title,
            across="clients, k",
            up="deviation of a coordinate, in clips",
            curves=(
                curve("local: z/√k", xs, [crowd.local for crowd in crowds]),
                curve("shared: z/k", xs, [crowd.distributed for crowd in crowds]),
            ),
            log_x=True,
            log_y=True,
        )


HEADINGS = ("k", "examples", "noise", "mean: local", "shared", "utility: printed", "corrected")


def clients(
    clients: Clients = (1, 2, 5, 10, 25, 50, 100, 200, 500),
    epsilon: pfl_options.Epsilon = 2.93,
    delta: pfl_options.Delta = 1e-5,
    epochs: pfl_options.Epochs = 20,
    examples: pfl_options.Examples = 6000,
    pool: Pool = 60_000,
    batch_size: pfl_options.BatchSize = 256,
    clip: pfl_options.Clip = 1.0,
    learning_rate: pfl_options.LearningRate = 0.3,
    dimension: pfl_options.Dimension = 26_010,
    lipschitz: pfl_options.Lipschitz = 1.0,
    loss: Loss = 0.5,
    bias: Bias = 0.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """The number of clients k whose models are averaged (paper 000).

    Theorem 3's utility as printed and corrected, and the noise of the mean when each client adds enough by itself or
    when only their sum has enough. The defaults are the paper's for MNIST.
    """
    from discreet.planning.theory.pfl_client_count import evaluate_client_count, examples_per_client
    from discreet.planning.theory.pfl_local_epochs import Training

    training = Training(
        examples=examples,
        batch_size=batch_size,
        epochs=epochs,
        clients=1,
        clip_norm=clip,
        learning_rate=learning_rate,
        dimension=dimension,
        lipschitz=lipschitz,
    )
    own = [replace(training, clients=each) for each in clients]
    sharing = [replace(each, examples=examples_per_client(pool, each.clients)) for each in own]
    answer = Answer(
        training=training,
        epsilon=epsilon,
        delta=delta,
        loss=loss,
        bias=bias,
        pool=pool,
        own=tuple(evaluate_client_count(each, epsilon, delta, loss, bias) for each in own),
        sharing=tuple(evaluate_client_count(each, epsilon, delta, loss, bias) for each in sharing),
    )
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)


def _cells(crowd: "ClientCount") -> tuple[str, ...]:
    return (
        whole(crowd.clients),
        whole(crowd.examples),
        round_up(crowd.noise_multiplier),
        compact(crowd.local, 4),
        compact(crowd.distributed, 4),
        round_down(crowd.printed, 6) if crowd.printed > 0 else "–",
        round_down(crowd.corrected) if crowd.valid else "–",
    )


def _row(crowd: "ClientCount") -> dict[str, Any]:
    return {
        "clients": crowd.clients,
        "examples": crowd.examples,
        "noise_multiplier": crowd.noise_multiplier,
        "mean_noise": {"local": crowd.local, "shared": crowd.distributed},
        "utility": {
            "printed": crowd.printed,
            "corrected": crowd.corrected,
            "valid": crowd.valid,
            "reason": crowd.reason,
        },
    }
