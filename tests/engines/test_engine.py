"""What an engine reports in addition to the sum: its contributors, and how much of each update the clip left."""

from dataclasses import replace

import pytest
import torch

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import Gaussian, NoPrivacy
from discreet.algorithms.recipes.dp_fedavg import dp_fedavg
from discreet.algorithms.sparsifiers import RandomK
from discreet.algorithms.uploads import Uploads
from discreet.engines.engine import CohortSum, Simulation
from discreet.engines.reference import ReferenceEngine
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import RunKey
from discreet.secure_sums.lattice.lattice_encoding import Encoding
from tests.federations import cross_entropy, federation, linear

MODEL = {"w": torch.zeros(1)}


def test_blocks_are_summed_and_their_clients_listed() -> None:
    blocks = [([2, 0], Uploads({"w": torch.tensor([[1.0], [2.0]])}, torch.tensor([1.0, 2.0])))]
    blocks.append(([1], Uploads({"w": torch.tensor([[4.0]])}, torch.tensor([4.0]))))
    found = CohortSum.from_blocks(blocks, Broadcast(0, MODEL, {}), Gaussian(clip_norm=2.0))
    assert float(found.total["w"]) == 7
    assert found.contributors == (2, 0, 1)
    assert found.kept.tolist() == [1, 1, 0.5]  # Shi et al.'s alpha: min(1, C/‖Δ‖)
    assert found.clipped_share == 1 / 3


def test_the_signal_is_the_norm_of_the_sum_before_clients_add_their_noise() -> None:
    """(3, 0) and (0, 4) add up to a norm of 5, with any noise; a flag sent with them is not signal."""
    model = {"w": torch.zeros(2)}
    clean = {"w": torch.tensor([[3.0, 0.0], [0.0, 4.0]]), "flag": torch.tensor([9.0, 9.0])}
    noisy = {"w": clean["w"] + 7, "flag": clean["flag"]}
    sizes = torch.tensor([3.0, 4.0])
    for sent in (Uploads(noisy, sizes, clean), Uploads(clean, sizes)):
        assert float(CohortSum.from_blocks([([0, 1], sent)], Broadcast(0, model, {}), NoPrivacy()).signal) == 5


def test_what_a_mask_leaves_out_does_not_count_as_clipped() -> None:
    """Both updates are above the clip norm of 0.5, and the one coordinate of 18 that a mask keeps is below it."""
    algorithm = dp_fedavg(learning_rate=1.0, batch_size=9, clip_norm=0.5, noise_multiplier=1e-6)
    data, key = federation(9, 9), RunKey.from_seed(1)
    whole, masked = (
        ReferenceEngine(Simulation(each, data, cross_entropy, key)).gather(
            each.broadcast(each.init(linear()), 0), [0, 1]
        )
        for each in (algorithm, replace(algorithm, sparsifier=RandomK(fraction=0.05)))
    )
    assert bool((whole.norms > 0.5).all())
    assert (whole.clipped_share, masked.clipped_share) == (1, 0)
    assert masked.kept.tolist() == [1, 1]


def test_without_a_clip_all_is_kept_and_nobody_is_nothing() -> None:
    sent = Uploads({"w": torch.ones(1, 1)}, torch.tensor([9.0]))
    assert CohortSum.from_blocks([([0], sent)], Broadcast(0, MODEL, {}), NoPrivacy()).kept.tolist() == [1]
    nobody = CohortSum.from_blocks([], Broadcast(0, MODEL, {}), Gaussian(clip_norm=2.0))
    assert (nobody.contributors, float(nobody.total["w"]), nobody.clipped_share, float(nobody.signal)) == ((), 0, 0, 0)


SECRET = RunKey(b"from the operating system, 32 b.")
BROADCASTS = {
    "model": Broadcast(0, {"w": torch.ones(1)}, {}),
    "announced clip": Broadcast(0, MODEL, {"clip": torch.tensor(2.0)}),
    "way onto the lattice": Broadcast(0, MODEL, {"clip": torch.tensor(1.0)}, Encoding(100.0, 32)),
}


@pytest.mark.parametrize("real", [False, True], ids=["simulated", "real"])
@pytest.mark.parametrize("other", BROADCASTS)
def test_without_a_seed_two_broadcasts_in_one_round_share_no_noise(other: str, real: bool) -> None:
    """The difference of two updates with the same noise contains no noise, and a server can ask twice in a round."""
    algorithm = dp_fedavg(learning_rate=1.0, batch_size=2, clip_norm=1.0, sampling_rate=0.5, noise_multiplier=1.0)
    simulation = Simulation(algorithm, federation(3, 3), cross_entropy, SECRET, real=real)
    first = Broadcast(0, MODEL, {"clip": torch.tensor(1.0)})

    def draw_share(broadcast: Broadcast, client: int) -> torch.Tensor:
        return simulation.rows(broadcast, [client]).for_purpose(Purpose.SHARE).open().normal({"w": torch.zeros(5)})["w"]

    for client in (0, 1, -1):  # -1 is the server
        assert torch.equal(draw_share(first, client), draw_share(Broadcast(0, MODEL, dict(first.announcement)), client))
        assert bool((draw_share(first, client) != draw_share(BROADCASTS[other], client)).all())
