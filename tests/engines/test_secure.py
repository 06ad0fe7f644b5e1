"""Sums by the real protocol tolerate as many colluding clients and drop-outs as the noise was sized for."""

from dataclasses import replace

import pytest

from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.algorithms.sampling import FixedSize
from discreet.engines import secure_terms
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.secure import SecureEngine
from discreet.errors import UnsoundCombination
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_messages import StageName
from tests.federations import cross_entropy, federation, linear

HELD = federation(*[4] * 10)
ALGORITHM = ddp_fedavg(learning_rate=0.5, clip_norm=1.0, sampling_rate=0.5, noise_multiplier=3.0)


def engine(colluding: int = 0, dropouts: int = 0) -> SecureEngine:
    mechanism = replace(ALGORITHM.mechanism, colluding=colluding, dropouts=dropouts)  # type: ignore[call-arg, arg-type]
    fitted = replace(ALGORITHM, mechanism=mechanism).for_population(HELD.population, 18)
    return SecureEngine(EmbeddedEngine(Simulation(fitted, HELD, cross_entropy, RunKey.from_seed(1))))


@pytest.mark.parametrize(
    ("colluding", "dropouts", "threshold", "minimum"),
    [(0, 0, 7, 10), (7, 0, 8, 10), (9, 0, 10, 10), (0, 3, 7, 7), (0, 4, 6, 6), (4, 4, 6, 6)],
)
def test_colluders_are_fewer_than_the_threshold_and_whoever_stays_reaches_it(
    colluding: int, dropouts: int, threshold: int, minimum: int
):
    terms = engine(colluding, dropouts).session_terms(10, 18, 32)
    assert (terms.threshold, terms.minimum) == (threshold, minimum)
    assert colluding < terms.threshold <= 10 - dropouts


def test_as_many_as_were_planned_for_may_leave_at_any_stage():
    secure = engine(dropouts=4)
    algorithm = secure.embedded.simulation.algorithm
    broadcast = algorithm.broadcast(algorithm.init(linear()), 0)
    stages: tuple[StageName, ...] = ("keys", "shares", "masked", "revealed")
    found = _DropoutEngine(secure.embedded, gone=dict(enumerate(stages))).gather(broadcast, list(range(10)))
    assert set(found.contributors) == {3, 4, 5, 6, 7, 8, 9}
    with pytest.raises(TooFewClients, match="5 shares"):
        _DropoutEngine(secure.embedded, gone=dict.fromkeys(range(5), "revealed")).gather(broadcast, list(range(10)))


class _DropoutEngine(SecureEngine):
    def __init__(self, embedded: EmbeddedEngine, gone: dict[int, StageName]) -> None:
        super().__init__(embedded)
        object.__setattr__(self, "gone", gone)

    def draw_dropouts(self, round: int, cohort: list[int]) -> dict[int, StageName]:
        return self.gone  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(("colluding", "dropouts"), [(0, 5), (0, 7), (2, 5)])
def test_a_plan_in_which_half_may_leave_is_refused(colluding: int, dropouts: int):
    algorithm = engine(colluding, dropouts).embedded.simulation.algorithm
    with pytest.raises(UnsoundCombination, match="Its threshold must be at least 6"):
        secure_terms.plan_degree(algorithm, HELD.population, signed=False)


def test_a_server_that_may_lie_needs_more_to_stay_than_one_that_is_curious():
    """Seven of ten collude and two leave: eight shares are more than collude; against two lists it takes nine."""
    algorithm = engine(7, 2).embedded.simulation.algorithm
    secure_terms.plan_degree(algorithm, HELD.population, signed=False)
    with pytest.raises(UnsoundCombination, match=r"at least 9, .* and at most the 8"):
        secure_terms.plan_degree(algorithm, HELD.population, signed=True)


def test_in_a_large_cohort_the_graph_is_drawn_for_the_plan():
    population = Population(examples=(4,) * 2000)
    drawn = replace(ALGORITHM, sampling=FixedSize(cohort=1000))
    mechanism = replace(drawn.mechanism, colluding=300, dropouts=250)  # type: ignore[call-arg, arg-type]
    fitted = replace(drawn, mechanism=mechanism).for_population(population, 18)
    terms = SecureEngine(EmbeddedEngine(Simulation(fitted, HELD, cross_entropy, RunKey.from_seed(1)))).session_terms(
        1000, 18, 32
    )
    assert terms.is_on_graph
    assert terms.assumptions is not None
    assert (terms.assumptions.colluding, terms.assumptions.leaving) == (0.3, 0.25)
    assert terms.minimum == 750


def test_a_cohort_with_fewer_than_the_noise_takes_is_no_round():
    with pytest.raises(TooFewClients, match="6 clients are in this round, and 7 are needed") as lost:
        engine(dropouts=3).session_terms(6, 18, 32)
    assert not lost.value.revealed
