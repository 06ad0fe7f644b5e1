"""What `discreet tradeoff iterations` answers, as JSON and as a page."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from discreet.cli.tradeoff.sweep_rows import counted, table, whole
from discreet.part import to_plain
from discreet.privacy.wording import compact, round_up

if TYPE_CHECKING:
    from discreet.planning.theory.fu_best_iterations import BestValue, BoundRow, LongRun
    from discreet.planning.theory.fu_client_noise import Form
    from discreet.planning.theory.fu_convergence import ConvergenceBound, Setting
    from discreet.report.curves import Picture

NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
FORMULA, EXPLICIT, WHOLE = "Theorem 5", "T well over γ", "whole T_l"
CLIENT = "for all of a client's data, against the server"


@dataclass(frozen=True)
class Answer:
    """What was asked; `source` says where the constants are from."""

    setting: "Setting"
    total: int
    local: int
    source: str

    @cached_property
    def at(self) -> "BoundRow":
        from discreet.planning.theory.fu_best_iterations import bound_row

        return bound_row(self.setting, self.total, self.local)

    @cached_property
    def by_local(self) -> "list[BoundRow]":
        from discreet.planning.theory import fu_best_iterations

        return fu_best_iterations.sweep_local(self.setting, self.total)

    @cached_property
    def by_total(self) -> "list[BoundRow]":
        from discreet.planning.theory import fu_best_iterations

        best = [self.best_total(form)[WHOLE].value for form in fu_best_iterations.FORMS]
        return fu_best_iterations.sweep_total(self.setting, self.local, self.total, *best)

    def best_local(self, form: "Form") -> "dict[str, BestValue]":
        from discreet.planning.theory import fu_best_iterations

        return {
            FORMULA: fu_best_iterations.printed_best_local(self.setting, self.total),
            EXPLICIT: fu_best_iterations.explicit_best_local(self.setting, self.total, form),
            WHOLE: fu_best_iterations.best_local(self.setting, self.total, form),
        }

    def best_total(self, form: "Form") -> "dict[str, BestValue]":
        from discreet.planning.theory import fu_best_iterations

        return {
            EXPLICIT: fu_best_iterations.explicit_best_total(self.setting, self.local, form),
            WHOLE: fu_best_iterations.best_total(self.setting, self.local, form),
        }

    def fate(self, form: "Form") -> "LongRun":
        from discreet.planning.theory.fu_best_iterations import long_run

        return long_run(self.setting, form)

    def true_epsilon(self, form: "Form") -> float:
        """What the noise of this form certifies, when two updates of norm Ξ lie 2Ξ apart."""
        noise = self.setting.noise
        return noise.epsilon if form == "corrected" else noise.certified(self.at.turns)

    def data(self) -> dict[str, Any]:
        from discreet.planning.theory.fu_best_iterations import FORMS

        return {
            "setting": to_plain(self.setting),
            "constants_from": self.source,
            "iterations": self.total,
            "local_iterations": self.local,
            "rounds": self.at.rounds,
            "turns": self.at.turns,
            "unit": "client",
            "against": "server",
            "z": self.setting.noise.z,
            "c2": self.setting.noise.c2,
            "gamma": self.setting.gamma(self.local),
            "omega0": self.setting.omega0(self.local),
            **{form: self._form(form) for form in FORMS},
            "by_local_iterations": [_row(each) for each in self.by_local],
            "by_iterations": [_row(each) for each in self.by_total],
            "notes": [f"{note}." for note in self.notes()],
        }

    def _form(self, form: "Form") -> dict[str, Any]:
        fate = self.fate(form)
        return {
            "sensitivity": self.setting.sensitivity(form),
            "true_epsilon": self.true_epsilon(form),
            "noise_constant": self.setting.noise_constant(form),
            "omega1": self.setting.omega1(self.at.rounds, self.local, form),
            "bound": _bound(getattr(self.at, form)),
            "best_local_iterations": {_KEYS[name]: _best(each) for name, each in self.best_local(form).items()},
            "best_iterations": {_KEYS[name]: _best(each) for name, each in self.best_total(form).items()},
            "in_the_long_run": {"verdict": fate.verdict, "limit": fate.limit, "reason": fate.reason},
        }

    def page(self) -> Iterator[RenderableType]:
        setting, noise = self.setting, self.setting.noise
        delta = f" at δ = {compact(noise.delta)}" if noise.kind == "gaussian" else ""
        yield (
            f"DP-FedAvg (paper 003): {counted(setting.clients, 'client')}, {setting.cohort:,} a round; each adds "
            f"{NAMES[noise.kind]} noise of its own to {counted(setting.parameters, 'parameter')}."
        )
        yield f"ε = {compact(noise.epsilon)}{delta} {CLIENT}."
        yield (
            f"T = {counted(self.total, 'local iteration')}, E = {self.local:,} between uploads: "
            f"{counted(self.at.rounds, 'round')}, "
            f"T_l = {self.at.turns:,} of them each client's."
        )
        yield ""
        yield self._summary()
        yield ""
        yield f"The bound against E, at T = {self.total:,}:"
        yield table(("E", "rounds", "T_l", "without noise", "as printed", "corrected"), map(_cells, self.by_local))
        yield ""
        yield f"The bound against T, at E = {self.local:,}:"
        yield table(("T", "rounds", "T_l", "without noise", "as printed", "corrected"), map(_longer, self.by_total))
        yield ""
        yield from (f"{note}." for note in [*self._remarks(), *self.notes()])

    def _summary(self) -> Padding:
        """Both forms side by side; a star is a number that a remark doubts."""
        grid = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False)
        for name in ("", "as printed", "corrected"):
            grid.add_column(name, justify="right" if name else "left")
        forms: tuple[Form, Form] = ("printed", "corrected")
        bounds = [getattr(self.at, form) for form in forms]
        grid.add_row("two gradients lie apart", *(compact(self.setting.sensitivity(form)) for form in forms))
        grid.add_row("ε that the noise truly has", *(round_up(self.true_epsilon(form)) for form in forms))
        grid.add_row("C_M", *(compact(self.setting.noise_constant(form), 4) for form in forms))
        grid.add_row("Y_T, mean ‖θ_T − θ*‖², at most", *(round_up(each.total) for each in bounds), style="bold")
        grid.add_row("  of which noise", *(round_up(each.noise) for each in bounds))
        for name in (FORMULA, EXPLICIT, WHOLE):
            grid.add_row(f"E*, {name}", *(_number(self.best_local(form)[name]) for form in forms))
        for name in (EXPLICIT, WHOLE):
            grid.add_row(f"T*, {name}", *(_number(self.best_total(form)[name]) for form in forms))
        grid.add_row("as T grows", *(_fated(self.fate(form)) for form in forms))
        return Padding(grid, (0, 2))

    def _remarks(self) -> Iterator[str]:
        """What a best E or T says of itself; a star is one that isn't what it says."""
        for what, found in (("E*", self.best_local("corrected")), ("T*", self.best_total("corrected"))):
            for name, each in found.items():
                if each.reason:
                    yield f"{'' if each.valid else '* '}{what}, {name}: {each.reason}"

    def notes(self) -> Iterator[str]:
        """What a reader has to know to read the numbers right."""
        from discreet.planning.theory.fu_best_iterations import MEASURED_NOTES

        fate, noise = self.fate("corrected"), self.setting.noise
        yield f"The bound {fate.verdict}, because {fate.reason}"
        if self.at.corrected.reason:
            yield f"Not proven here: {self.at.corrected.reason}"
        least = min(each.corrected.total for each in [*self.by_local, *self.by_total])
        if least > self.setting.constants.start:
            yield (
                f"At no E or T here is it below Y_0 = {compact(self.setting.constants.start, 4)}, where training "
                "starts: it doesn't promise that training helps"
            )
        yield f"{MEASURED_NOTES[noise.kind]} (docs/results/theory.md)"
        yield f"Constants: {_constants(self.setting)}; {self.source}"

    def picture(self) -> "Picture":
        from discreet.cli.tradeoff.iterations_picture import picture

        return picture(self)


