"""Cases of DP-SGD: local steps of several clients, beside Opacus in each of its modes and a plain loop."""

from collections.abc import Callable

from speed import dp_sgd
from speed.case import Case, Setting, Sides
from speed.dp_sgd import PrivateWork
from speed.networks import MakeNetwork, image_federation, linear, papernot_cnn
from speed.precision import ON_GPU

PEERS = "Opacus in each of its modes, and per-example gradients by torch.func; both one client after the other."


def _sides(make: MakeNetwork, shape: tuple[int, ...], rate: float) -> Callable[[Setting], Sides]:
    def build(setting: Setting) -> Sides:
        size = setting.size
        data = image_federation((size["examples"],) * size["clients"], shape, 10, setting.device, strength=1.0)
        return dp_sgd.sides(make, data, PrivateWork(size["batch"], size["steps"], rate), setting)

    return build


CASES = (
    Case(
        name="dp_sgd_cnn",
        title="DP-SGD, CNN of Papernot et al.",
        work="{steps} step of each of {clients} clients, {batch} examples expected in a batch. 26,010 parameters.",
        sizes={
            "cpu": {"clients": 10, "batch": 256, "examples": 3000, "steps": 1},
            "cuda": {"clients": 10, "batch": 256, "examples": 3000, "steps": 1},
            "tiny": {"clients": 3, "batch": 40, "examples": 40, "steps": 1},
        },
        sides=_sides(papernot_cnn, (1, 28, 28), 0.5),
        precisions=ON_GPU,
        checked=1,
        goals={"cpu": 1.0, "cuda": 8.0},
        tolerance=0.3,  # one step on drawn examples; a side that does half the work is still refused
        against="opacus",
        peers=PEERS,
    ),
    Case(
        name="dp_sgd_linear",
        title="DP-SGD, linear model",
        work="{steps} steps of each of {clients} clients, {batch} examples expected in a batch. 650 parameters.",
        sizes={
            "cpu": {"clients": 50, "batch": 10, "examples": 40, "steps": 4},
            "cuda": {"clients": 50, "batch": 10, "examples": 40, "steps": 4},
            "tiny": {"clients": 5, "batch": 40, "examples": 40, "steps": 4},
        },
        sides=_sides(linear(64, 10), (64,), 0.5),
        precisions=ON_GPU,
        checked=1,
        goals={"cpu": 10.0, "cuda": 8.0},
        against="opacus",
        peers=PEERS,
    ),
)
