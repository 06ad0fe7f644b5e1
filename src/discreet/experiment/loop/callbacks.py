"""Callbacks: the caller's own code, which is called at each round of a run, may stop it, and can't change it."""

import difflib
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from discreet.errors import CallbackFailed, InvalidInput
from discreet.logs import get_log

log = get_log(__name__)

Record: TypeAlias = Mapping[str, Any]  # read-only; no guarantee covers any of it but `epsilon`
Answer: TypeAlias = bool | None  # True asks to stop the run
METHODS = ("round_begun", "evaluated", "round_ended", "finished")
NEAR = 0.75  # the likeness from which difflib takes a name for a misspelt one
PUT_RIGHT = "Pass objects of a class that inherits discreet.Callback, or functions of one record."


@runtime_checkable
class Callback(Protocol):
    """What the caller of `train` wants to do at each round. Inherit it, and write the methods that you need.

    A method that is called during the run may return True to stop it. A run that was stopped is certified at all its
    planned rounds, because what the callback saw may be the reason. An interrupt, as by Ctrl-C, that comes while a
    callback is called counts as such a stop. Records are read-only, and hold what rounds.jsonl holds. An error in a
    callback stops the run too, after the round that was played: it has a model and a card, and can be resumed.

    A callback that is also a context manager is entered before the first round and left at the end, also after an
    error.

    Attributes:
        may_stop: Whether the callback may stop the run; it is read once, before the run. If False, as for a tracker,
            its answers and its errors don't: after an error it gets a warning and is not called again. Only then can
            the run use a ledger of a fixed plan that other runs share.

    Example:
        >>> class EarlyStop(discreet.Callback):
        ...     def evaluated(self, record):
        ...         return record["evaluation"]["accuracy"] > 0.9
        >>> run = discreet.train(net, clients, rounds=60, algorithm=algorithm, callbacks=[EarlyStop(), print])
    """

    may_stop: bool = True

    def round_begun(self, record: Record) -> Answer:
        """Take the number of the next round, before anything is reserved or computed for it.

        Args:
            record: Holds `round`, from 1; `rounds`, how many are planned; and `directory`, the run directory as text.

        Returns:
            True to stop before this round.
        """
        return None

    def evaluated(self, record: Record) -> Answer:
        """Take the record of a round after which the model was evaluated, before `round_ended`.

        Args:
            record: The record of the round; `evaluation` holds the metrics on test examples, and with
                `evaluate_training` also `training` those on training examples. No guarantee covers them.

        Returns:
            True to stop after this round.
        """
        return None

    def round_ended(self, record: Record) -> Answer:
        """Take the record of a round that is complete: it is counted in the ledger and kept in the run directory.

        Args:
            record: The record of the round: `round`, `clients` and more; `epsilon` where the model was evaluated.

        Returns:
            True to stop after this round.
        """
        return None

    def finished(self, run: Any) -> None:
        """Take the run once its model and card are written, also when it was stopped. Not called after an error.

        Args:
            run: The `Run` that `train` returns.
        """
        return None  # noqa: RET501 - without it, type checkers would take the method for abstract


