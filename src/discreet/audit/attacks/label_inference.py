"""Label inference: how many examples of each class a client has, read from the gradient of the last bias."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.audit.attacks.server_view import ServerView, server_views
from discreet.audit.attacks.stand_in_examples import OWN_DATA, Victims, own_examples, stand_in_examples
from discreet.errors import Unsupported
from discreet.experiment.job import Job
from discreet.params import Params
from discreet.privacy.guarantee import Guarantee
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey

EXAMPLES = 24  # of a stand-in client
REHEARSALS = 40  # clients with known labels on which the server tries its attack first
SKEW = 0.3  # of the labels of a stand-in client: the parameter of a Dirichlet distribution
SMALLEST = 1e-30
HIDES_NO_COUNTS = (
    "The guarantee hides the label of each example, not how many of each a client has: for that, promise privacy for "
    "clients."
)


@dataclass(frozen=True)
class LabelGuess:
    """What one view of the server says about a client's labels.

    Attributes:
        view: What the server sees, by its name.
        counts: The inferred number of examples of each class.
        overlap: The share of the client's examples that the inferred counts contain.
    """

    view: str
    counts: list[int]
    overlap: float


@dataclass(frozen=True)
class LabelAttack:
    """True counts of labels beside what the server can infer.

    Attributes:
        origin: Whose the labels are.
        counts: The true number of examples of each class.
        prior_overlap: The overlap of a guess that looks at no gradient: all classes alike.
        guesses: One for each view of the server.
        protects_clients: Whether the guarantee hides a whole client's data. None without privacy.
    """

    origin: str
    counts: list[int]
    prior_overlap: float
    guesses: list[LabelGuess]
    protects_clients: bool | None = None

    def sentences(self) -> list[str]:
        """Return the result in plain words."""
        said = [
            f"With {guess.view}, the server counts {100 * guess.overlap:.0f} % of the client's labels right."
            for guess in self.guesses
        ]
        said.append(f"Guessing all classes alike, without any gradient, is {100 * self.prior_overlap:.0f} % right.")
        return said if self.protects_clients is not False else [*said, HIDES_NO_COUNTS]

    def to_plain(self) -> dict[str, Any]:
        """Return the attack as plain data, for JSON."""
        return {
            "attack": "labels",
            "origin": self.origin,
            "on_data": self.origin == OWN_DATA,
            "counts": self.counts,
            "prior_overlap": self.prior_overlap,
            "views": [{"name": guess.view, "counts": guess.counts, "overlap": guess.overlap} for guess in self.guesses],
            "sentences": self.sentences(),
        }


def attack_labels(
    job: Job,
    guarantee: Guarantee | None,
    *,
    on_data: bool = False,
    key: RunKey | None = None,
    watch: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> LabelAttack:
    """Infer a client's counts of labels from what the server sees of one round: raw, summed, and as it is sent.

    Under cross-entropy, the mean gradient of the last bias is p̄ − n/B: the mean prediction less the shares of the
    labels (Zhao et al. 2020 for one example). The server knows its own model, and so p̄ on data like the client's. Clips
    and noise change the gradient's scale: the server rehearses on stand-in clients with known labels, and scales what
    it sees by the factor that was best there.

    Args:
        job: The experiment, whose first model is broadcast.
        guarantee: What is certified for it. None without privacy.
        on_data: Attack the first client's own labels, and not those of a stand-in client.
        key: Where noise and stand-in examples come from. None for a fresh key.
        watch: Called with what is done, how many rehearsals are done, and their number.

    Raises:
        Unsupported: The task is no classification by cross-entropy, or the last layer has no bias.
    """
    if job.model.kind != "classification" or job.model.user_functions[0] is not None:
        raise Unsupported(
            "Labels are inferred from the gradient of cross-entropy, and this experiment has another loss."
        )
    bias, key = find_last_bias(job), key or RunKey.generate()
    generator = key.generator(Purpose.ATTACK, "labels")
    stand_in = stand_in_examples(job.task, generator)
    size = min(job.data.sizes[0], EXAMPLES) if on_data else EXAMPLES
    examples = (
        own_examples(job.task, size) if on_data else skewed_clients(stand_in, size, job.population.clients, generator)
    )
    truth = torch.bincount(examples.targets[:size], minlength=job.task.classes)
    prediction = mean_prediction(job, stand_in)
    guesses = []
    for view in server_views(job, guarantee):
        attack = ViewAttack(job, view, bias, prediction, size)
        factor = attack.rehearse(stand_in, key, lambda done, name=view.name: watch(name, done, REHEARSALS))  # type: ignore[misc]
        counts = attack.infer(examples, factor, key)
        guesses.append(LabelGuess(view.name, counts.tolist(), overlap(truth, counts)))
    prior = round_counts(torch.full((job.task.classes,), 1 / job.task.classes, dtype=torch.float64), size)
    protects = None if guarantee is None else guarantee.unit == "client"
    return LabelAttack(examples.origin, truth.tolist(), overlap(truth, prior), guesses, protects)


@dataclass(frozen=True)
class ViewAttack:
    """The attack through one view of the server.

    Attributes:
        job: The experiment.
        view: What the server sees.
        bias: The name of the last layer's bias.
        prediction: The mean prediction of the first model.
        size: How many examples a client holds, which is public.
    """

    job: Job
    view: ServerView
    bias: str
    prediction: Tensor
    size: int

    def rehearse(self, stand_in: Victims, key: RunKey, watch: Callable[[int], None]) -> float:
        """Return the factor of what is seen that comes closest to p̄ − n/B on clients with known labels."""
        wanted, seen = [], []
        generator = key.generator(Purpose.ATTACK, "rehearsal")
        for number in range(REHEARSALS):
            clients = skewed_clients(stand_in, self.size, self.view.clients, generator)
            counts = torch.bincount(clients.targets[: self.size], minlength=self.job.task.classes)
            wanted.append(self.prediction - counts.double() / self.size)
            seen.append(self._observe(clients, key, number + 1))
            watch(number + 1)
        left, right = torch.cat(seen), torch.cat(wanted)
        return float(left @ right / left.square().sum().clamp(min=SMALLEST))

    def infer(self, examples: Victims, factor: float, key: RunKey) -> Tensor:
        """Return the inferred number of examples of each class, which add up to the client's size."""
        shares = self.prediction - factor * self._observe(examples, key, 0)
        return round_counts(shares, self.size)

    def _observe(self, examples: Victims, key: RunKey, number: int) -> Tensor:
        own = RunKey(key.secret[:30] + number.to_bytes(2, "little"), is_seeded=True)
        seen: Params = self.view.observe(self.job, examples, self.size, own)
        gradient = seen[self.bias].double().cpu()
        return gradient - gradient.mean()  # without noise it adds up to zero


