"""Every page stays below 1.2 MB, also after long runs and large comparisons."""

from pathlib import Path

from discreet.report import comparison_page, picture_page, run_page
from discreet.report.curves import Panel, Picture, curve
from tests.report.conftest import lines, write_rounds
from tests.report.test_comparison_page import COMMAND, result, row

MOST = 1_200_000  # bytes


def test_the_report_of_five_thousand_rounds(run: Path):
    rounds = lines(5_000)
    for place, line in enumerate(rounds):  # curves with no two points alike
        line["evaluation"] = {"accuracy": 0.5 + place / 12_345, "loss": 3.0 - place / 2_345}
        line["signal_to_noise"] = 0.3 + (place * 37 % 101) / 1_000
    write_rounds(run, rounds)
    assert 20_000 < run_page.write(run).stat().st_size < MOST


def test_a_comparison_of_ten_methods_at_thirty_values():
    rows = [
        row(result(0.5 + method / 40 + value / 300), result(0.84), name=f"method_{method}", epochs=str(value))
        for method in range(10)
        for value in range(1, 31)
    ]
    assert len(comparison_page.render_page(rows, COMMAND).encode()) < MOST


def test_a_picture_of_twelve_panels_with_five_long_curves_each():
    xs = [float(x) for x in range(1, 501)]
    curves = tuple(curve(f"method {place}", xs, [x ** (1 + place / 7) for x in xs]) for place in range(5))
    panels = tuple(Panel(f"Panel {number}", "rounds", "noise", curves) for number in range(12))
    assert len(picture_page.render_page(Picture("Long curves", panels, ())).encode()) < MOST
