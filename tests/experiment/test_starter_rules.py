"""The settings of a starter follow from the public numbers of a table."""

import math

import pytest

from discreet.experiment.configuration.starter_rules import TableShape, starter_settings
from discreet.privacy.release import Person

FORTY_COLUMNS = TableShape(columns=40, sizes=(3_000, 4_000, 5_000))


def test_the_clip_grows_as_the_norm_of_standardised_inputs():
    clips = [starter_settings(FORTY_COLUMNS._replace(columns=columns), "example").clip_norm for columns in (3, 15, 63)]
    assert clips == [0.8, 1.6, 3.2]  # √(1 + columns) doubles each time


def test_a_mean_over_a_clients_rows_gets_a_smaller_clip():
    by_client, by_row = (starter_settings(FORTY_COLUMNS, unit).clip_norm for unit in ("client", "example"))
    assert by_client == pytest.approx(0.05 * math.sqrt(41), rel=0.05)
    assert by_client < by_row / 5


def test_all_rows_are_in_every_step_until_there_are_many():
    def rate(rows: int) -> float:
        return starter_settings(TableShape(columns=4, sizes=(rows,) * 10), "example").sampling_rate

    assert rate(100) == rate(10_000) == 1.0
    assert rate(40_000) == 0.25


def test_the_rate_falls_with_few_rows_for_each_column():
    def rate(rows: int) -> float:
        return starter_settings(TableShape(columns=29, sizes=(rows,)), "example").server_rate

    assert (rate(10_000), rate(200), rate(20)) == (0.03, 0.02, 0.01)


@pytest.mark.parametrize(("rows", "delta"), [(30, 1e-5), (90_000, 1e-5), (100_000, 1e-6), (5_000_000, 1e-7)])
def test_delta_is_below_one_over_the_number_of_rows(rows: int, delta: float):
    found = starter_settings(TableShape(columns=2, sizes=(rows,)), "example").delta
    assert found == pytest.approx(delta)
    assert found * rows < 1


def test_a_person_has_the_settings_of_rows():
    person = Person(column="patient", at_most=3)
    assert starter_settings(FORTY_COLUMNS, person) == starter_settings(FORTY_COLUMNS, "example")
