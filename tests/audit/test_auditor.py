"""Audits of whole experiments: the lower bound is below the card, and above it where noise is missing."""

from dataclasses import replace

import pytest
import torch

from discreet.algorithms.population import Population
from discreet.algorithms.recipes.registry import RECIPES
from discreet.audit.audit_setup import AuditSetup, setup_from_job
from discreet.audit.auditor import AuditOptions, audit_experiment, choose_guarantee
from discreet.engines.engine_table import Embedded, Reference, Secure
from discreet.errors import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.release import Person
from tests.small_experiment import *  # noqa: F403

POPULATION = Population(examples=(60,) * 6)
PARAMS = {"0.weight": torch.zeros(10, 40), "0.bias": torch.zeros(10)}
DIMENSION, ROUNDS, DELTA = 410, 4, 1e-5
SURE = 1 - 1e-6
SEED = 3


def build_setup(recipe, noise=1.0, engine=None, unit=None, **arguments):
    """The catalog's example of a recipe for small clients and this noise, with its cards."""
    entry = RECIPES[recipe]
    algorithm = entry(**{**entry.example, **arguments}).for_population(POPULATION, DIMENSION)
    algorithm = algorithm.with_noise(noise).for_population(POPULATION, DIMENSION)
    releases = algorithm.planned_releases(ROUNDS, POPULATION)
    cards = tuple(Guarantee.certify(release, DELTA) for release in releases)
    if unit is not None:
        cards = tuple(replace(card, unit=unit) for card in cards)
    return AuditSetup(algorithm, POPULATION, PARAMS, ROUNDS, engine or Embedded(), cards, {})


def measure(setup, **options):
    return audit_experiment(setup, AuditOptions(seed=SEED, **options))


def test_the_server_measures_most_of_what_one_example_may_cost_in_pfl():
    record = measure(build_setup("pfl", sampling_rate=0.5, batch_size=None, local_steps=1, epochs=None))
    assert 0.6 * record.certified_epsilon < record.lower_bound < record.certified_epsilon
    assert (record.canaries, record.runs, record.unit, record.view) == (360, 1, "example", "server")
    assert record.is_public
    assert not record.is_alarm


def test_half_the_noise_of_the_card_is_an_alarm():
    setup = build_setup("pfl", sampling_rate=0.5, batch_size=None, local_steps=1, epochs=None)
    trainer = replace(setup.algorithm.trainer, noise_multiplier=0.5)
    faulty = replace(setup, algorithm=replace(setup.algorithm, trainer=trainer))
    assert measure(faulty).is_alarm


def test_half_the_noise_on_a_sum_of_clients_is_an_alarm():
    setup = build_setup("dp_fedavg", sampling_rate=1.0)
    mechanism = replace(setup.algorithm.mechanism, noise_multiplier=0.5)
    assert measure(replace(setup, algorithm=replace(setup.algorithm, mechanism=mechanism)), runs=60).is_alarm


@pytest.mark.parametrize("estimator", ["one-run", "one-run-fdp"])
def test_estimators_by_guesses_measure_less_and_assume_less(estimator):
    setup = build_setup("pfl", noise=0.5, sampling_rate=1.0, batch_size=None, local_steps=1, epochs=None)
    record = measure(setup, estimator=estimator)
    assert 0.1 * record.certified_epsilon < record.lower_bound < record.certified_epsilon
    assert record.estimator == estimator


def test_repeated_runs_count_one_canary_each():
    setup = build_setup("pfl", noise=0.3, sampling_rate=1.0, batch_size=None, local_steps=1, epochs=None)
    record = measure(setup, estimator="repeated", runs=60)
    assert (record.canaries, record.runs) == (60, 60)
    assert 0 < record.lower_bound < record.certified_epsilon


@pytest.mark.parametrize("engine", [Reference(), Secure(drop_out=0.05)])
def test_the_engine_of_the_experiment_plays_the_clients(engine):
    setup = build_setup("ddp_fedavg", engine=engine, sampling_rate=0.5, dropouts=2)
    record = measure(setup, against="server", canaries=200)
    assert 0 < record.lower_bound < record.certified_epsilon


def test_an_attacker_who_sees_less_measures_less_of_the_same_guarantee():
    setup = build_setup("pfl", sampling_rate=0.5, batch_size=None, local_steps=1, epochs=None)
    public = measure(setup, against="public", confidence=SURE)
    assert public.view == "public"
    assert public.lower_bound < measure(setup, confidence=SURE).lower_bound


def test_a_person_is_attacked_by_all_rows_at_once():
    setup = build_setup(
        "pfl", unit=Person(column="patient", at_most=3), sampling_rate=0.5, batch_size=None, local_steps=1, epochs=None
    )
    one = measure(build_setup("pfl", sampling_rate=0.5, batch_size=None, local_steps=1, epochs=None))
    assert measure(setup).lower_bound > one.certified_epsilon  # the card here is that of one row
    assert measure(setup).canaries == 240  # two trainings of 120


def test_a_guarantee_that_is_not_there_is_refused():
    cards = build_setup("dp_fedavg").cards
    with pytest.raises(InvalidInput, match="no guarantee for one client against the server"):
        choose_guarantee(cards, "client", "server")
    with pytest.raises(InvalidInput, match="has none"):
        choose_guarantee((), None, None)


def test_the_certified_curve_is_above_the_measured_one():
    record = measure(build_setup("pfl", sampling_rate=0.5, batch_size=None, local_steps=1, epochs=None))
    certified = {point.delta: point.epsilon for point in record.certified}
    assert len(record.measured) == 5
    assert all(point.epsilon <= certified[point.delta] for point in record.measured)


def test_a_job_is_audited_without_its_data(prepare):
    job = prepare("privacy.epsilon=8")
    setup = setup_from_job(job)
    record = audit_experiment(setup, AuditOptions(seed=1, canaries=100))
    assert record.canaries == 200  # two trainings of 100
    assert 0 < record.lower_bound < record.certified_epsilon <= 8


def test_rounds_are_reported_as_they_are_done(prepare):
    seen = []
    setup = setup_from_job(prepare())
    audit_experiment(setup, AuditOptions(seed=1, runs=2, canaries=10), lambda done, total: seen.append((done, total)))
    assert seen == [(done, 8) for done in range(1, 9)]
