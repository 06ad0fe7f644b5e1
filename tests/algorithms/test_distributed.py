"""Integer noise through a lattice: what is drawn is what is priced, and the sum is the sum."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from discreet.algorithms import failure_odds
from discreet.algorithms.aggregation import Lattice, Plain
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import DistributedGaussian, Gaussian, IntegerNoise
from discreet.algorithms.population import Population
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.sampling import Everyone, FixedSize, Poisson
from discreet.algorithms.sparsifiers import PublicTopK, RandomK, ServerTopK
from discreet.algorithms.training import BroadcastGradients
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.engines.secure import SecureEngine
from discreet.errors import InvalidInput, UnsoundCombination
from discreet.experiment.promise import calibrate, run_spending
from discreet.experiment.promise.promise import Privacy
from discreet.params import Params, norms
from discreet.part import from_plain, to_plain
from discreet.privacy.events import DistributedDiscreteGaussianNoise, PoissonSampled, SkellamNoise, steps
from discreet.randomness.streams import RunKey
from discreet.secure_sums.secagg.session_errors import TooFewClients
from discreet.secure_sums.secagg.session_terms import Terms
from tests.federations import cross_entropy, federation, linear

HELD = federation(4, 9, 6, 7)
DIMENSION = 18
COMMON = {"learning_rate": 0.5, "clip_norm": 1.0, "sampling_rate": 0.5, "local_steps": 2, "noise_multiplier": 3.0}
CLIENTS = ddp_fedavg_client(learning_rate=0.1, batch_size=4, clip_norm=0.5, noise_multiplier=1.0)
EVERY = {
    "skellam": ddp_fedavg(**COMMON),  # type: ignore[arg-type]
    "discrete gaussian": ddp_fedavg(noise="discrete_gaussian", **COMMON),  # type: ignore[arg-type]
    "rotated": ddp_fedavg(rotated=True, **COMMON),  # type: ignore[arg-type]
    "16 bits": ddp_fedavg(bits=16, **COMMON),  # type: ignore[arg-type]
    "whole clients": CLIENTS,
    "whole clients, rotated": replace(CLIENTS, aggregation=Lattice(rotated=True)),
}


def simulate(algorithm: Algorithm, seed: int = 1) -> Simulation:
    return Simulation(algorithm.for_population(HELD.population, DIMENSION), HELD, cross_entropy, RunKey.from_seed(seed))


@pytest.mark.parametrize("name", EVERY)
def test_engines_agree_to_the_last_integer_and_a_file_holds_it(name: str):
    sim = simulate(EVERY[name])
    broadcast = sim.algorithm.broadcast(sim.algorithm.init(linear()), 0)
    totals = [
        engine.gather(broadcast, [0, 1, 2, 3]).total
        for engine in (ReferenceEngine(sim), EmbeddedEngine(sim, 3), SecureEngine(EmbeddedEngine(sim, 3)))
    ]
    bits = sim.algorithm.aggregation.bits  # type: ignore[union-attr]
    for other in totals[1:]:
        for key, value in totals[0].items():
            assert value.dtype == torch.int64
            assert ((value - other[key]) % 2**bits == 0).all()
    assert from_plain(Algorithm, to_plain(sim.algorithm)) == sim.algorithm


@pytest.mark.parametrize("name", EVERY)
def test_the_noise_in_the_model_is_the_noise_that_is_accounted(name: str):
    """4,000 coordinates of no signal: their variance is within 5.5·√(2/4000) of its mean, except in one run in 1e6."""
    wide = {"weight": torch.zeros(800, 5, dtype=torch.float64)}

    def flat(params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        return params["weight"].sum() * torch.zeros(len(inputs), dtype=torch.float64)

    algorithm = EVERY[name].for_population(HELD.population, 4000)
    sim = Simulation(algorithm, HELD, flat, RunKey.from_seed(2))
    state = algorithm.init(wide)
    broadcast = algorithm.broadcast(state, 0)
    total = EmbeddedEngine(sim).gather(broadcast, [0, 1, 2, 3]).total
    after = algorithm.server_step(state, broadcast, total, 4, HELD.population, sim.rows(broadcast, [-1]))
    clip = float(broadcast.announcement["clip"])
    grid = algorithm.grid(HELD.population)
    assert grid is not None
    noise = algorithm.mechanism.sum_noise(grid)
    priced = noise.variance * (noise.shares if isinstance(noise, DistributedDiscreteGaussianNoise) else 1)  # type: ignore[union-attr]
    deviation = math.sqrt(priced * grid.times) / grid.scale * clip / 4
    rounding = grid.times * 4 / 12 / grid.scale**2 * (clip / 4) ** 2  # a uniform step of each rounded sum, at most
    measured = float(after.params["weight"].var())
    assert measured == pytest.approx(deviation**2, rel=5.5 * math.sqrt(2 / 4000), abs=4 * rounding)


def test_what_the_noise_is_priced_on_is_what_one_example_can_do_after_rounding():
    algorithm = EVERY["skellam"].for_population(HELD.population, DIMENSION)
    releases = {each.view: each for each in algorithm.planned_releases(3, HELD.population)}
    assert set(releases) == {"server", "client"}
    ((step, count),) = steps(releases["server"].event).items()
    assert count == 6  # 2 sums in each of 3 rounds
    assert isinstance(step, PoissonSampled)
    noise = step.event
    assert isinstance(noise, SkellamNoise)
    scale = algorithm.aggregation.scale  # type: ignore[union-attr]
    assert noise.variance == pytest.approx((3.0 * scale) ** 2 / 2)
    assert noise.l2_sensitivity == pytest.approx(scale / math.sqrt(2) + math.sqrt(18), rel=1e-9)
    ((other, _),) = steps(releases["client"].event).items()
    assert other.event.variance == pytest.approx(noise.variance * 3 / 4)  # type: ignore[union-attr]


def test_one_example_more_never_moves_a_rounded_sum_by_more_than_is_priced():
    """The same coins with and without an example, on a coarse lattice where rounding matters."""
    torch.manual_seed(0)
    lattice = Lattice(bits=32, scale=3.0, dimension=DIMENSION)
    for _ in range(200):
        encoding = lattice.encoding(0, linear(), 1)
        assert encoding is not None
        rest, one = torch.randn(1, DIMENSION, dtype=torch.float64), torch.randn(1, DIMENSION, dtype=torch.float64)
        one = one / one.norm()
        coins = torch.rand(1, DIMENSION, dtype=torch.float64)
        without = encoding.encode_sum({"w": rest}, lambda sizes, coins=coins: coins)  # type: ignore[misc]
        with_it = encoding.encode_sum({"w": rest + one}, lambda sizes, coins=coins: coins)  # type: ignore[misc]
        assert float((with_it["w"] - without["w"]).double().norm()) <= 3.0 + math.sqrt(DIMENSION)


def test_whole_clients_keep_within_the_conditional_bound():
    """On a lattice of 5 steps to the clip, where rounding 18 numbers makes a norm of 5 up to √(25 + 4.5 + 7.1)."""
    sim = simulate(replace(CLIENTS, aggregation=Lattice(scale=5.0)), seed=4)
    broadcast = sim.algorithm.broadcast(sim.algorithm.init(linear()), 0)
    rows = sim.step(broadcast, [0, 1, 2, 3]).clean
    assert rows is not None
    bound = sim.algorithm.mechanism.sum_noise(sim.algorithm.grid(HELD.population)).l2_sensitivity  # type: ignore[union-attr]
    assert bound == pytest.approx(math.sqrt(25 + 18 / 4 + 5 + math.sqrt(18) / 2))
    assert float(norms({name: value.double() for name, value in rows.items()}).max()) <= bound


def test_a_sum_that_leaves_the_ring_comes_back_shifted_and_never_cut_off():
    encoding = Lattice(scale=1.0, dimension=1, bits=8).encoding(0, {"w": torch.zeros(1)}, 1)
    assert encoding is not None
    assert encoding.decode({"w": torch.tensor([130])}, {"w": torch.zeros(1)})["w"].item() == -126


def test_the_noise_is_enough_for_the_fewest_honest_survivors_and_less_is_spent_when_more_come():
    population = Population(examples=(50,) * 10)
    algorithm = ddp_fedavg(colluding=2, dropouts=3, **COMMON).for_population(population, 100)  # type: ignore[arg-type]
    assert algorithm.mechanism.shares == 5  # type: ignore[union-attr]

    def variance(joined: int | None, view: str) -> float:
        (release,) = [each for each in algorithm.releases(population, 0, contributors=joined) if each.view == view]
        ((step, _),) = steps(release.event).items()
        return float(step.event.variance)  # type: ignore[union-attr]

    planned = variance(None, "server")
    assert variance(7, "server") == pytest.approx(planned)  # 7 came, of whom 2 collude: 5 shares
    assert variance(10, "server") == pytest.approx(planned * 8 / 5)
    assert variance(7, "client") == pytest.approx(planned)  # the observer is one of those who may collude


def test_drop_outs_are_survived_up_to_the_plan_and_not_beyond():
    algorithm = replace(EVERY["skellam"], mechanism=IntegerNoise(kind="skellam", noise_multiplier=3.0, dropouts=1))
    sim = simulate(algorithm)
    broadcast = sim.algorithm.broadcast(sim.algorithm.init(linear()), 0)
    engine = EmbeddedEngine(sim)

    class DropoutEngine(SecureEngine):
        gone: dict[int, str] = {}  # noqa: RUF012 - set by the test

        def draw_dropouts(self, round: int, cohort: list[int]):  # type: ignore[no-untyped-def]
            return self.gone

    secure = DropoutEngine(engine)
    DropoutEngine.gone = {2: "masked"}
    found = secure.gather(broadcast, [0, 1, 2, 3])
    assert set(found.contributors) == {0, 1, 3}
    expected = engine.gather(broadcast, [0, 1, 3]).total
    assert all(((found.total[name] - expected[name]) % 2**32 == 0).all() for name in expected)
    DropoutEngine.gone = {1: "masked", 2: "masked"}
    with pytest.raises(TooFewClients):
        secure.gather(broadcast, [0, 1, 2, 3])


def test_the_promise_finds_noise_and_scale_together():
    wanted = Privacy(unit="example", against="server", epsilon=2.0, delta=1e-5)
    open_noise = ddp_fedavg(**(COMMON | {"noise_multiplier": None}))  # type: ignore[arg-type]
    kept = calibrate.calibrate_noise(open_noise, wanted, 5, HELD.population, DIMENSION)
    assert kept.aggregation.scale is not None  # type: ignore[union-attr]
    spent = run_spending.spent_epsilon(kept, wanted, 5, HELD.population)
    assert spent is not None
    assert 1.99 < spent <= 2.0
    trusted = ddp_fedavg(noise="gaussian", **(COMMON | {"noise_multiplier": None}))  # type: ignore[arg-type]
    public = Privacy(unit="example", against="public", epsilon=2.0, delta=1e-5)
    gaussian = calibrate.calibrate_noise(trusted, public, 5, HELD.population).mechanism.noise_multiplier  # type: ignore[union-attr]
    # Skellam noise is certified by Rényi divergences, which are looser than the Gaussian's own distribution by some 9 %
    assert 1.0 < kept.mechanism.noise_multiplier / gaussian < 1.15  # type: ignore[union-attr, operator]


def test_whole_clients_are_hidden_by_content_and_not_by_presence():
    """A client that joins adds noise, so its presence shows; a cohort of fixed size is priced at twice the distance."""
    wanted = Privacy(unit="client", against="server", epsilon=8.0, delta=1e-5)
    noises = {}
    for sampling in (Everyone(), FixedSize(cohort=3)):
        algorithm = ddp_fedavg_client(learning_rate=0.1, batch_size=4, clip_norm=0.5, sampling=sampling, bits=32)
        kept = calibrate.calibrate_noise(algorithm, wanted, 5, HELD.population, DIMENSION)
        (release, other) = kept.planned_releases(5, HELD.population)
        assert (release.view, other.view) == ("server", "client")
        assert release.relation == ("zero_out" if sampling == Everyone() else "replace")
        noises[sampling.kind] = kept.mechanism.noise_multiplier  # type: ignore[union-attr]
    assert noises["fixed_size"] == pytest.approx(2 * noises["everyone"], rel=1e-3)  # type: ignore[operator]


def test_unsound_combinations_are_refused():
    trainer = BroadcastGradients(steps=1, sampling_rate=0.5, clip_norm=1.0, learning_rate=1.0)
    integers = IntegerNoise(kind="skellam")
    with pytest.raises(UnsoundCombination, match=r"'skellam' adds integers, and updates are summed as real numbers"):
        Algorithm(trainer=trainer, mechanism=integers, aggregation=Plain())
    for mechanism in (DistributedGaussian(), Gaussian(clip_norm=1.0)):
        with pytest.raises(UnsoundCombination, match="Updates on a lattice need integer noise"):
            Algorithm(trainer=trainer, mechanism=mechanism, aggregation=Lattice())
    with pytest.raises(UnsoundCombination, match="every round has the same number of sums"):
        ddp_fedavg(**(COMMON | {"local_steps": [1, 2]}))  # type: ignore[arg-type]
    with pytest.raises(UnsoundCombination, match=r"Of 4 clients, 2 may collude and 2 drop out; 0 are left"):
        ddp_fedavg(colluding=2, dropouts=2, **COMMON).for_population(HELD.population, DIMENSION)  # type: ignore[arg-type]
    with pytest.raises(UnsoundCombination, match="Some client must join every round"):
        replace(CLIENTS, sampling=Poisson(rate=0.5)).for_population(HELD.population, DIMENSION)
    assert replace(CLIENTS, sampling=FixedSize(cohort=3)).for_population(HELD.population, 18).mechanism.shares == 3  # type: ignore[union-attr]
    few = SecureEngine(EmbeddedEngine(simulate(EVERY["skellam"])))
    broadcast = few.embedded.simulation.algorithm.broadcast(few.embedded.simulation.algorithm.init(linear()), 0)
    with pytest.raises(InvalidInput, match="A secure sum needs at least 3 clients, and 2 are in this round"):
        few.gather(broadcast, [0, 1])


def test_a_model_of_another_size_than_the_lattice_was_laid_out_for_is_refused():
    """Rounding 18 numbers costs √18 steps: a file that says 1 would pay for one step."""
    fitted = EVERY["skellam"].for_population(HELD.population, DIMENSION)
    assert fitted.for_population(HELD.population, DIMENSION) == fitted  # the resolved experiment can be read again
    smaller = replace(EVERY["skellam"], aggregation=Lattice(dimension=1))
    with pytest.raises(InvalidInput, match="laid out for a model of 1 numbers, and this one has 18"):
        smaller.for_population(HELD.population, DIMENSION)
    with pytest.raises(InvalidInput, match="laid out for a model of 1 numbers, and this one has 18"):
        smaller.for_population(HELD.population).broadcast(smaller.init(linear()), 0)


def test_a_scale_of_ones_own_is_refused_where_sums_would_wrap_around_or_no_noise_can_be_drawn():
    def with_scale(scale: float, **lattice: float) -> Algorithm:
        given = Lattice(scale=scale, bits=16, **lattice)  # type: ignore[arg-type]
        return replace(EVERY["16 bits"], aggregation=given).for_population(HELD.population, DIMENSION)

    found = EVERY["16 bits"].for_population(HELD.population, DIMENSION).aggregation.scale  # type: ignore[union-attr]
    assert found is not None
    assert with_scale(found).aggregation.scale == found  # type: ignore[union-attr]
    assert with_scale(found / 10).aggregation.scale == found / 10  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match=r"At a scale of 100000 a sum leaves the ring of 16 bits .* of up to 1, and"):
        with_scale(1e5)
    with pytest.raises(InvalidInput, match="and 1e-9 is allowed"):
        with_scale(found * 1.01)
    assert with_scale(found * 1.01, wraparound=1e-6).aggregation.scale == found * 1.01  # type: ignore[union-attr]
    for scale, word in ((1e-9, "coarse"), (1e13, "fine")):
        with pytest.raises(InvalidInput, match=f"too {word}: with this noise its shares can be drawn between"):
            with_scale(scale, wraparound=0.99)


@pytest.mark.parametrize("name", EVERY)
def test_the_chance_that_a_sum_leaves_its_ring_adds_up_over_rounds(name: str):
    """By default 1e-9 for one sum, and 1e-12 that a sum has more examples than were counted on."""
    algorithm = EVERY[name].for_population(HELD.population, DIMENSION)
    once, often = (algorithm.wraparound_probability(HELD.population, rounds) for rounds in (1, 1000))
    assert once is not None
    assert 1e-12 <= once <= 1e-9 + 1.1e-12
    assert often == pytest.approx(1000 * once)
    assert (
        EVERY[name].wraparound_probability(HELD.population, 1) is None
    )  # nothing is known for a scale that is not chosen yet
    assert CLIENTS.for_population(HELD.population).wraparound_probability(HELD.population, 1) is None


def test_a_ring_has_as_many_bits_as_a_secure_sum_takes():
    """One range for both: what a plan accepts, no protocol refuses after the budget is reserved."""
    for bits in (8, 62):
        assert Terms.choose(clients=3, length=1, bits=Lattice(bits=bits).bits).bits == bits
    for bits in (7, 63):
        with pytest.raises(InvalidInput, match="bits"):
            Lattice(bits=bits)


def test_a_mask_for_all_goes_with_no_rotation():
    for base in (EVERY["rotated"], EVERY["whole clients, rotated"]):
        for mask in (RandomK(fraction=0.5), PublicTopK(fraction=0.5)):
            with pytest.raises(InvalidInput, match=f"rotation spreads every update .* sparsifier '{mask.kind}'"):
                replace(base, sparsifier=mask)
    assert replace(EVERY["rotated"], sparsifier=ServerTopK(fraction=0.5)).sparsifier.kind == "server_top_k"
    sim = simulate(replace(EVERY["skellam"], sparsifier=RandomK(fraction=0.5)))
    rows = sim.step(sim.algorithm.broadcast(sim.algorithm.init(linear()), 0), [0, 1]).clean
    assert rows is not None
    assert int(sum((value[0] == 0).sum() for value in rows.values())) >= 9


def test_what_is_left_to_chance_has_its_numbers():
    """10 rounds of 18 coordinates: 1e-8 for the ring, and 2·18·10·2^-52 = 8e-14 for the draws."""
    algorithm = EVERY["skellam"].for_population(HELD.population, DIMENSION)
    odds = failure_odds.find_failure_odds(algorithm, HELD.population, 10)
    assert odds is not None
    assert odds.ring_bits == 17
    assert odds.wraparound == algorithm.wraparound_probability(HELD.population, 10)
    assert odds.inexact_draws == 2 * 18 * 10 * 2.0**-52
    exact = EVERY["discrete gaussian"].for_population(HELD.population, DIMENSION)
    of_exact = failure_odds.find_failure_odds(exact, HELD.population, 10)
    assert of_exact is not None
    assert of_exact.inexact_draws is None
    real = ddp_fedavg(noise="gaussian", **COMMON).for_population(HELD.population)  # type: ignore[arg-type]
    assert failure_odds.find_failure_odds(real, HELD.population, 10) is None


def test_shares_of_noise_are_added_in_double_precision():
    """Rounded to single precision, an upload would say something of the update that only the sum's noise hides."""
    mechanism = DistributedGaussian(clip_norm=1.0, noise_multiplier=1.0, shares=4)
    params = linear(dtype=torch.float32)
    broadcast = Broadcast(0, params, mechanism.announce(mechanism.init(params), None))
    update = {name: value[None] * 0.01 for name, value in params.items()}
    rows = RunKey.from_seed(0).rows(0, b"", [0], torch.device("cpu"))
    sent, noise = (
        mechanism.add_noise_share(each, broadcast, rows)
        for each in (update, {name: torch.zeros_like(value) for name, value in update.items()})
    )
    for name, value in update.items():
        assert sent[name].dtype == torch.float64
        assert torch.allclose(sent[name] - noise[name], value.double(), rtol=0, atol=1e-15)
