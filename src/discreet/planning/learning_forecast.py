"""Forecast from public numbers whether a model will be better than a constant answer.

Over a whole run of T rounds, updates that agree add up T-fold and noise √T-fold. So the noise-to-signal ratio of a run
is that of a round over √T. It is a best case, with every update at the clip and in the same direction; what is left of
that is known of no table before it is trained on. The limits below are from trials with the settings that `discreet
init` writes, on parts of the four tables that these settings were chosen on: above them a model kept less than a third
of the gain over a constant answer, and mostly none (docs/decisions/0027-starter-rules.md). Gradients of single rows
mostly cancel, so their best case is farther away than that of whole clients. A squared error grows with the noise in
every weight, an accuracy doesn't.
"""

import math
from collections.abc import Iterator
from typing import Literal

from discreet.algorithms.noise_to_signal import noise_to_signal
from discreet.experiment.terms import Terms
from discreet.privacy.wording import compact

LIMITS: dict[tuple[Literal["row", "client"], Literal["classification", "regression"]], float] = {
    ("row", "classification"): 0.2,
    ("row", "regression"): 0.04,
    ("client", "classification"): 1.5,
    ("client", "regression"): 0.3,
}


def forecast_warnings(terms: Terms) -> Iterator[str]:
    """Yield a warning if the noise of all rounds will probably hide what there is to learn.

    None without noise, and where the size of the model or the ratio is unknown. It looks at no data.
    """
    ratio = run_noise_to_signal(terms)
    protected: Literal["row", "client"] = "client" if _hides_clients(terms) else "row"
    limit = LIMITS[protected, terms.data.kind]
    if ratio is not None and ratio > limit:
        answer = "the same label" if terms.data.kind == "classification" else "the mean"
        yield (
            f"The model will probably be no better than always predicting {answer}: over all {terms.rounds:,} rounds "
            f"the noise is {compact(ratio, 2)} of the signal at best, and above {limit:g} models like the starter's "
            f"learned little. More {'clients' if protected == 'client' else 'rows'}, fewer inputs or a larger epsilon "
            "may help."
        )


def run_noise_to_signal(terms: Terms) -> float | None:
    """Return ‖noise‖ ÷ ‖signal‖ of the sum of all rounds, with all updates at the clip in the same direction."""
    if terms.size is None:
        return None
    ratio = noise_to_signal(terms.algorithm, terms.population, terms.size.parameters)
    return None if ratio is None else ratio / math.sqrt(terms.rounds)


def _hides_clients(terms: Terms) -> bool:
    """Whether the noise is on updates of whole clients."""
    return terms.algorithm.mechanism.is_private and terms.algorithm.mechanism.unit == "client"
