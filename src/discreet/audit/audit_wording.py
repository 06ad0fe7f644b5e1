"""An audit in words, for terminals and pages: what was planted, what was seen, and what the bound rests on."""

from collections.abc import Iterator

from discreet.audit.audit_record import AuditRecord
from discreet.words import fill

MORE_RUNS = 10  # times as many runs are suggested


def audit_lines(record: AuditRecord) -> Iterator[tuple[str, str]]:
    """Yield labels and sentences that say how an audit was made."""
    count = {
        "canaries": f"{record.canaries:,}",
        "present": f"{record.present:,}",
        "runs": f"{record.runs:,}",
        "rounds": fill(
            "audit.rounds.one" if record.rounds == 1 else "audit.rounds.several", rounds=f"{record.rounds:,}"
        ),
    }
    yield (
        fill("audit.label.canaries"),
        fill("audit.canaries.one" if record.runs == 1 else "audit.canaries.several", **count),
    )
    yield fill("audit.label.data"), fill("audit.data.stand_in" if record.is_public else "audit.data.clients")
    observer = "secure_server" if record.view == "server" and record.sees_sum else record.view
    yield fill("audit.label.observer"), fill(f"audit.observer.{observer}")
    yield fill("audit.label.estimator"), _describe_estimator(record)
    if record.details.get("looks_as_stated") is False:
        yield fill("audit.label.warning"), fill("audit.warning.noise")
    elif record.is_far_below:
        yield fill("audit.label.more"), _describe_more(record)
    yield fill("audit.label.note"), fill("audit.note")


def _describe_estimator(record: AuditRecord) -> str:
    if record.assumes:
        return fill("audit.estimator.assumes", estimator=record.estimator, assumes=record.assumes)
    return fill("audit.estimator.alone", estimator=record.estimator)


def _describe_more(record: AuditRecord) -> str:
    """Say how many runs narrow the interval, unless even the upper end of the interval is far below the card."""
    reach = record.details.get("reach")
    if reach is not None and reach < record.certified_epsilon / 2:
        return fill("audit.more.reached", reach=f"{reach:.2f}")
    return fill("audit.more.runs", runs=f"{MORE_RUNS * record.runs}")