_KEYS = {FORMULA: "formula", EXPLICIT: "explicit", WHOLE: "whole"}


def _constants(setting: "Setting") -> str:
    known = setting.constants
    named = {
        "μ": known.convexity,
        "λ": known.smoothness,
        "G": known.gradient_bound,
        "Γ": known.heterogeneity,
        "Y_0": known.start,
    }
    return ", ".join(f"{name} = {compact(value, 4)}" for name, value in named.items())


def _number(best: "BestValue") -> str:
    return f"{'' if best.valid else '* '}{'∞' if math.isinf(best.value) else compact(best.value, 4)}"


def _fated(fate: "LongRun") -> str:
    return fate.verdict if math.isinf(fate.limit) else f"{fate.verdict} at {compact(fate.limit, 4)}"


def _cells(row: "BoundRow") -> Sequence[str]:
    return whole(row.local), *_counted(row)


def _longer(row: "BoundRow") -> Sequence[str]:
    return whole(row.total), *_counted(row)


def _counted(row: "BoundRow") -> tuple[str, ...]:
    values = (row.silent, row.printed.total, row.corrected.total)
    return whole(row.rounds), whole(row.turns), *map(round_up, values)


def _bound(bound: "ConvergenceBound") -> dict[str, Any]:
    return {"total": bound.total, **bound._asdict()}


def _best(best: "BestValue") -> dict[str, Any]:
    return dict(best._asdict())


def _row(row: "BoundRow") -> dict[str, Any]:
    return {
        "iterations": row.total,
        "local_iterations": row.local,
        "rounds": row.rounds,
        "turns": row.turns,
        "without_noise": row.silent,
        "printed": row.printed.total,
        "corrected": row.corrected.total,
    }
