"""How long to train and how often to upload, by Theorem 3 of Fu et al. 2021."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from discreet.part import to_plain
from discreet.planning.curves.number_tables import format_whole, number_table
from discreet.planning.theory import fu_best_iterations
from discreet.planning.theory.fu_best_iterations import FORMS, MEASURED_NOTES, BestValue, BoundRow, LongRun
from discreet.planning.theory.fu_client_noise import Form
from discreet.planning.theory.fu_convergence import Setting
from discreet.privacy.wording import compact, round_up
from discreet.report.curves import Picture
from discreet.report.number_format import format_count

NOISE_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
FORMULA, EXPLICIT, WHOLE = "Theorem 5", "T well over γ", "whole T_l"  # three ways to find a best E or T
JSON_KEYS = {FORMULA: "formula", EXPLICIT: "explicit", WHOLE: "whole"}
BOUND_HEADINGS = ("rounds", "T_l", "without noise", "as printed", "corrected")


@dataclass(frozen=True)
class IterationsTradeoff:
    """Theorem 3's bound for one setting, as printed and corrected.

    Attributes:
        total: T, the local iterations in all.
        local: E, the local iterations between two uploads.
        source: Where the constants of the losses come from.
    """

    setting: Setting
    total: int
    local: int
    source: str

    @cached_property
    def row(self) -> BoundRow:
        """The bound at the T and E that were asked for."""
        return fu_best_iterations.bound_row(self.setting, self.total, self.local)

    @cached_property
    def local_rows(self) -> list[BoundRow]:
        """The bound for every E at this T."""
        return fu_best_iterations.sweep_local(self.setting, self.total)

    @cached_property
    def total_rows(self) -> list[BoundRow]:
        """The bound for several T at this E, the best ones among them."""
        best = [self.best_total(form)[WHOLE].value for form in FORMS]
        return fu_best_iterations.sweep_total(self.setting, self.local, self.total, *best)

    def best_local(self, form: Form) -> dict[str, BestValue]:
        """Return the best E by each of the three ways."""
        return {
            FORMULA: fu_best_iterations.printed_best_local(self.setting, self.total),
            EXPLICIT: fu_best_iterations.explicit_best_local(self.setting, self.total, form),
            WHOLE: fu_best_iterations.best_local(self.setting, self.total, form),
        }

    def best_total(self, form: Form) -> dict[str, BestValue]:
        """Return the best T; Theorem 5 has no formula for it."""
        return {
            EXPLICIT: fu_best_iterations.explicit_best_total(self.setting, self.local, form),
            WHOLE: fu_best_iterations.best_total(self.setting, self.local, form),
        }

    def true_epsilon(self, form: Form) -> float:
        """Return what the noise of this form certifies, given that two updates of norm Ξ can be 2Ξ apart."""
        noise = self.setting.noise
        return noise.epsilon if form == "corrected" else noise.certified_epsilon(self.row.turns)

    def data(self) -> dict[str, Any]:
        return {
            "setting": to_plain(self.setting),
            "constants_from": self.source,
            "iterations": self.total,
            "local_iterations": self.local,
            "rounds": self.row.rounds,
            "turns": self.row.turns,
            "unit": "client",
            "against": "server",
            "z": self.setting.noise.z,
            "c2": self.setting.noise.c2,
            "gamma": self.setting.gamma(self.local),
            "omega0": self.setting.omega0(self.local),
            **{form: self._describe_form(form) for form in FORMS},
            "by_local_iterations": [_describe_row(row) for row in self.local_rows],
            "by_iterations": [_describe_row(row) for row in self.total_rows],
            "notes": [f"{note}." for note in self.notes()],
        }

    def page(self) -> Iterator[RenderableType]:
        setting, noise = self.setting, self.setting.noise
        delta = f" at δ = {compact(noise.delta)}" if noise.kind == "gaussian" else ""
        yield (
            f"DP-FedAvg (Fu et al. 2021): {format_count(setting.clients, 'clients')}, {setting.cohort:,} per round; "
            f"each adds its own {NOISE_NAMES[noise.kind]} noise to {format_count(setting.parameters, 'parameters')}."
        )
        yield f"ε = {compact(noise.epsilon)}{delta} for all of a client's data, against the server."
        yield (
            f"T = {format_count(self.total, 'local iterations')}, E = {self.local:,} between uploads: "
            f"{format_count(self.row.rounds, 'rounds')}; each client joins T_l = {self.row.turns:,} of them."
        )
        yield ""
        yield self._summary()
        yield ""
        yield f"The bound against E, at T = {self.total:,}:"
        yield number_table(("E", *BOUND_HEADINGS), (_cells(row.local, row) for row in self.local_rows))
        yield ""
        yield f"The bound against T, at E = {self.local:,}:"
        yield number_table(("T", *BOUND_HEADINGS), (_cells(row.total, row) for row in self.total_rows))
        yield ""
        yield from (f"{note}." for note in [*self._remarks(), *self.notes()])

    def picture(self) -> Picture:
        from discreet.planning.curves.iterations_picture import draw_iterations

        return draw_iterations(self)

    def notes(self) -> Iterator[str]:
        """Yield what a reader has to know to read the numbers correctly."""
        limit, noise = fu_best_iterations.long_run(self.setting), self.setting.noise
        yield f"The bound {limit.verdict}, because {limit.reason}"
        if reason := self.row.bounds["corrected"].reason:
            yield f"Not proven here: {reason}"
        least = min(row.bounds["corrected"].total for row in [*self.local_rows, *self.total_rows])
        if least > self.setting.constants.start:
            yield (
                f"At no E or T here is it below Y_0 = {compact(self.setting.constants.start, 4)}, where training "
                "starts: it doesn't promise that training helps"
            )
        yield f"{MEASURED_NOTES[noise.kind]} (docs/results/theory.md)"
        yield f"Constants: {_describe_constants(self.setting)}; {self.source}"

    def _summary(self) -> Padding:
        """Compare both forms; a star marks a number that a remark questions."""
        bounds = [self.row.bounds[form] for form in FORMS]
        rows: list[tuple[RenderableType, ...]] = [
            ("largest distance of two gradients", *(compact(self.setting.sensitivity(form)) for form in FORMS)),
            ("true ε of the noise", *(round_up(self.true_epsilon(form)) for form in FORMS)),
            ("C_M", *(compact(self.setting.noise_constant(form), 4) for form in FORMS)),
            tuple(
                Text(cell, style="bold")
                for cell in ("Y_T, mean ‖θ_T − θ*‖², at most", *(round_up(bound.total) for bound in bounds))
            ),
            ("  part of it from noise", *(round_up(bound.noise) for bound in bounds)),
            *((f"E*, {way}", *(_star(self.best_local(form)[way]) for form in FORMS)) for way in JSON_KEYS),
            *((f"T*, {way}", *(_star(self.best_total(form)[way]) for form in FORMS)) for way in (EXPLICIT, WHOLE)),
            ("as T grows", *(_describe_limit(fu_best_iterations.long_run(self.setting, form)) for form in FORMS)),
        ]
        return number_table(("", "as printed", "corrected"), rows, names=1)

    def _remarks(self) -> Iterator[str]:
        """Yield the reason that comes with a best E or T; a star marks a value that isn't the best."""
        for symbol, best in (("E*", self.best_local("corrected")), ("T*", self.best_total("corrected"))):
            for way, value in best.items():
                if value.reason:
                    yield f"{'' if value.valid else '* '}{symbol}, {way}: {value.reason}"

    def _describe_form(self, form: Form) -> dict[str, Any]:
        bound, limit = self.row.bounds[form], fu_best_iterations.long_run(self.setting, form)
        return {
            "sensitivity": self.setting.sensitivity(form),
            "true_epsilon": self.true_epsilon(form),
            "noise_constant": self.setting.noise_constant(form),
            "omega1": self.setting.omega1(self.row.rounds, self.local, form),
            "bound": {"total": bound.total, **bound._asdict()},
            "best_local_iterations": {JSON_KEYS[way]: best._asdict() for way, best in self.best_local(form).items()},
            "best_iterations": {JSON_KEYS[way]: best._asdict() for way, best in self.best_total(form).items()},
            "in_the_long_run": {"verdict": limit.verdict, "limit": limit.limit, "reason": limit.reason},
        }


def _describe_constants(setting: Setting) -> str:
    known = setting.constants
    symbols = {
        "μ": known.convexity,
        "λ": known.smoothness,
        "G": known.gradient_bound,
        "Γ": known.heterogeneity,
        "Y_0": known.start,
    }
    return ", ".join(f"{symbol} = {compact(value, 4)}" for symbol, value in symbols.items())


def _star(best: BestValue) -> str:
    return f"{'' if best.valid else '* '}{'∞' if math.isinf(best.value) else compact(best.value, 4)}"


def _describe_limit(limit: LongRun) -> str:
    return limit.verdict if math.isinf(limit.limit) else f"{limit.verdict} at {compact(limit.limit, 4)}"


def _cells(swept: int, row: BoundRow) -> tuple[str, ...]:
    values = (row.without_noise, *(row.bounds[form].total for form in FORMS))
    return format_whole(swept), format_whole(row.rounds), format_whole(row.turns), *map(round_up, values)


def _describe_row(row: BoundRow) -> dict[str, Any]:
    return {
        "iterations": row.total,
        "local_iterations": row.local,
        "rounds": row.rounds,
        "turns": row.turns,
        "without_noise": row.without_noise,
        **{form: row.bounds[form].total for form in FORMS},
    }
