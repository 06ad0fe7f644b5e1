"""profile.json: where the time of a run's rounds went, by phase, and what to do about the largest part."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from discreet.file_version import FIRST
from discreet.round_phases import Phase

Facts: TypeAlias = Mapping[str, Any]  # of the run, on which the advice depends

TITLES = {
    Phase.LEDGER: "Reserving and booking in the ledger",
    Phase.COHORT: "Drawing the cohort",
    Phase.BROADCAST: "Preparing the broadcast",
    Phase.DATA: "Preparing data and batches",
    Phase.TRAINING: "Training (forward and backward)",
    Phase.CLIPPING: "Clipping the updates",
    Phase.ENCODING: "Rounding to integers",
    Phase.SUM: "Summing the updates",
    Phase.SECURE_SUM: "Secure sum (keys, masks, shares)",
    Phase.WAITING: "Waiting for replies",
    Phase.NOISE: "Drawing noise",
    Phase.SERVER_STEP: "Step of the server",
    Phase.EVALUATION: "Evaluating (metrics, clipped examples)",
    Phase.EPSILON: "Computing ε",
    Phase.DIAGNOSTICS: "Statistics of the updates' norms",
    Phase.WRITING: "Writing checkpoint and record",
    Phase.CALLBACKS: "Callbacks and trackers",
    Phase.OTHER: "Everything else",
}
LARGE = 0.1  # of the time: a smaller part is not worth a remedy
SLOW_START = 3.0  # times the median from which on the first round is worth a sentence


class PhaseTime(NamedTuple):
    """What one phase took.

    Attributes:
        phase: The phase.
        share: Its share of the time of all rounds after the first, or of the first if there is no other.
        median: Its median seconds in these rounds, among those in which it took place.
        rounds: In how many of these rounds it took place.
        first: Its seconds in the first round.
    """

    phase: Phase
    share: float
    median: float
    rounds: int
    first: float

    @property
    def title(self) -> str:
        return TITLES[self.phase]


class RunProfile(NamedTuple):
    """Where the time of a round went.

    Attributes:
        facts: What the advice depends on: engine, device, block size, expected cohort, and what happens how often.
        rounds: Number of measured rounds, with the first.
        first: Seconds of the first round.
        median: Median seconds of the other rounds; of the first if there is no other.
        phases: The phases that took time, the largest share first.
    """

    facts: Facts
    rounds: int
    first: float
    median: float
    phases: tuple[PhaseTime, ...]

    def describe(self) -> str:
        """Return one or two sentences: what took most of the time, and the remedy if one is known."""
        largest = self.phases[0]
        said = f"{largest.title} took {_percent(largest.share)} of the time"
        candidates = [each for each in self.phases if each.share >= LARGE and each.phase is not Phase.TRAINING]
        remedies = {each: remedy for each in candidates if (remedy := _remedy(each, self))}
        if largest in remedies:
            return f"{said}: {remedies[largest]}"
        if remedies:  # training is what a run is for; say what can be saved beside it
            other = next(iter(remedies))
            return f"{said}. {other.title} took {_percent(other.share)}: {remedies[other]}"
        training = _remedy(largest, self) if largest.phase is Phase.TRAINING else ""
        return f"{said}: {training}" if training else f"{said}."

    def describe_first_round(self) -> str:
        """Say how long the first round took beside the others. Empty if there is nothing to say."""
        if self.rounds < 2 or self.first < SLOW_START * self.median:
            return ""
        return (
            f"The first round took {self.first / self.median:.0f} times as long as the median of the others: memory is "
            "measured, kernels are loaded and steps are recorded then, once for each run."
        )


def profile_data(rounds: Sequence[Mapping[Phase, float]], facts: Facts) -> dict[str, Any]:
    """Return the content of profile.json.

    Args:
        rounds: Seconds by phase of each round that this process played, in their order.
        facts: Engine, device, block size, expected cohort, and the rounds between evaluations and checkpoints.
    """
    first, *others = rounds
    return {
        "version": FIRST,
        **facts,
        "rounds": len(rounds),
        "first_round": {"seconds": _seconds(first), "phases": _plain(first)},
        "later_rounds": {
            "median_seconds": statistics.median(map(_seconds, others)) if others else None,
            "phases": {
                phase.value: _summary(phase, others) for phase in Phase if any(phase in each for each in others)
            },
        },
    }


def read_profile(data: Any) -> RunProfile | None:
    """Read the content of profile.json. None if there is none, or if it is not what this code wrote."""
    try:
        first, later = data["first_round"], data["later_rounds"]
        seconds, known = first["phases"], later["phases"]
        medians = later["median_seconds"]
        if not known:
            known = {name: {"seconds": each, "median": each, "rounds": 1} for name, each in seconds.items()}
        whole = sum(float(each["seconds"]) for each in known.values())
        phases = [
            PhaseTime(
                Phase(name),
                float(each["seconds"]) / whole,
                float(each["median"]),
                int(each["rounds"]),
                float(seconds.get(name, 0.0)),
            )
            for name, each in known.items()
        ]
        ordered = tuple(sorted(phases, key=lambda each: -each.share))
        begun = float(first["seconds"])
        facts = {name: data[name] for name in ("engine", "device", "block_size", "expected_cohort", *_PERIODS)}
        if not ordered or not all(each.share >= 0 for each in ordered):
            return None
        return RunProfile(facts, int(data["rounds"]), begun, begun if medians is None else float(medians), ordered)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError):
        return None


_PERIODS = ("evaluate_every", "checkpoint_every")


def _seconds(phases: Mapping[Phase, float]) -> float:
    return sum(phases.values())


def _plain(phases: Mapping[Phase, float]) -> dict[str, float]:
    return {phase.value: phases[phase] for phase in Phase if phase in phases}


def _summary(phase: Phase, rounds: Sequence[Mapping[Phase, float]]) -> dict[str, Any]:
    values = [each[phase] for each in rounds if phase in each]
    return {"seconds": sum(values), "median": statistics.median(values), "rounds": len(values)}


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _remedy(part: PhaseTime, profile: RunProfile) -> str:
    """Return what makes this phase cheaper, as a sentence without its subject. Empty if nothing is known."""
    facts = profile.facts
    blocks = float(facts["expected_cohort"]) / max(1, int(facts["block_size"]))
    match part.phase:
        case Phase.EVALUATION | Phase.EPSILON:
            every = 5 * int(facts["evaluate_every"])
            return f"evaluate_every = {every} would evaluate a fifth as often, and saves {_percent(0.8 * part.share)}."
        case Phase.WRITING:
            every = 5 * int(facts["checkpoint_every"])
            return f"checkpoint_every = {every} writes fewer checkpoints; a run that is killed repeats more rounds."
        case Phase.LEDGER:
            return "each entry waits for the disk (fsync), so a ledger on a local, faster disk helps."
        case Phase.CALLBACKS:
            return "let callbacks and trackers do less in a round, or look at every tenth round only."
        case Phase.SECURE_SUM:
            return (
                'the protocol is played in full, for every client; engine = { kind = "embedded" } adds the same '
                "integers without it, which is enough to study accuracy."
            )
        case Phase.WAITING:
            return "clients or workers set the pace here; what they do is measured on their machines only."
        case Phase.DATA if facts["expected_cohort"] >= 1000:
            return (
                "with so many small clients, their random streams and batches cost more than the training; fewer local "
                "steps with larger batches help."
            )
        case Phase.TRAINING if facts["engine"] == "reference":
            return 'engine = { kind = "embedded" } trains clients in blocks, and gives the same model to ten digits.'
        case Phase.TRAINING | Phase.CLIPPING | Phase.SUM if blocks > 4 and facts["engine"] in ("embedded", "secure"):
            return (
                f"the cohort is trained in {blocks:.0f} blocks of {facts['block_size']}; a larger memory_gb or "
                "block_size of the engine lets more clients train at once."
            )
        case _:
            return ""
