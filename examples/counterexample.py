"""Theorem 4.6 of Heikkilä 2025 does not hold: local steps at a client's own state tell more than it allows.

    python examples/counterexample.py

Ten clients take two steps of DP-SGD, and only the sum of their updates is seen. Is one target example in the data? It
moves its client's first step along v. That client's other examples, the readers, look at the client's own model before
the second step: if v has come far, they all push u up, else down. In the sum that is louder than the noise of all
clients, so whoever sees the sum reads off how far v had come under the noise of *one* client.

Where all gradients are taken at the broadcast model there is nothing to read, and the theorem's level is right.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.data.federation import Federation
from discreet.engines.embedded import EmbeddedEngine
from discreet.engines.engine import Simulation
from discreet.params import Params
from discreet.privacy import gaussian
from discreet.randomness.streams import RunKey

CLIENTS, STEPS, CLIP, NOISE = 10, 2, 1.0, 4.0  # the noise of all clients together, in every step
SHARE = NOISE / math.sqrt(CLIENTS)
TRIALS = 10  # of each client, side by side, each in a v and a u of its own; every other one has a target
LOUD = 4 * NOISE * math.sqrt(STEPS)  # four deviations of the noise in u: hardly ever misread
READERS = math.ceil(LOUD / CLIP * math.sqrt(TRIALS))  # one reader's clip is shared by the trials it looks at
HELD = READERS + TRIALS // 2  # examples of a client


class Found(NamedTuple):
    """How many of so many trials without a target raised an alarm, and of so many with one."""

    false_alarms: int
    without: int
    recognised: int
    present: int

    @property
    def false_alarm_rate(self) -> float:
        return self.false_alarms / self.without

    @property
    def recognition_rate(self) -> float:
        return self.recognised / self.present


def beyond(deviation: float, false_alarms: float) -> float:
    """So far noise of this deviation goes at this rate."""
    return deviation * gaussian.upper_quantile(math.log(false_alarms))


@dataclass(frozen=True)
class Reading:
    """The loss that makes examples do so: v has come far where it is beyond what noise of one client does by chance."""

    far: float

    def __call__(self, params: Params, inputs: Tensor, targets: Tensor) -> Tensor:
        """A target's (0) falls along its own v; a reader's (1) along each u that it looks at, up where v is far."""
        pushed = inputs @ (params["u"] * torch.sign(params["v"] - self.far))
        return -torch.where(targets == 1, pushed, inputs @ params["v"])


def clients() -> Federation:
    coordinates = torch.eye(CLIENTS * TRIALS).reshape(CLIENTS, TRIALS, -1)
    inputs = [torch.cat([own.sum(dim=0).expand(READERS, -1), own[::2]]) for own in coordinates]
    targets = torch.tensor([1] * READERS + [0] * (TRIALS // 2))
    return Federation(torch.cat(inputs), targets.repeat(CLIENTS), (HELD,) * CLIENTS)


def released(gradients: Literal["local", "broadcast"], false_alarms: float, rounds: int, seed: int) -> Params:
    """The sum of all updates, in units of the clip: a row for every round, each from the same model, 0."""
    loss = Reading(beyond(SHARE, false_alarms))
    algorithm = ddp_fedavg(
        learning_rate=HELD,  # so that an update is the plain sum of clipped gradients and noise
        clip_norm=CLIP,
        sampling_rate=1.0,
        local_steps=STEPS,
        gradients=gradients,
        noise="gaussian",
        noise_multiplier=SHARE if gradients == "local" else NOISE,  # of one client, or of all
    )
    held = clients()
    algorithm = algorithm.for_population(held.population)
    simulation = Simulation(algorithm, held, loss, RunKey.from_seed(seed))
    engine, everyone = EmbeddedEngine(simulation), list(range(CLIENTS))
    state = algorithm.init({name: torch.zeros(CLIENTS * TRIALS) for name in ("u", "v")})
    sums = []
    for round in range(rounds):
        broadcast = algorithm.broadcast(state, round)
        total, noise = engine.gather(broadcast, everyone).total, simulation.rows(broadcast, [-1])
        after = algorithm.server_step(state, broadcast, total, CLIENTS, held.population, noise)
        sums.append({name: CLIENTS * value for name, value in after.params.items()})
    return {name: torch.stack([each[name] for each in sums]) for name in ("u", "v")}


def attack(seen: Tensor, alarm: float) -> Found:
    """An alarm wherever what is seen lies above a level that was fixed beforehand."""
    raised, targets = seen > alarm, torch.arange(seen.shape[1]) % 2 == 0
    with_target, without = raised[:, targets], raised[:, ~targets]
    return Found(int(without.sum()), without.numel(), int(with_target.sum()), with_target.numel())


def reading(sums: Params) -> Found:
    """Read u: the readers push down in the first step, and in the second by the model's own state."""
    return attack(sums["u"], -LOUD)


def looking(sums: Params, false_alarms: float) -> Found:
    """Look at v, which both steps move under the noise of all clients."""
    return attack(sums["v"], beyond(NOISE * math.sqrt(STEPS), false_alarms))


def allowed(noise_multiplier: float, false_alarm_rate: float) -> float:
    """The most that any attack recognises, if every step had this noise: μ = √S/z (Dong, Roth & Su, 2019)."""
    return gaussian.true_positive_rate(math.sqrt(STEPS) / noise_multiplier, false_alarm_rate)


def main(false_alarms: float = 1e-3, rounds: int = 400, seed: int = 1) -> None:
    found = reading(released("local", false_alarms, rounds, seed))
    broadcast = released("broadcast", false_alarms, rounds, seed)
    print(f"{CLIENTS} clients, {STEPS} local steps; noise of {NOISE:g} in all, {SHARE:.3f} of it one client's.")
    print(f"Of {found.present:,} target examples, and as many times none: recognised of 1,000 / false alarms in 1,000")
    print("Allowed to any attack")
    _print("by Theorem 4.6, which counts the noise of all", allowed(NOISE, false_alarms), false_alarms)
    _print("by what is certified, the noise of one client", allowed(SHARE, false_alarms), false_alarms)
    print("Gradients at a client's own state")
    _print("reading u", found.recognition_rate, found.false_alarm_rate)
    print("Gradients at the broadcast model, where the theorem's level is certified")
    for name, found in (("reading u", reading(broadcast)), ("looking at v", looking(broadcast, false_alarms))):
        _print(name, found.recognition_rate, found.false_alarm_rate)


def _print(name: str, recognised: float, false_alarms: float) -> None:
    print(f"  {name:<48}{1000 * recognised:6.2f} / {1000 * false_alarms:.2f}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # on tensors this small, more would only wait for each other
    main()
