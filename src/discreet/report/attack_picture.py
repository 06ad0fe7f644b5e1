"""A picture of the best possible attack: a thousand squares, of which it recognises a few."""

import math
from collections.abc import Iterator, Sequence

from discreet.privacy.guarantee import Attack
from discreet.privacy.wording import per_thousand
from discreet.report.markup import Html, tag
from discreet.words import fill

COLUMNS, ROWS, SIDE, GAP = 50, 20, 8, 2
LEGEND = ("guessed", "attacked", "rest")


def attack_pictures(attacks: Sequence[Attack]) -> Html:
    """Return one field of a thousand squares for each rate of false alarms, and what the colours mean.

    Numbers of squares are rounded up, as the numbers in the words are.
    """
    figures = (_figure(attack, f"attack-{place}") for place, attack in enumerate(attacks))
    entries = (tag("span", tag("i", class_=name), fill(f"brief.picture.{name}")) for name in LEGEND)
    return tag("div", tag("div", *figures, class_="attacks"), tag("p", *entries, class_="legend"))


def _figure(attack: Attack, key: str) -> Html:
    rates = attack.false_positive_rate, attack.true_positive_rate
    alarms, recognised = map(per_thousand, rates)
    numbers = {"alarms": alarms, "recognised": recognised}
    drawing = tag(
        "svg",
        tag("title", fill("brief.picture.words", **numbers), id=f"{key}-words"),
        *_squares(*(math.ceil(round(1000 * rate, 9)) for rate in rates)),
        viewBox=f"0 0 {COLUMNS * SIDE - GAP} {ROWS * SIDE - GAP}",
        role="img",
        aria_labelledby=f"{key}-words",
    )
    caption = fill("brief.picture.caption" if alarms == "1" else "brief.picture.caption_several", **numbers)
    return tag("figure", drawing, tag("figcaption", caption))


def _squares(guessed: int, attacked: int) -> Iterator[Html]:
    """Yield three paths: what guessing recognises, what the attack recognises beyond that, and the rest."""
    edges = (0, min(guessed, 1000), min(max(guessed, attacked), 1000), 1000)
    for name, start, end in zip(LEGEND, edges[:-1], edges[1:], strict=True):
        if start < end:
            yield tag("path", class_=name, d="".join(map(_square, range(start, end))))


def _square(place: int) -> str:
    row, column = divmod(place, COLUMNS)
    side = SIDE - GAP
    return f"M{column * SIDE} {row * SIDE}h{side}v{side}h-{side}z"
