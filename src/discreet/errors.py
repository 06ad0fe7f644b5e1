"""What can go wrong, each with its advice and its exit code."""


class DiscreetError(Exception):
    """One sentence that says what is wrong, what is allowed and what was got; then what to do."""

    exit_code = 1

    def __init__(self, problem: str, *, fix: str = "") -> None:
        super().__init__(f"{problem} {fix}".strip())
        self.problem = problem
        self.fix = fix


class InvalidInput(DiscreetError):
    """A number, a name or a file that cannot mean what its place needs."""

    exit_code = 2


class UnsoundCombination(InvalidInput):
    """Parts that are fine alone, and together void the guarantee."""


class Unsupported(InvalidInput):
    """A question that no sound method here can answer."""


class BudgetRefused(DiscreetError):
    """The release would spend more than was allowed; nothing was touched."""

    exit_code = 3


class LedgerDamaged(DiscreetError):
    """The ledger's bytes are not the ones that were written, so its total can't be trusted."""


class LedgerUnavailable(DiscreetError):
    """The ledger could not be read, locked or written; what it holds is unchanged."""


class EnginesDisagree(DiscreetError):
    """Two accountants give values for one event that can't both be right."""
