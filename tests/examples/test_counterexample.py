"""The counterexample to Heikkilä's Theorem 4.6, on 10,000 trials with a target example and as many without."""

import math
from collections.abc import Iterator

import pytest
import torch
from scipy import special

from discreet.params import Params
from examples import counterexample
from examples.counterexample import NOISE, SHARE, STEPS, Found, allowed, looking, reading

FALSE_ALARMS, ROUNDS, SEED = 1e-2, 200, 1
UNLIKELY = 5e-7  # probability that a rate is beyond its bound; two bounds in each test give one in a million


@pytest.fixture(scope="module")
def sums() -> Iterator[dict[str, Params]]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {
        "local": counterexample.released("local", FALSE_ALARMS, ROUNDS, SEED),
        "broadcast": counterexample.released("broadcast", FALSE_ALARMS, ROUNDS, SEED),
    }
    torch.set_num_threads(threads)


def upper_rate(count: int, of: int) -> float:
    """Return Clopper and Pearson's upper bound on a rate."""
    return float(special.betaincinv(count + 1, of - count, 1 - UNLIKELY)) if count < of else 1.0


def at_least(count: int, of: int) -> float:
    return float(special.betaincinv(count, of - count + 1, UNLIKELY)) if count else 0.0


def recognises_more_than(noise_multiplier: float, found: Found) -> bool:
    """Whether more was recognised than any attack can under this much noise in every step, except by chance."""
    most_false_alarms = upper_rate(found.false_alarms, found.without)
    return at_least(found.recognised, found.present) > allowed(noise_multiplier, most_false_alarms)


def test_at_its_own_state_a_client_reveals_more_than_the_theorem_allows(sums: dict[str, Params]) -> None:
    """False alarm (the theorem held and this passed by chance): one run in a million, by the two bounds."""
    found = reading(sums["local"])
    assert (found.present, found.without) == (10_000, 10_000)
    assert recognises_more_than(NOISE, found)


def test_and_no_more_than_its_own_noise_allows(sums: dict[str, Params]) -> None:
    """False alarm: one run in a million."""
    assert not recognises_more_than(SHARE, reading(sums["local"]))


def test_the_attack_is_a_threshold_on_one_clients_noise(sums: dict[str, Params]) -> None:
    """μ = 1/σ_LDP: it sees one step of one client. Either rate is 6 deviations off less than once in 1e7 runs."""
    found = reading(sums["local"])
    expected = 0.5 * math.erfc((counterexample.beyond(SHARE, FALSE_ALARMS) - 1) / SHARE / math.sqrt(2))
    for measured, rate in ((found.false_alarm_rate, FALSE_ALARMS), (found.recognition_rate, expected)):
        assert measured == pytest.approx(rate, abs=6 * math.sqrt(rate / 10_000) + 1e-4)  # some u are misread


@pytest.mark.parametrize("attack", ["reading", "looking"])
def test_at_the_broadcast_model_neither_attack_gets_more_than_allowed(sums: dict[str, Params], attack: str) -> None:
    """False alarm: one run in a million."""
    seen = sums["broadcast"]
    found = reading(seen) if attack == "reading" else looking(seen, FALSE_ALARMS)
    assert not recognises_more_than(NOISE, found)


def test_at_the_broadcast_model_the_level_that_is_allowed_is_reached(sums: dict[str, Params]) -> None:
    """So the theorem's count is not only correct there but exact; 6 deviations less than once in 1e7 runs."""
    rate = allowed(NOISE, FALSE_ALARMS)
    found = looking(sums["broadcast"], FALSE_ALARMS)
    assert found.recognition_rate == pytest.approx(rate, abs=6 * math.sqrt(rate / 10_000))


def test_the_levels_are_those_of_the_papers_numbers() -> None:
    """μ = √2/4 = 0.354 as claimed, and √2/1.265 = 1.118 as certified: at 1 in 1,000, 3.1 and 24.3 in 1,000."""
    assert math.sqrt(STEPS) / NOISE == pytest.approx(0.354, abs=5e-4)
    assert 1000 * allowed(NOISE, 1e-3) == pytest.approx(3.1, abs=0.05)
    assert 1000 * allowed(SHARE, 1e-3) == pytest.approx(24.3, abs=0.05)


def test_the_script_prints_what_was_found_beside_what_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    counterexample.main(rounds=2)
    out = capsys.readouterr().out
    assert "by Theorem 4.6, which counts the noise of all     3.10 / 1.00" in out
    assert "by what is certified, the noise of one client    24.29 / 1.00" in out
    assert max(map(len, out.splitlines())) <= 100
