"""The lines of a card: what a guarantee assumes and doesn't cover, and who vouches for each sentence."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, get_args

from discreet.privacy import events
from discreet.privacy.events import has_sampling, has_selection, noisy_steps, step_noise
from discreet.privacy.release import Person, Release, Unit
from discreet.privacy.wording import unit_name
from discreet.words import fill

Source: TypeAlias = Literal["owner", "author", "machine", "server", "clients", "project", "program", "method"]
Group: TypeAlias = Literal["declared", "program", "method"]
Kind: TypeAlias = Literal["assumes", "not_covered"]


class Line(str):
    """A sentence of a card, and who vouches for it.

    The `program` did it or checked it; the `method` can't do without it. Any other source is somebody who declares it:
    the `author` of a user's own code, who controls the one `machine` of a simulation, who runs the `server` or the
    `clients`, the `owner` of the data, or who leads the `project`.
    """

    source: Source

    def __new__(cls, sentence: str, source: Source = "project") -> "Line":
        line = super().__new__(cls, sentence)
        line.source = source
        return line

    @property
    def group(self) -> Group:
        """The group in which a card prints the line."""
        return self.source if self.source in ("program", "method") else "declared"

    def describe(self) -> str:
        """Return an assumption as a card prints it: one that somebody declares names them."""
        if self.group != "declared":
            return str(self)
        return fill("line.declared", who=fill(f"who.{self.source}"), sentence=self)


def as_line(sentence: str, source: Source = "project") -> Line:
    """Return a line: `source` vouches for it unless it names somebody itself."""
    return sentence if isinstance(sentence, Line) else Line(sentence, source)


def distinct_lines(lines: Iterable[str]) -> list[Line]:
    """Return lines in their order, each sentence once."""
    found: dict[str, Line] = {}
    for line in lines:
        found.setdefault(str(line), as_line(line))
    return list(found.values())


def group_lines(kind: Kind, sentences: Sequence[str], sources: Sequence[Source]) -> list[tuple[str, list[str]]]:
    """Group the lines of a card under their titles, those that somebody must check first.

    A card of an earlier version names no sources: its sentences are one group.
    """
    if not sources:
        return [(fill(f"label.{kind}"), list(sentences))] if sentences else []
    lines = [Line(sentence, source) for sentence, source in zip(sentences, sources, strict=True)]
    if kind == "assumes":
        lines.sort(key=lambda line: get_args(Source).index(line.source))
    groups = {
        name: [line.describe() if kind == "assumes" else str(line) for line in lines if line.group == name]
        for name in get_args(Group)
    }
    return [(fill(f"group.{kind}.{name}"), found) for name, found in groups.items() if found]


def main_checks(sentences: Sequence[str], sources: Sequence[Source]) -> list[tuple[Line, ...]]:
    """Return the assumptions that somebody must check before all others: on the data, on the noise, and on the rest.

    Each has one line for everyone who must check it.

    On the data it is what the owner must check first, and that ranges are public. On the noise it is what the author of
    the noise declares, or all that who controls the one machine must know; what the server or the clients must do
    follows, since among real clients the guarantee rests on it: a secure sum, or else secret noise. Empty where a card
    has no such line: a card of an earlier version names no sources.
    """
    lines = [Line(sentence, source) for sentence, source in zip(sentences, sources, strict=False)]

    def lines_of(*wanted: Source) -> list[Line]:
        return next((found for source in wanted if (found := [line for line in lines if line.source == source])), [])

    owner, machine = lines_of("owner"), lines_of("machine")
    ranges = [line for line in owner[1:] if line == fill("data.table.public_ranges")]
    noise = [*(lines_of("author")[:1] or machine), *lines_of("server", "clients")[:1]]
    return [_join_lines([*owner[:1], *ranges]), _join_lines(noise), _join_lines(lines_of("project")[:1])]


def _join_lines(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Join the lines of each source to one, in the order of the sources."""
    sources = dict.fromkeys(line.source for line in lines)
    return tuple(Line(" ".join(line for line in lines if line.source == source), source) for source in sources)


