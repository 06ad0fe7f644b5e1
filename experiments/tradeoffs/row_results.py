"""What was measured in each row of the page, at the learning rate that is best there, and what was planned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from discreet.experiment.comparison.comparison_results import Result
from discreet.planning.theory.kim_utility import average_variance
from experiments.common.means import mean
from experiments.tradeoffs import plans
from experiments.tradeoffs.rate import Upload

BySeed = dict[int, float]


@dataclass(frozen=True)
class Row:
    """The runs of one row at its best learning rate, after a number of rounds."""

    rate: float
    accuracy: BySeed  # percent
    loss: BySeed


@dataclass(frozen=True)
class Plan:
    """What was planned for the clients of one row, by seed."""

    lines: tuple[Result, ...]

    def client_values(self, name: str) -> list[float]:
        """One number for each client; those that depend on how examples were dealt are the first seed's."""
        found: list[float] = self.lines[0][name]
        return found

    def uploads(self, minibatch: bool = False) -> list[Upload]:
        """Of every client and seed."""
        return [
            Upload.from_settings("minibatch" if minibatch else "example", line["coordinates"], *numbers)
            for line in self.lines
            for numbers in zip(line["noise_multiplier"], line["sampling_rate"], line["examples"], strict=True)
        ]

    @property
    def code(self) -> BySeed:
        """Bits a coordinate of the first round's uploads, on average over clients."""
        return {line["seed"]: mean(line["code"]).value for line in self.lines}

    @property
    def noise(self) -> float:
        """Of a coordinate of the clients' average where examples are clipped, as a deviation in units of the clip."""
        found = []
        for line in self.lines:
            batches = [rate * size for rate, size in zip(line["sampling_rate"], line["examples"], strict=True)]
            sent = [(noise / batch) ** 2 for noise, batch in zip(line["noise_multiplier"], batches, strict=True)]
            found.append(average_variance(batches, sent, [1] * len(sent)) ** 0.5)
        return mean(found).value


@dataclass(frozen=True)
class RowResults:
    """All results, by file and row."""

    results: Sequence[Result]

    def row(self, file: str, what: str, after: int | None = None) -> Row:
        """Return the row at the rate with the least test loss, the first of several; `after` a round, or the last."""
        rows = [_row(rate, runs, after) for rate, runs in self._by_rate(file, what).items()]
        return min(rows, key=lambda row: mean(list(row.loss.values())).value)

    def history(self, file: str, what: str, rate: float) -> dict[int, list[float]]:
        """Accuracies by round, one for each seed."""
        by: dict[int, list[float]] = {}
        for run in self._by_rate(file, what)[rate]:
            for line in run["history"]:
                by.setdefault(line["round"], []).append(100 * line["accuracy"])
        return by

    def plan(self, file: str, what: str) -> Plan:
        found = [
            each for each in self.results if each["name"] == plans.NAME and (each["of"], each["what"]) == (file, what)
        ]
        return Plan(tuple(sorted(found, key=lambda each: int(each["seed"]))))

    def runs(self) -> list[Result]:
        return [each for each in self.results if each["name"] != plans.NAME]

    def _by_rate(self, file: str, what: str) -> dict[float, list[Result]]:
        by: dict[float, list[Result]] = {}
        for each in self.runs():
            if each["name"] == file and each["swept"]["what"] == what:
                by.setdefault(float(each["swept"]["rate"]), []).append(each)
        return dict(sorted(by.items()))


def _row(rate: float, runs: Iterable[Result], after: int | None) -> Row:
    metrics_by_seed = {
        run["seed"]: run["metrics"]
        if after is None
        else next(line for line in run["history"] if line["round"] == after)
        for run in runs
    }
    return Row(
        rate,
        {seed: 100 * float(metrics["accuracy"]) for seed, metrics in metrics_by_seed.items()},
        {seed: float(metrics["loss"]) for seed, metrics in metrics_by_seed.items()},
    )
