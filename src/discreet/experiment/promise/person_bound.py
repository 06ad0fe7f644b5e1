"""A promise for one person: which data and budgets it fits, and what the card says about rows left out."""

from collections.abc import Iterator, Sequence

from discreet.errors import InvalidInput
from discreet.experiment.promise.promise import Privacy
from discreet.privacy.ledger import Budget
from discreet.privacy.release import Person
from discreet.privacy.wording import unit_name
from discreet.words import fill


def check_data(kept: Person | None, privacy: Privacy | None, *, private: bool) -> None:
    """Refuse data that does not bound the rows of the promised person, or that bounds those of another, `kept`.

    Where rows are left out, one example or client less may bring other rows in, so nothing holds for those units.
    """
    person = None if privacy is None else privacy.person
    if person is not None and not _bounds(kept, person):
        raise InvalidInput(
            f"The promise is for {_describe(person)}, and the data is a task whose rows are not bounded by column "
            f"{person.column!r} in this way.",
            fix="Pass the same person where a table is read, clients_from_csv(..., person=...), or promise for "
            'unit = "example" or "client".',
        )
    if person is None and kept is not None and private:
        raise InvalidInput(
            f"The task leaves out rows of persons who have too many (column {kept.column!r}), which protects "
            f"one person, and the promise is for another unit.",
            fix="Promise for this person, or read the table without one.",
        )


def check_budgets(budgets: Sequence[Budget], privacy: Privacy | None, where: str) -> None:
    """Refuse a budget for a person whose rows are not bounded, and other budgets if rows are left out."""
    person = None if privacy is None else privacy.person
    for budget in budgets:
        if isinstance(budget.unit, Person) and not _bounds(person, budget.unit):
            unit = budget.unit
            raise InvalidInput(
                f"{where} has a budget for {_describe(unit)}, and this experiment does not bound the rows of that "
                "person.",
                fix=f"Promise for it: unit = {unit.as_toml()}; or count in another ledger.",
            )
        if person is not None and not isinstance(budget.unit, Person):
            raise InvalidInput(
                f"{where} has a budget for one {unit_name(budget.unit)}, and this experiment, which promises for "
                f"{_describe(person)}, leaves rows out: one {unit_name(budget.unit)} less may bring another in.",
                fix=f"Count in a ledger for the same person: --unit {person.as_option()}.",
            )


def assumption(person: Person, *, deployed: bool) -> str:
    """Return the rule by which rows are left out. Real clients see only their own tables."""
    column, most, clients = repr(person.column), f"{person.at_most:,}", f"{person.clients_at_most:,}"
    if person.clients_at_most > 1:
        named = {"column": column, "most": most, "clients": clients}
        return fill("assumes.rows_at_clients" if deployed else "assumes.rows_of_person_in_clients", **named)
    if person.at_most == 1:
        return fill("assumes.one_row_at_client" if deployed else "assumes.one_row_of_person", column=column)
    return fill("assumes.rows_at_client" if deployed else "assumes.rows_of_person", column=column, most=most)


def uncovered_sentence(person: Person) -> str:
    """Return what the card lists as not covered by the guarantee."""
    return fill("not_covered.rows_left_out", column=repr(person.column))


def owner_notices(person: Person | None, rows_left_out: int) -> Iterator[str]:
    """Yield what the data's owner should know before training, and nobody else."""
    if person is not None:
        rows = f"{rows_left_out:,} row{' is' if rows_left_out == 1 else 's are'} left out"
        yield (
            f"{rows}: of each person, by column {person.column!r}, at most {_rows(person)} of one client "
            f"{'is' if person.at_most == 1 else 'are'} used. This number is about private data: for the "
            "data owner's eyes only."
        )


def _bounds(kept: Person | None, wanted: Person) -> bool:
    """Whether the bound that the data keeps is enough for the bound that is wanted."""
    return (
        kept is not None
        and kept.column == wanted.column
        and kept.at_most <= wanted.at_most
        and kept.clients_at_most <= wanted.clients_at_most
    )


def _describe(person: Person) -> str:
    clients = f" in each of at most {person.clients_at_most:,} clients" if person.clients_at_most > 1 else ""
    return f"one person (column {person.column!r}, at most {_rows(person)}{clients})"


def _rows(person: Person) -> str:
    return f"{person.at_most:,} row{'' if person.at_most == 1 else 's'}"
