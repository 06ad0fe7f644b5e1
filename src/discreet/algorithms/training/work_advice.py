"""How much a client does in a round, and how much it should: what a trainer tells a plan."""

from typing import NamedTuple

STEPS, ITERATIONS, EPOCHS = "local steps", "local iterations", "epochs"
PAID_BY_STEP = (
    "The noise depends on the steps of all rounds together. More of them per round, in fewer rounds, save bytes and "
    "average less often; nothing proven or measured here says which number is best."
)


class WorkAdvice(NamedTuple):
    """The local work of the first round, and the recommended one; the fields are JSON keys of a plan.

    Attributes:
        now: Today's number.
        recommended: None where nothing proven or measured favours a number; then `why` says what decides instead.
        unit: What is counted: local steps, local iterations or epochs.
        why: The reason. Empty if it is not the trainer's to give: the mechanism decides what a round costs.
    """

    now: int
    recommended: int | None
    unit: str
    why: str
