"""A secure sum that honest clients can't have sent loses its round, and the round counts."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg, ddp_fedavg_client
from discreet.algorithms.uploads import Uploads
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.engines.secure import SecureEngine
from discreet.engines.sum_check import ImplausibleSum, check_sum
from discreet.randomness.streams import RunKey
from tests.federations import cross_entropy, federation, linear

HELD = federation(*[4] * 6)
EXAMPLES = ddp_fedavg(learning_rate=0.5, clip_norm=1.0, sampling_rate=0.5, noise_multiplier=3.0)
CLIENTS = ddp_fedavg_client(learning_rate=0.1, batch_size=4, clip_norm=0.5, noise_multiplier=3.0)


def gather(algorithm: Algorithm, share: float) -> None:
    """Run one secure sum in which a client adds this share of half the ring to each coordinate, and check it."""
    fitted = algorithm.for_population(HELD.population, 18)
    engine = SecureEngine(HostileEngine(Simulation(fitted, HELD, cross_entropy, RunKey.from_seed(1)), share=share))
    broadcast = fitted.broadcast(fitted.init(linear()), 0)
    check_sum(fitted, broadcast, engine.gather(broadcast, list(range(6))), HELD.population)


@dataclass(frozen=True)
class HostileEngine(EmbeddedEngine):
    """An engine whose first client adds a share of half the ring to each coordinate of what it sends."""

    share: float = 0.0

    def client_steps(self, broadcast: Broadcast, cohort: list[int]) -> Iterator[tuple[list[int], Uploads]]:
        assert broadcast.encoding is not None
        more = int(self.share * 2 ** (broadcast.encoding.bits - 1))
        for block, sent in super().client_steps(broadcast, cohort):
            first = torch.tensor([client == 0 for client in block])
            rows = {
                name: value + more * first.reshape(-1, *[1] * (value.dim() - 1)) for name, value in sent.rows.items()
            }
            yield block, sent._replace(rows=rows)


@pytest.mark.parametrize("algorithm", [EXAMPLES, CLIENTS], ids=["examples", "clients"])
def test_a_sum_with_a_huge_vector_loses_its_round_and_names_nobody(algorithm: Algorithm) -> None:
    gather(algorithm, 0.0)
    with pytest.raises(ImplausibleSum, match=r"The sum of 6 clients has a norm of .* Nobody can be named") as lost:
        gather(algorithm, 0.6)
    assert lost.value.revealed  # the server has seen the sum
