"""What is revealed about a group, such as the rows of one person, from what is revealed about one member."""

from dataclasses import replace

from discreet.errors import InvalidInput, Unsupported
from discreet.privacy import events
from discreet.privacy.events import Event, Step, change_steps, has_selection, repeat_event, scale_sensitivity
from discreet.privacy.question_checks import check_count, check_event
from discreet.privacy.release import Person
from discreet.validation_errors import describe_value

SAMPLINGS = {
    "sampled_without_replacement": "sampling without replacement",
    "truncated_poisson_sampled": "truncated Poisson sampling",
    "random_allocation": "random allocation",
}
LARGEST_GROUP = 1000  # of which it is counted how many were drawn; larger ones count as drawn whole


def person_event(event: Event, person: Person, *, separate: bool) -> Event:
    """Return the event for all rows of a person, from that for one row.

    Guarantee: it dominates the true pair under add-or-remove and zero-out. In separate releases of the clients, the
    worst is the most rows in each of the most clients; in one sum, all of these rows are one group.
    """
    if not isinstance(person, Person):
        raise InvalidInput(f"person must be a Person, and got {describe_value(person)}.")
    if person.clients_at_most > 1:
        _refuse_selection(event)
    if separate:
        return repeat_event(group_event(event, person.at_most), person.clients_at_most)
    return group_event(event, person.rows)


def clients_event(event: Event, clients: int, *, separate: bool) -> Event:
    """Return the event for replacing the updates of several clients at once, from that for one client.

    Guarantee: it dominates the true pair under replace. Clients in one sum move it together; if they are sampled, any
    of them that is drawn counts as all of them.
    """
    check_event(event)
    check_count("clients", clients)
    if clients > 1:
        _refuse_selection(event)
    return repeat_event(event, clients) if separate else whole_group_event(event, clients)


def _refuse_selection(event: Event) -> None:
    """Refuse the best of several trials for units in several clients: those compose inside each trial, not around it.

    Raises:
        Unsupported: The event is such a selection.
    """
    if has_selection(event):
        raise Unsupported(
            "The best of several trials is not counted for one who is in several clients.",
            fix="Promise for that unit itself, so that every trial is counted for it; or count every trial.",
        )


def group_event(event: Event, size: int) -> Event:
    """Return the event for a group: a unit that holds up to `size` of the units it was priced for.

    Guarantee: it dominates the true pair under add-or-remove and zero-out, which leave the same sums. A
    Poisson sample draws a binomial number of the members. A very large group counts as drawn whole.
    """
    check_event(event)
    check_count("size", size)
    return change_steps(event, lambda step: _group_step(step, size))


def whole_group_event(event: Event, size: int) -> Event:
    """Return the event for a group that counts as drawn whole as soon as one member is in the sample.

    Guarantee: it dominates the true pair under every relation. The group is in a Poisson sample with probability
    1 − (1−q)^size, and hockey-stick divergences are convex in the number of members drawn, so all of them is the worst.
    """
    check_event(event)
    check_count("size", size)
    return change_steps(event, lambda step: _whole_group_step(step, size))


def _group_step(step: Step, size: int) -> Step:
    match step:
        case events.PoissonSampledGroup():
            return replace(step, group_size=step.group_size * size)
        case events.PoissonSampled(sampling_rate=rate, event=noise) if size <= LARGEST_GROUP:
            return events.PoissonSampledGroup(sampling_rate=rate, group_size=size, event=noise)
        case _:
            return _whole_group_step(step, size)


def _whole_group_step(step: Step, size: int) -> Step:
    if size == 1:
        return step
    match step:
        case events.PoissonSampledGroup():
            whole = replace(step, group_size=step.group_size * size)
            scaled = scale_sensitivity(step.event, whole.group_size)
            return events.PoissonSampled(sampling_rate=whole.any_member_rate, event=scaled)
        case events.PoissonSampled(sampling_rate=rate, event=noise):
            return _whole_group_step(events.PoissonSampledGroup(sampling_rate=rate, group_size=1, event=noise), size)
        case events.SampledWithoutReplacement() | events.TruncatedPoissonSampled() | events.RandomAllocation():
            raise Unsupported(
                f"Groups under {SAMPLINGS[step.kind]} have no accountant here.",
                fix="Sample by Poisson, or without sampling.",
            )
        case _:
            return scale_sensitivity(step, size)
