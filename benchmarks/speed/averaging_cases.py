"""Cases of federated averaging: rounds of ours beside the plain loop and, for its own benchmark, pfl-research."""

from collections.abc import Callable, Mapping

import torch

from discreet.data.federation import Federation
from speed.averaging import LocalWork, ours, sequential_loop
from speed.case import Case, Setting, Sides, Size
from speed.networks import (
    LowRankTransformer,
    MakeNetwork,
    femnist_cnn,
    five_by_five_cnn,
    image_federation,
    linear,
    pfl_cnn,
    resnet18,
    text_federation,
)
from speed.pfl_peer import pfl
from speed.precision import ON_GPU

LOOP = "plain loop"
LENGTH, WORDS = 64, 256  # of a sequence, and of its vocabulary
TINY_INPUTS, TINY_CLASSES, TINY_EXAMPLES = 20, 10, 10


def _even(setting: Setting) -> tuple[int, ...]:
    return (setting.size["examples"],) * setting.size["clients"]


def _images(setting: Setting) -> Federation:
    return image_federation(_even(setting), (3, 32, 32), 10, setting.device)


def _uneven_images(setting: Setting) -> Federation:
    """Between a half and twice the mean number of examples, as writers of FEMNIST differ."""
    generator = torch.Generator().manual_seed(0)
    mean = setting.size["examples"]
    spread = torch.empty(setting.size["clients"]).uniform_(-1, 1, generator=generator).exp2()
    return image_federation(tuple((mean * spread).int().tolist()), (1, 28, 28), 62, setting.device)


def _texts(setting: Setting) -> Federation:
    return text_federation(_even(setting), LENGTH, WORDS, 4, setting.device)


def _rows(setting: Setting) -> Federation:
    return image_federation(_even(setting), (TINY_INPUTS,), TINY_CLASSES, setting.device)


def _transformer() -> LowRankTransformer:
    return LowRankTransformer(words=WORDS, length=LENGTH, width=128, blocks=2, classes=4)


def _sides(
    make: MakeNetwork,
    data: Callable[[Setting], Federation],
    rate: float,
    clip: float = 1.0,
    rho: float | None = None,
    compiled_on: tuple[str, ...] = ("cpu", "cuda"),
) -> Callable[[Setting], Sides]:
    def build(setting: Setting) -> Sides:
        work, held = _work(setting.size, rate, clip, rho), data(setting)
        loop = sequential_loop(make, held, work, setting, setting.size.get("played"))
        return {**ours(make, held, work, setting, compile=setting.device in compiled_on), LOOP: loop}

    return build


def _pfl_sides(setting: Setting) -> Sides:
    work, held = _work(setting.size, 0.1, 1.0), _images(setting)
    peers = {"pfl": pfl(pfl_cnn, held, work, setting), LOOP: sequential_loop(pfl_cnn, held, work, setting)}
    return {**ours(pfl_cnn, held, work, setting), **{name: peer for name, peer in peers.items() if peer is not None}}


def _work(size: Size, rate: float, clip: float, rho: float | None = None) -> LocalWork:
    cohort, batch, steps = (size[name] for name in ("cohort", "batch", "steps"))
    return LocalWork(cohort=cohort, batch=batch, steps=steps, learning_rate=rate, clip=clip, rho=rho)


def _sizes(**numbers: tuple[int, ...]) -> Mapping[str, Size]:
    """Name the numbers of each size; a sixth one is how many clients of the cohort the plain loop plays."""
    names = ("clients", "cohort", "examples", "batch", "steps", "played")
    return {device: dict(zip(names, values, strict=False)) for device, values in numbers.items()}


ROUND = (
    "A round: {cohort} of {clients} clients, {steps} steps in batches of {batch}, clip, Gaussian noise, server step."
)
TINY = ROUND + " A linear model of 210 parameters. The plain loop plays {played} clients, and its time is scaled up."

