"""Sharpness-aware local training: the terms of the theorems of DP-FedSAM (Shi et al. 2023), beside the certified ε."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from discreet.part import to_plain
from discreet.planning.curves.number_tables import number_table
from discreet.planning.curves.sam_picture import draw_sam
from discreet.planning.theory import dp_fedsam_bounds
from discreet.planning.theory.dp_fedsam_bounds import (
    HIDDEN_CONSTANTS_NOTE,
    PRIVACY_NOTE,
    THEOREM_4_ERROR,
    ConvergenceTerms,
    Generalisation,
    LossConstants,
    SamRun,
    SensitivityBound,
)
from discreet.privacy.wording import compact, round_up
from discreet.report.curves import Picture
from discreet.report.number_format import format_count

PRIVACY_FIELDS = ["noise_multiplier", "clip_norm", "cohort", "clients", "rounds"]


@dataclass(frozen=True)
class SamTradeoff:
    """The numbers of Theorems 1 to 5 for one run.

    Attributes:
        epsilon: The certified ε of all rounds.
        round_epsilon: The certified ε of one round.
        sgd: Theorem 1 for SGD.
        sam: Theorem 1 for SAM.
        mean_sensitivity: Lemma 1.
        terms: Theorem 3.
        best_rounds: The rounds at which the sum of these terms is least.
        printed_round: The ε of one round by Theorem 4.
        printed: Theorem 5 as the paper has it.
        certified: Theorem 5 with the certified ε.
    """

    run: SamRun
    constants: LossConstants
    learning_rate: float
    delta: float
    epsilon: float
    round_epsilon: float
    sgd: SensitivityBound
    sam: SensitivityBound
    mean_sensitivity: float
    terms: ConvergenceTerms
    best_rounds: int
    printed_round: float
    printed: Generalisation
    certified: Generalisation

    def data(self) -> dict[str, Any]:
        return {
            "run": to_plain(self.run),
            "landscape": to_plain(self.constants),
            "learning_rate": self.learning_rate,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "unit": "client",
            "relation": "add_or_remove",
            "round_epsilon": self.round_epsilon,
            "theorem1": {"sgd": self.sgd._asdict(), "sam": self.sam._asdict()},
            "lemma1": self.mean_sensitivity,
            "theorem3": {
                **self.terms._asdict(),
                "total": self.terms.total,
                "best_rounds": self.best_rounds,
                "valid": False,
                "reason": f"{HIDDEN_CONSTANTS_NOTE}.",
            },
            "theorem4": {"epsilon": self.printed_round, "valid": False, "reason": THEOREM_4_ERROR},
            "theorem5": {"printed": self.printed._asdict(), "certified": self.certified._asdict()},
            "bears_on_privacy": PRIVACY_FIELDS,
            "notes": [f"{PRIVACY_NOTE}.", f"{HIDDEN_CONSTANTS_NOTE}."],
        }

    def page(self) -> Iterator[RenderableType]:
        run = self.run
        yield (
            f"DP-FedSAM (Shi et al. 2023): {format_count(run.rounds, 'rounds')}, about {run.cohort:,} of "
            f"{format_count(run.clients, 'clients')} in each, {format_count(run.local_steps, 'local steps')}; "
            f"{format_count(run.dimension, 'parameters')}, clip norm {compact(run.clip_norm)}, noise multiplier "
            f"{compact(run.noise_multiplier)}."
        )
        yield (
            f"Certified for a whole client: ε = {round_up(self.epsilon)} at δ = {compact(self.delta)}, and "
            f"{round_up(self.round_epsilon)} for one round. Lemma 1: one client moves the mean by C/m = "
            f"{compact(self.mean_sensitivity)}."
        )
        yield ""
        yield number_table(("theorem", "quantity", "value"), self._rows(), names=2)
        yield ""
        yield f"Theorem 1, SGD: {self.sgd.reason}."
        yield f"SAM: {'as for SGD' if self.sam.reason == self.sgd.reason else self.sam.reason}."
        yield f"{HIDDEN_CONSTANTS_NOTE}. Their sum is least after {format_count(self.best_rounds, 'rounds')}."
        yield f"Theorem 4 is not a privacy guarantee: {THEOREM_4_ERROR}."
        yield f"Theorem 5 as printed: {self.printed.reason or 'within its assumptions'}."
        yield f"With the certified ε: {self.certified.reason or 'within its assumptions'}."
        yield f"{PRIVACY_NOTE}."

    def picture(self) -> Picture:
        return draw_sam(self.run, self.constants, self.delta, self.best_rounds)

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        rate = compact(self.learning_rate, 4)
        yield "1", f"squared sensitivity before the clip, SGD at {rate}", compact(self.sgd.value, 4)
        yield "", f"for SAM with radius {compact(self.run.radius)}", compact(self.sam.value, 4)
        yield "3", "optimisation, 2L(f − f*)/√(KT)", compact(self.terms.optimisation, 4)
        yield "", "local variance, L²σ_l²/(KT²)", compact(self.terms.variance, 4)
        yield "", "clipping, (ᾱσ_g² + α̃L²)/T", compact(self.terms.clipping, 4)
        yield "", "noise, L²√T·σ²C²pd/(m²√K)", compact(self.terms.noise, 4)
        yield "4", "its ε of one round", compact(self.printed_round, 4)
        yield "5", "its ε of all rounds", compact(self.printed.epsilon, 4)
        yield "", "generalisation gap at most, with its ε", compact(self.printed.gap, 4)
        yield "", "… with a probability of at least", compact(self.printed.chance, 4)
        yield "", "generalisation gap at most, with the certified ε", compact(self.certified.gap, 4)


def compute_sam_tradeoff(
    run: SamRun, constants: LossConstants, delta: float, learning_rate: float | None = None
) -> SamTradeoff:
    """Evaluate every theorem for one run; without a learning rate, at the one that Theorems 1 and 3 need."""
    rate = dp_fedsam_bounds.theorem_learning_rate(run, constants) if learning_rate is None else learning_rate
    epsilon = dp_fedsam_bounds.certified_epsilon(run, delta)
    printed = dp_fedsam_bounds.printed_round_epsilon(run, constants, delta)
    composed = dp_fedsam_bounds.compose_rounds(printed, delta, run.rounds, run.sampling_rate)
    return SamTradeoff(
        run=run,
        constants=constants,
        learning_rate=rate,
        delta=delta,
        epsilon=epsilon,
        round_epsilon=dp_fedsam_bounds.certified_round_epsilon(run, delta),
        sgd=dp_fedsam_bounds.sgd_sensitivity(run, constants, rate),
        sam=dp_fedsam_bounds.sam_sensitivity(run, constants, rate),
        mean_sensitivity=dp_fedsam_bounds.mean_sensitivity(run),
        terms=dp_fedsam_bounds.convergence_terms(run, constants),
        best_rounds=dp_fedsam_bounds.best_rounds(run, constants),
        printed_round=printed,
        printed=dp_fedsam_bounds.generalisation_bound(*composed),
        certified=dp_fedsam_bounds.generalisation_bound(epsilon, delta),
    )
