"""Table 1 of Heikkilä 2025, the mean of models trained apart: as printed, as its accountant says, and as certified.

python -m experiments.distributed.table1
"""

from discreet.planning.theory.heikkila_model_averaging import ModelAverage, evaluate_average
from discreet.privacy.wording import round_up

LOCAL_EPSILON, SAMPLING_RATE, DELTA = 5.0, 0.1, 1e-5
STEPS = {1: "1 step", 10: "1 epoch, 10 steps", 50: "5 epochs, 50 steps"}
PRINTED = (  # steps, models, and σ and ε as the paper prints them
    (1, 1, 0.69, 5.0),
    (1, 2, 0.98, 2.78),
    (1, 5, 1.54, 1.22),
    (1, 10, 2.18, 0.64),
    (10, 1, 0.90, 5.0),
    (10, 2, 1.28, 2.61),
    (10, 5, 2.02, 1.19),
    (10, 10, 2.85, 0.72),
    (50, 1, 1.18, 5.0),
    (50, 2, 1.67, 2.85),
    (50, 5, 2.64, 1.55),
    (50, 10, 3.73, 1.03),
)


def table() -> str:
    """As Markdown; rows whose ε is only a claim say so."""
    head = "| local steps | models | σ printed | ε printed | σ | ε by its accountant | ε certified |"
    rule = "|---|---:|---:|---:|---:|---:|---:|"
    return "\n".join([head, rule, *(_row(*printed) for printed in PRINTED)])


def _row(steps: int, models: int, sigma: float, epsilon: float) -> str:
    found = evaluate_average(LOCAL_EPSILON, models, steps, SAMPLING_RATE, DELTA)
    cells = (STEPS[steps], models, f"{sigma:.2f}", f"{epsilon:.2f}", f"{found.total_noise:.4f}", _claim_text(found))
    return f"| {' | '.join(map(str, cells))} | {round_up(found.epsilon, 3)} |"


def _claim_text(found: ModelAverage) -> str:
    return f"{found.claimed_epsilon:.4f}" + ("" if found.is_sound else ", a claim")


if __name__ == "__main__":
    print(table())