CASES = (
    Case(
        name="pfl_round",
        title="pfl-research's CIFAR-10 round",
        work=ROUND + " A CNN of 1,626,442 parameters with dropout.",
        sizes=_sizes(cpu=(100, 10, 50, 10, 5), cuda=(1000, 50, 50, 10, 5), tiny=(4, 4, 20, 20, 1)),
        sides=_pfl_sides,
        precisions=ON_GPU,
        checked=6,
        tolerance=0.25,  # every side drops other units out
        goals={"cuda": 60.0},
        against="pfl",
        most_seconds={"cuda": 0.008},
        peers="pfl 0.6 in its own simulation, and a plain loop of PyTorch over the clients.",
    ),
    Case(
        name="dp_fedavg_cnn",
        title="DP-FedAvg, CNN with 5 × 5 kernels",
        work=ROUND + " 878,538 parameters.",
        sizes=_sizes(cpu=(20, 5, 100, 50, 4), cuda=(200, 50, 200, 50, 4), tiny=(4, 4, 10, 20, 2)),
        sides=_sides(five_by_five_cnn, _images, 0.1),
        precisions=ON_GPU,
        goals={"cpu": 1.0, "cuda": 20.0},
    ),
    Case(
        name="dp_fedavg_resnet18",
        title="DP-FedAvg, ResNet-18 with group normalisation",
        work=ROUND + " 11,173,962 parameters.",
        sizes=_sizes(cpu=(2, 2, 10, 10, 2), cuda=(200, 50, 200, 50, 4), tiny=(2, 2, 4, 4, 1)),
        sides=_sides(resnet18, _images, 0.003, clip=0.2, compiled_on=("cuda",)),  # a CPU compiles for minutes
        precisions=ON_GPU,
        goals={"cpu": 1.0, "cuda": 8.0},
        most_seconds={"cuda": 0.28},
    ),
    Case(
        name="dp_fedsam_resnet18",
        title="DP-FedSAM, ResNet-18 with group normalisation",
        work=ROUND + " Two passes a step (SAM, ρ = 0.05). 11,173,962 parameters.",
        sizes=_sizes(cpu=(2, 2, 10, 10, 2), cuda=(200, 50, 200, 50, 4), tiny=(2, 2, 4, 4, 1)),
        sides=_sides(resnet18, _images, 0.003, clip=0.2, rho=0.05, compiled_on=("cuda",)),
        precisions=ON_GPU,
        goals={"cpu": 1.0},
    ),
    Case(
        name="femnist",
        title="DP-FedAvg in the shapes of FEMNIST",
        work=ROUND + " Clients of unequal size, 214,590 parameters.",
        sizes=_sizes(cpu=(50, 10, 40, 20, 4), cuda=(3400, 100, 200, 20, 10), tiny=(4, 4, 10, 20, 2)),
        sides=_sides(femnist_cnn, _uneven_images, 0.1),
        precisions=ON_GPU,
        goals={"cpu": 1.0},
    ),
    Case(
        name="lora_transformer",
        title="DP-FedAvg, a small transformer with LoRA",
        work=ROUND + f" Two blocks of width 128 on sequences of {LENGTH}; rank 8, all else frozen.",
        sizes=_sizes(cpu=(20, 5, 40, 10, 4), cuda=(200, 50, 200, 20, 10), tiny=(4, 4, 10, 20, 2)),
        sides=_sides(_transformer, _texts, 0.1),
        precisions=ON_GPU,
        goals={"cpu": 1.0},
    ),
    *(
        Case(
            name=f"tiny_clients_{clients}",
            title=f"{clients:,} tiny clients",
            work=TINY,
            sizes=_sizes(
                cpu=(clients, clients, TINY_EXAMPLES, TINY_EXAMPLES, 1, 500),
                cuda=(clients, clients, TINY_EXAMPLES, TINY_EXAMPLES, 1, 500),
                tiny=(20, 20, TINY_EXAMPLES, TINY_EXAMPLES, 1, 10),
            ),
            sides=_sides(linear(TINY_INPUTS, TINY_CLASSES), _rows, 1.0, compiled_on=()),
            goals={"cpu": 1.0},
            precisions={"cpu": ("float32",), "cuda": ("float32",)},
        )
        for clients in (10_000, 100_000)
    ),
)
