"""An attack on a run as the contents of a section of the owner's page: in words, as a picture and as numbers."""

from collections.abc import Mapping
from typing import Any

from discreet.report.attack_charts import RATE_HEADINGS, label_panel, membership_panel, rate_rows
from discreet.report.chart_figures import render_chart
from discreet.report.markup import Child, Html, details, table, tag
from discreet.report.reconstructions import reconstruction_table

METHODS = {
    "analytic": "the ratio of the gradients of weight and bias, which is exact without noise",
    "optimisation": "a search for inputs whose gradient has the same direction",
}


def attack_contents(data: Mapping[str, Any]) -> list[Child]:
    """Return an attack as the contents of a section: its sentences, its picture and its numbers."""
    words: list[Child] = [tag("p", " ".join(data["sentences"]).replace(" %", "\u202f%"))]
    if data["attack"] == "inversion":
        origin = f"The originals are {data['origin']}. They were rebuilt by {METHODS[data['method']]}."
        return [*words, tag("p", origin, class_="note"), reconstruction_table(data)]
    if data["attack"] == "labels":
        origin = f"The labels are those of {data['origin']}."
        return [*words, tag("p", origin, class_="note"), _charts(render_chart(label_panel(data), "attack-labels"))]
    chart = render_chart(membership_panel(data), "attack-membership", source="attack_membership.json")
    rates = table("What each attack recognises", RATE_HEADINGS, rate_rows(data), class_="numbers")
    return [*words, _charts(chart), details("Rates and intervals", rates)]


def _charts(chart: Html) -> Html:
    return tag("div", chart, class_="charts")
