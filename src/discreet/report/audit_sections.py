"""What audits measured beside what is certified: a section of a run's page, and a picture of both curves."""

from collections.abc import Iterator, Sequence
from typing import Any

from discreet.audit.audit_record import AuditRecord, CurvePoint, parse_audits, strongest_audits
from discreet.audit.audit_wording import audit_lines
from discreet.experiment.run_directory.run_data import RunData
from discreet.privacy.wording import unit_name
from discreet.report.chart_figures import render_chart
from discreet.report.curves import Curve, Panel, Picture, Point
from discreet.report.markup import Child, Html, definition_list, details, tag
from discreet.words import fill


def shown_audits(run: RunData, *, public: bool) -> list[AuditRecord]:
    """Return the strongest audits that a page may show: in public only those that depend on no client's data."""
    return strongest_audits(record for record in parse_audits(run.audits) if record.is_public or not public)


def audit_contents(records: Sequence[AuditRecord]) -> Iterator[Child]:
    """Yield what each audit measured: its sentence, the picture, and how it was made."""
    for index, record in enumerate(records):
        yield tag("p", record.sentence, class_="alarm" if record.is_alarm else None)
        if record.measured:
            chart = render_chart(audit_panel(record), f"audit-{index}", source="audit.json")
            yield tag("div", chart, class_="charts")
        yield details(fill("audit.how", estimator=record.estimator), _lines(record))


def audit_picture(record: AuditRecord) -> Picture:
    """Return the certified curve and the measured points as a picture of their own."""
    return Picture(fill("audit.title"), (audit_panel(record),), (record.sentence, fill("audit.note")))


def audit_panel(record: AuditRecord) -> Panel:
    """Return the certified ε at each δ, and below it what was measured."""
    title = fill("audit.picture.title", unit=unit_name(record.unit), view=record.view)
    curves = [
        Curve(fill("audit.picture.certified"), _points(record.certified)),
        Curve(fill("audit.picture.measured", estimator=record.estimator), _points(record.measured)),
    ]
    return Panel(title, "δ", fill("audit.picture.axis"), tuple(curves), log_x=True, from_zero=True)


def _points(points: Sequence[CurvePoint]) -> tuple[Point, ...]:
    return tuple(Point(point.delta, point.epsilon) for point in sorted(points, key=lambda point: point.delta))


def _lines(record: AuditRecord) -> Html:
    entries: list[tuple[str, Any]] = list(audit_lines(record))
    return definition_list(entries)