def release_assumptions(release: Release, made_by: Source = "project") -> Iterator[Line]:
    """Yield what must be true of a run that makes this release, as far as the release itself shows it.

    Args:
        release: What was released.
        made_by: Who bounds the sums: the `program` in a run, the `author` in a run with parts of the user's own. Both
            add who holds which data, who draws the noise, and which numbers are public. The `project` only states the
            release, so that the lines name all of these.
    """
    name, in_run = unit_name(release.unit), made_by != "project"
    all_steps = list(noisy_steps(release.event))
    if not all(isinstance(step, events.RandomisedResponse | events.ZeroConcentrated) for step in all_steps):
        yield Line(fill(f"assumes.sensitivity.{name}"), made_by)
    yield from (Line(fill(f"assumes.{key}")) for key in dict.fromkeys(_special_assumptions(all_steps)))
    if release.unit == "example" and not in_run:
        yield Line(fill("assumes.one_client"), "owner")
    if isinstance(release.unit, Person) and not in_run:
        yield Line(_person_rows(release.unit), "owner")
    if not in_run:
        yield Line(fill("assumes.fresh_noise_but_share" if release.view == "client" else "assumes.fresh_noise"))
    if has_sampling(release.event):
        drawn_by: Source = "server" if release.unit == "client" else "clients"
        yield Line(fill("assumes.secret_sampling"), drawn_by if in_run else "project")
    if has_selection(release.event):
        yield Line(fill("assumes.secret_trials"))
    if release.relation == "add_or_remove":
        yield Line(fill("assumes.public_divisors"), made_by)
    elif release.relation == "zero_out" and release.unit != "client":
        yield Line(fill("assumes.divisors_by_size" if in_run else "assumes.public_sizes"), made_by)
    elif name == "person" or not in_run:
        yield Line(fill(f"assumes.public_number.{name}"))
    noises = map(step_noise, all_steps)
    if any(isinstance(noise, events.GaussianNoise | events.LaplaceNoise) for noise in noises):
        yield Line(fill("assumes.floating_point"), "method")


def _special_assumptions(all_steps: Iterable[events.Step]) -> Iterator[str]:
    """Yield the keys of what some kinds of steps assume, and others don't."""
    for step in all_steps:
        match step:
            case events.RandomisedResponse():
                yield "random_answers"
            case events.TruncatedPoissonSampled():
                yield "random_subset"
            case events.RandomAllocation():
                yield "random_sum"
            case _:
                pass
        if isinstance(step_noise(step), events.ZeroConcentrated):
            yield "stated_zcdp"


def _person_rows(person: Person) -> str:
    if person.clients_at_most == 1:
        return fill("assumes.person_rows", most=person.at_most)
    return fill("assumes.person_rows_in_clients", most=person.at_most, clients=person.clients_at_most)


def one_unit_line(unit: Unit, most: int = 1) -> Line:
    """Return that the unit is the right one: the first thing that the owner of the data must check.

    Args:
        unit: What is protected.
        most: The most clients that hold the same example.
    """
    if isinstance(unit, Person) and unit.clients_at_most > 1:
        column, clients = repr(unit.column), unit.clients_at_most
        return Line(fill("assumes.one_unit.person_in_clients", column=column, clients=clients), "owner")
    if isinstance(unit, Person):
        return Line(fill("assumes.one_unit.person", column=repr(unit.column)), "owner")
    if unit == "example" and most > 1:
        return Line(fill("assumes.one_unit.shared_example", most=most), "owner")
    return Line(fill("assumes.one_unit.example" if unit == "example" else "assumes.one_unit.client"), "owner")


def release_exclusions(release: Release, made_by: Source = "project") -> Iterator[Line]:
    """Yield what a reader might expect the guarantee to cover, but it doesn't. A run names its own numbers itself."""
    name = unit_name(release.unit)
    yield Line(fill(f"not_covered.view.{release.view}"), "method")
    yield Line(fill(f"not_covered.several.{name}"), "method")
    if release.relation == "zero_out" and release.unit != "client":
        yield Line(fill("not_covered.example_count"), "method")
    yield Line(fill(f"not_covered.general.{name}"), "method")
    yield Line(fill("not_covered.tuning_beyond" if has_selection(release.event) else "not_covered.tuning"))
    yield Line(fill("not_covered.preprocessing"))
    if made_by == "project":
        yield Line(fill("not_covered.in_clear"))
