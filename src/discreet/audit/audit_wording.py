"""An audit in words, for terminals and pages: what was planted, what was seen, and what the bound rests on."""

from collections.abc import Iterator

from discreet.audit.audit_record import AuditRecord
from discreet.words import fill


def audit_lines(record: AuditRecord) -> Iterator[tuple[str, str]]:
    """Yield labels and sentences that say how an audit was made."""
    count = {
        "canaries": f"{record.canaries:,}",
        "present": f"{record.present:,}",
        "runs": f"{record.runs:,}",
        "rounds": f"{record.rounds:,}",
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
    if record.is_far_below:
        yield fill("audit.label.more"), fill("audit.more")
    yield fill("audit.label.note"), fill("audit.note")


def _describe_estimator(record: AuditRecord) -> str:
    if record.assumes:
        return fill("audit.estimator.assumes", estimator=record.estimator, assumes=record.assumes)
    return fill("audit.estimator.alone", estimator=record.estimator)
