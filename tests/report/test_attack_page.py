"""Attacks are shown to the owner of the data, in words and as pictures, and never on the public page."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from discreet.experiment.run_directory.run_data import read_run
from discreet.report import run_page
from discreet.report.attack_charts import CERTIFIED, GUESSING, label_panel, membership_panel, rate_rows
from discreet.report.attack_page import render_attack_page, save_attack_picture
from discreet.report.reconstructions import encode_png
from tests.report.test_run_page import Reader

RATE = {"false_positive_rate": 0.001, "true_positive_rate": 0.0031, "low": 0.002, "high": 0.004}
LIRA = {"name": "LiRA", "area": 0.52, "rates": [RATE | {"certified": 0.007}], "points": [[0.001, 0.003], [1.0, 1.0]]}
LOSS = LIRA | {"name": "loss threshold"}
ATTACKS: dict[str, dict[str, Any]] = {
    "membership": {
        "attack": "membership",
        "unit": "example",
        "certified_curve": [[0.001, 0.007], [1.0, 1.0]],
        "runs": [
            {"name": "this experiment", "attacks": [LIRA, LOSS]},
            {"name": "without privacy (FedAvg)", "attacks": [LIRA, LOSS]},
        ],
        "sentences": ["LiRA recognises 0.31 % of 4,711 examples."],
    },
    "inversion": {
        "attack": "inversion",
        "origin": "the built-in digits, which are public",
        "method": "analytic",
        "shape": [2, 2, 1],
        "originals": [[0, 64, 128, 255]],
        "views": [{"name": "raw & <clear>", "psnr": [160.0], "reconstructions": [[0, 64, 128, 255]]}],
        "sentences": ["The server recovers the examples 4,711 times."],
    },
    "labels": {
        "attack": "labels",
        "origin": "the clients' own data",
        "counts": [3, 0, 2],
        "views": [{"name": "raw FedAvg", "counts": [3, 0, 2]}],
        "sentences": ["The server counts 4,711 labels right."],
    },
}


@pytest.fixture(params=ATTACKS)
def attack(request: pytest.FixtureRequest) -> dict[str, Any]:
    return ATTACKS[request.param]


def test_an_attack_is_on_the_owners_page_and_never_on_the_public_one(run: Path, attack: dict[str, Any]) -> None:
    (run / f"attack_{attack['attack']}.json").write_text(json.dumps(attack))
    read = read_run(run)
    assert read.attacks == (attack,)
    own, public = (Reader(run_page.render_page(read, public=flag)) for flag in (False, True))
    assert "4,711" in own.text
    assert "4,711" not in public.text
    assert "inference" not in public.text
    assert "reconstruction" not in public.text.lower()
    assert not own.scripts


def test_the_pictures_of_an_attack_are_files_that_repeat_to_the_last_byte(
    tmp_path: Path, attack: dict[str, Any]
) -> None:
    for ending in (".png", ".svg", ".pdf", ".html"):
        path = tmp_path / f"picture{ending}"
        first, again = (save_attack_picture(attack, path).read_bytes() for _ in range(2))
        assert first == again
        assert 1000 < len(first) < 200_000


def test_a_page_of_images_loads_nothing_and_names_each_image() -> None:
    page = Reader(render_attack_page(ATTACKS["inversion"]))
    images = [value for tag, name, value in page.attributes if (tag, name) == ("img", "src")]
    words = [value for tag, name, value in page.attributes if (tag, name) == ("img", "alt")]
    assert all(image.startswith("data:image/png;base64,") for image in images)
    assert words == ["originals, example 1", "raw & <clear>, example 1"]


def test_a_row_of_numbers_is_an_image_of_one_line(tmp_path: Path) -> None:
    table = ATTACKS["inversion"] | {"shape": None}
    assert save_attack_picture(table, tmp_path / "rows.png").stat().st_size > 1000
    assert "strips" in render_attack_page(table)


def test_a_png_holds_the_pixels() -> None:
    png = encode_png([1, 2, 3, 4, 5, 6], height=1, width=2, channels=3)
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (2, 1)
    length = struct.unpack(">I", png[33:37])[0]
    assert png[37:41] == b"IDAT"
    assert zlib.decompress(png[41 : 41 + length]) == bytes([0, 1, 2, 3, 4, 5, 6])


def test_the_certified_curve_is_drawn_first_and_guessing_last() -> None:
    names = [curve.name for curve in membership_panel(ATTACKS["membership"]).curves]
    assert names[0] == CERTIFIED
    assert names[-1] == GUESSING
    assert "LiRA, without privacy (FedAvg)" in names
    assert "loss threshold, without privacy (FedAvg)" not in names  # five curves have five colours


def test_small_rates_keep_their_digits() -> None:
    first, *_ = rate_rows(ATTACKS["membership"])
    assert first == ("LiRA", "0.1 %", "0.31 %", "0.2 % – 0.4 %", "0.7 %", "0.520")


def test_every_class_has_its_true_count_and_what_was_inferred() -> None:
    panel = label_panel(ATTACKS["labels"])
    assert [curve.name for curve in panel.curves] == ["true count", "raw FedAvg"]
    assert [point.y for point in panel.curves[0].points] == [3, 0, 2]
