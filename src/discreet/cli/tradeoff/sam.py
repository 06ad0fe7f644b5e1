"""`discreet tradeoff sam`: the terms of paper 004's theorems, and which of them bear on privacy."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.output import Json, emit
from discreet.cli.tradeoff import sam_curves
from discreet.cli.tradeoff.picture_option import PictureFile, drawn
from discreet.cli.tradeoff.sweep_rows import counted
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.dp_fedsam_bounds import (
        ConvergenceTerms,
        Generalisation,
        LossConstants,
        SamRun,
        SensitivityBound,
    )
    from discreet.report.curves import Picture


@dataclass(frozen=True)
class Answer:
    """What was asked, and the theorems' numbers for it."""

    run: "SamRun"
    landscape: "LossConstants"
    learning_rate: float
    delta: float
    epsilon: float  # certified
    round_epsilon: float
    sgd: "SensitivityBound"
    sam: "SensitivityBound"
    mean_sensitivity: float
    terms: "ConvergenceTerms"
    best_rounds: int
    printed_round: float  # Theorem 4
    printed: "Generalisation"  # Theorem 5, as the paper has it
    true: "Generalisation"  # with the ε that is certified

    def data(self) -> dict[str, Any]:
        from discreet.planning.theory.dp_fedsam_bounds import HIDDEN_CONSTANTS_NOTE, PRIVACY_NOTE, THEOREM_4_ERROR

        return {
            "run": to_plain(self.run),
            "landscape": to_plain(self.landscape),
            "learning_rate": self.learning_rate,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "unit": "client",
            "relation": "add_or_remove",
            "round_epsilon": self.round_epsilon,
            "theorem1": {"sgd": self.sgd._asdict(), "sam": self.sam._asdict()},
            "lemma1": self.mean_sensitivity,
            "theorem3": self.terms._asdict()
            | {
                "total": self.terms.total,
                "best_rounds": self.best_rounds,
                "valid": False,
                "reason": f"{HIDDEN_CONSTANTS_NOTE}.",
            },
            "theorem4": {"epsilon": self.printed_round, "valid": False, "reason": THEOREM_4_ERROR},
            "theorem5": {"printed": self.printed._asdict(), "certified": self.true._asdict()},
            "bears_on_privacy": ["noise_multiplier", "clip_norm", "cohort", "clients", "rounds"],
            "notes": [f"{PRIVACY_NOTE}.", f"{HIDDEN_CONSTANTS_NOTE}."],
        }

    def page(self) -> Iterator[RenderableType]:
        from discreet.planning.theory.dp_fedsam_bounds import HIDDEN_CONSTANTS_NOTE, PRIVACY_NOTE, THEOREM_4_ERROR

        run = self.run
        yield (
            f"DP-FedSAM (paper 004): {counted(run.rounds, 'round')}, about {run.cohort:,} of "
            f"{counted(run.clients, 'client')} in each, {counted(run.local_steps, 'local step')}; "
            f"{counted(run.dimension, 'parameter')}, clip {compact(run.clip_norm)}, noise multiplier "
            f"{compact(run.noise_multiplier)}."
        )
        yield (
            f"Certified for a whole client: ε = {round_up(self.epsilon)} at δ = {compact(self.delta)}, of one round "
            f"{round_up(self.round_epsilon)}; Lemma 1: one client moves the mean by C/m = "
            f"{compact(self.mean_sensitivity)}."
        )
        yield ""
        yield Padding(self._table(), (0, 2))
        yield ""
        yield f"Theorem 1, SGD: {self.sgd.reason}."
        yield f"SAM: {'as for SGD' if self.sam.reason == self.sgd.reason else self.sam.reason}."
        yield f"{HIDDEN_CONSTANTS_NOTE}. Least together after {counted(self.best_rounds, 'round')}."
        yield f"Theorem 4 is no privacy: {THEOREM_4_ERROR}."
        yield f"Theorem 5 as printed: {self.printed.reason or 'within what it assumes'}."
        yield f"With the certified ε: {self.true.reason or 'within what it assumes'}."
        yield f"{PRIVACY_NOTE}."

    def _table(self) -> Table:
        grid = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
        for heading in ("theorem", "what", "value"):
            grid.add_column(heading, justify="right" if heading == "value" else "left")
        for row in self._rows():
            grid.add_row(*row)
        return grid

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        rate = compact(self.learning_rate, 4)
        yield "1", f"squared sensitivity before the clip, SGD at {rate}", compact(self.sgd.value, 4)
        yield "", f"the same, SAM with radius {compact(self.run.radius)}", compact(self.sam.value, 4)
        yield "3", "optimisation, 2L(f − f*)/√(KT)", compact(self.terms.optimisation, 4)
        yield "", "local variance, L²σ_l²/(KT²)", compact(self.terms.variance, 4)
        yield "", "clipping, (ᾱσ_g² + α̃L²)/T", compact(self.terms.clipping, 4)
        yield "", "noise, L²√T·σ²C²pd/(m²√K)", compact(self.terms.noise, 4)
        yield "4", "its ε of one round", compact(self.printed_round, 4)
        yield "5", "its ε of all rounds", compact(self.printed.epsilon, 4)
        yield "", "generalisation gap at most, with its ε", compact(self.printed.gap, 4)
        yield "", "… with a chance of at least", compact(self.printed.chance, 4)
        yield "", "generalisation gap at most, with the certified ε", compact(self.true.gap, 4)

    def picture(self) -> "Picture":
        from discreet.cli.tradeoff.sam_curves import panels
        from discreet.planning.theory.dp_fedsam_bounds import HIDDEN_CONSTANTS_NOTE, PRIVACY_NOTE
        from discreet.report.curves import Picture

        return Picture(
            title="DP-FedSAM: the terms of its theorems",
            panels=panels(self.run, self.landscape, self.delta, self.best_rounds),
            notes=(f"{PRIVACY_NOTE}.", f"{HIDDEN_CONSTANTS_NOTE}."),
        )