class Callbacks:
    """The callbacks of one run, called in their order. Within its block, those that are context managers are open.

    Attributes:
        stopped_by: The callback that asked to stop. None if none did.
    """

    def __init__(self, callbacks: Iterable["Callback | Callable[[Record], Answer]"] = ()) -> None:
        """Take callbacks, and functions that are called with the record of each round.

        Raises:
            InvalidInput: One of them is neither.
        """
        if isinstance(callbacks, Callback) or not isinstance(callbacks, Iterable):
            raise InvalidInput(
                f"callbacks must be a list, and got {_describe(callbacks)}.", fix="Write callbacks=[...]."
            )
        self._callbacks: Sequence[Callback] = [_as_callback(callback) for callback in callbacks]
        self._may_stop = [bool(callback.may_stop) for callback in self._callbacks]  # what the ledger was told
        self._failed: set[int] = set()
        self._open = ExitStack()
        self._directory = ""
        self.stopped_by: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no callback."""
        return not self._callbacks

    @property
    def may_stop(self) -> bool:
        """Whether one of the callbacks may stop the run."""
        return any(self._may_stop)

    def with_first(self, first: Callback) -> "Callbacks":
        """Return the callbacks with one before them."""
        return Callbacks([first, *self._callbacks])

    def begin_round(self, record: dict[str, Any]) -> bool:
        """Announce a round, and return whether a callback asked to stop before it."""
        self._directory = record["directory"]
        return self._call_all(("round_begun",), record)

    def end_round(self, record: dict[str, Any]) -> bool:
        """Pass on the record of a round, and return whether a callback asked to stop after it."""
        is_evaluated = record.get("evaluation") or record.get("training")
        return self._call_all(("evaluated", "round_ended") if is_evaluated else ("round_ended",), record)

    def finish(self, run: Any) -> None:
        """Pass on the run that ended."""
        for number, callback in enumerate(self._callbacks):
            self._call(number, callback, "finished", run)

    def __enter__(self) -> Self:
        with self._open:
            for callback in self._callbacks:
                if isinstance(callback, AbstractContextManager):
                    self._open.enter_context(callback)
            self._open = self._open.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    @property
    def _remedy(self) -> str:
        return f"The rounds that were played are kept in {self._directory}: load the run, or resume it if any are left."

    def _call_all(self, methods: Sequence[str], record: dict[str, Any]) -> bool:
        """Call these methods of every callback: one that asks to stop doesn't keep the others from the record."""
        for method in methods:
            for number, callback in enumerate(self._callbacks):
                if self._call(number, callback, method, read_only(record)) and self.stopped_by is None:
                    self.stopped_by = _name(callback)
        return self.stopped_by is not None

    def _call(self, number: int, callback: Callback, method: str, told: Any) -> bool:
        """Call one method, and return whether it asks to stop."""
        if number in self._failed:
            return False
        try:
            answer = getattr(callback, method)(told)
            if method != "finished":
                _check_answer(answer, may_stop=self._may_stop[number])
        except Exception as error:
            problem = f"The callback {_name(callback)} failed in {method} ({type(error).__name__}: {error})."
            if self._may_stop[number]:
                raise CallbackFailed(problem, fix=self._remedy) from error
            self._failed.add(number)
            log.warning("callback failed", error=type(error).__name__)
            warnings.warn(f"{problem} The run goes on without it.", RuntimeWarning, stacklevel=2)
            return False
        return bool(answer) and method != "finished"


class _RoundFunction(Callback):
    """A plain function, called with the record of each round."""

    def __init__(self, function: Callable[[Record], Answer]) -> None:
        self.function = function

    def round_ended(self, record: Record) -> Answer:
        return self.function(record)


def read_only(value: Any) -> Any:
    """Return a copy of plain data that can't be changed."""
    if isinstance(value, Mapping):
        return MappingProxyType({name: read_only(member) for name, member in value.items()})
    return tuple(map(read_only, value)) if isinstance(value, list | tuple) else value


def _as_callback(value: Any) -> Callback:
    if isinstance(value, type):
        raise InvalidInput(
            f"A callback must be an object, and got the class {value.__name__}.", fix=f"Write {value.__name__}()."
        )
    if isinstance(value, Callback):
        _check_names(type(value))
        return value
    if callable(value):
        return _RoundFunction(value)
    raise InvalidInput(f"A callback must be an object or a function, and got {_describe(value)}.", fix=PUT_RIGHT)


def _check_names(kind: type) -> None:
    """Refuse a method that looks like one of a callback under another name: it would never be called."""
    own = [each for each in kind.__mro__ if each is not Callback and Callback in each.__mro__]
    written = {name for each in own for name, value in vars(each).items() if inspect.isfunction(value)}
    for name in sorted(written - {*METHODS}):
        near = difflib.get_close_matches(name.removeprefix("on_"), METHODS, n=1, cutoff=NEAR)
        if name.startswith("_") or (near and near[0] in written) or not (near or name.startswith("on_")):
            continue
        right = near[0] if near else f"{', '.join(METHODS[:-1])} or {METHODS[-1]}"
        raise InvalidInput(
            f"The callback {kind.__name__} has a method {name}, which a run never calls.",
            fix=f"Name it {right}, or begin its name with an underscore.",
        )


def _check_answer(answer: Any, *, may_stop: bool) -> None:
    if answer is not None and not isinstance(answer, bool | np.bool_):
        raise TypeError(f"it must return None, or True to stop the run, and returned {_describe(answer)}")
    if answer and not may_stop:
        raise TypeError("it asked to stop the run, and its may_stop is False")


def _name(callback: Callback) -> str:
    if isinstance(callback, _RoundFunction):
        return getattr(callback.function, "__name__", type(callback.function).__name__)
    return str(getattr(callback, "title", type(callback).__name__))


def _describe(value: Any) -> str:
    return f"an object of the class {type(value).__name__}"
