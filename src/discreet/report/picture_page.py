"""A picture as one HTML page that loads nothing: each panel as a chart with its numbers and in words."""

from discreet.report import theme
from discreet.report.chart_figures import render_chart
from discreet.report.curves import Picture
from discreet.report.markup import join, tag
from discreet.report.run_page import html_page


def render_page(picture: Picture) -> str:
    """Return the whole page as HTML."""
    styles = theme.curve_styles(*picture.panels)
    panels = [
        render_chart(panel, f"panel-{index}", styles=styles, source="the command's --json")
        for index, panel in enumerate(picture.panels)
    ]
    notes = [tag("p", note, class_="note") for note in picture.notes]
    body = join(
        [
            tag("header", tag("p", "Trade-off", class_="eyebrow"), tag("h1", picture.title), *notes),
            tag("main", tag("section", tag("div", *panels, class_="charts"), class_="part")),
            tag("footer", tag("p", "Written by discreet, before any training.")),
        ]
    )
    return html_page(picture.title, body)