def sam(
    clients: sam_curves.Clients = 500,
    cohort: sam_curves.Cohort = 50,
    rounds: sam_curves.Rounds = 300,
    local_steps: sam_curves.LocalSteps = 60,
    learning_rate: sam_curves.LearningRate = None,
    radius: sam_curves.Radius = 0.5,
    clip: sam_curves.Clip = 0.2,
    noise_multiplier: sam_curves.NoiseMultiplier = 0.95,
    dimension: sam_curves.Dimension = 11_173_962,
    fraction: sam_curves.Fraction = 1.0,
    delta: sam_curves.Delta = 2e-3,
    smoothness: sam_curves.Smoothness = 1.0,
    local_deviation: sam_curves.LocalDeviation = 1.0,
    global_deviation: sam_curves.GlobalDeviation = 1.0,
    gap: sam_curves.Gap = 1.0,
    clipped: sam_curves.Clipped = 1.0,
    unlike: sam_curves.Unlike = 1.0,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Sharpness-aware local training, term by term (paper 004).

    The sensitivities of Theorem 1 and where they stop to mean anything, the terms of Theorem 3, the generalisation of
    Theorems 4 and 5, and what is certified. The defaults are the paper's for CIFAR-10; what nobody knows is 1.
    """
    from discreet.planning.theory import dp_fedsam_bounds

    run = dp_fedsam_bounds.SamRun(
        clients=clients,
        cohort=cohort,
        rounds=rounds,
        local_steps=local_steps,
        radius=radius,
        clip_norm=clip,
        noise_multiplier=noise_multiplier,
        dimension=dimension,
        fraction=fraction,
    )
    landscape = dp_fedsam_bounds.LossConstants(
        smoothness=smoothness,
        local_deviation=local_deviation,
        global_deviation=global_deviation,
        gap=gap,
        clipped=clipped,
        unlike=unlike,
    )
    rate = dp_fedsam_bounds.theorem_learning_rate(run, landscape) if learning_rate is None else learning_rate
    epsilon, printed = (
        dp_fedsam_bounds.certified_epsilon(run, delta),
        dp_fedsam_bounds.printed_round_epsilon(run, landscape, delta),
    )
    answer = Answer(
        run=run,
        landscape=landscape,
        learning_rate=rate,
        delta=delta,
        epsilon=epsilon,
        round_epsilon=dp_fedsam_bounds.certified_round_epsilon(run, delta),
        sgd=dp_fedsam_bounds.sgd_sensitivity(run, landscape, rate),
        sam=dp_fedsam_bounds.sam_sensitivity(run, landscape, rate),
        mean_sensitivity=dp_fedsam_bounds.mean_sensitivity(run),
        terms=dp_fedsam_bounds.convergence_terms(run, landscape),
        best_rounds=dp_fedsam_bounds.best_rounds(run, landscape),
        printed_round=printed,
        printed=dp_fedsam_bounds.generalisation_bound(
            *dp_fedsam_bounds.compose_rounds(printed, delta, rounds, run.sampling_rate)
        ),
        true=dp_fedsam_bounds.generalisation_bound(epsilon, delta),
    )
    drawn(answer.picture, picture)
    emit(answer.data, answer.page, as_json=as_json)