def find_last_bias(job: Job) -> str:
    """Return the name of the bias of the last layer, which has one number for each class.

    Raises:
        Unsupported: There is none.
    """
    linear = [
        (f"{name}.bias" if name else "bias", layer)
        for name, layer in job.model.loss.module.named_modules()
        if isinstance(layer, nn.Linear) and layer.out_features == job.task.classes
    ]
    if not linear or linear[-1][0] not in job.params:
        raise Unsupported("Labels are inferred from the bias of a fully connected last layer, and this model has none.")
    return linear[-1][0]


def mean_prediction(job: Job, examples: Victims) -> Tensor:
    """Return the mean probability that the first model gives to each class."""
    module = job.model.module_with_params(job.params)
    with torch.no_grad():
        outputs = module(examples.inputs.to(job.device, job.data.inputs.dtype))
    mean: Tensor = outputs.double().softmax(dim=1).mean(dim=0).cpu()
    return mean


def skewed_clients(examples: Victims, size: int, clients: int, generator: torch.Generator) -> Victims:
    """Return examples for clients of this size, one after the other, each with some labels more often than others."""
    classes = int(examples.targets.max()) + 1
    chosen = []
    for _ in range(min(clients, max(1, len(examples.targets) // size))):
        draw = np.random.default_rng(int(torch.randint(2**31, (), generator=generator)))
        weights = torch.from_numpy(draw.dirichlet([SKEW] * classes)).clamp(min=1e-9)[examples.targets]
        chosen.append(torch.multinomial(weights, size, generator=generator))
    places = torch.cat(chosen)
    return Victims(examples.inputs[places], examples.targets[places], examples.origin)


def round_counts(shares: Tensor, size: int) -> Tensor:
    """Return whole counts that add up to `size`, by largest remainders; negative shares become zero."""
    wanted = shares.clamp(min=0)
    wanted = wanted / wanted.sum().clamp(min=SMALLEST) * size
    counts = wanted.floor()
    missing = size - int(counts.sum())
    counts[(wanted - counts).argsort(descending=True, stable=True)[:missing]] += 1
    return counts.long()


def overlap(truth: Tensor, counts: Tensor) -> float:
    """Return the share of examples whose label is counted."""
    return float(torch.minimum(truth, counts).sum() / truth.sum())
