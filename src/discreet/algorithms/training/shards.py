"""Local SGD on disjoint shards of a client's data, with a clip on each shard's update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import clip
from discreet.algorithms.population import Population
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import ExampleBound, Exposure, same_noise
from discreet.algorithms.training.local_sgd import LocalSgd
from discreet.algorithms.training.trainer import LocalTrainer, Loss
from discreet.algorithms.training.work_advice import WorkAdvice
from discreet.lazy_torch import torch
from discreet.params import Params, add, repeat_for_clients, scale, scale_rows, zeros_like
from discreet.part import ClipNorm, Count, part
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows


@part
class Shards(LocalTrainer):
    """Train one model on each of `shards` = M disjoint shards of a client's data, and send the mean of their updates.

    (1/M) · Σ_m clip(Δ_m, C), where Δ_m is the update of `local` on shard m, and C = `clip_norm`. In every round each
    example draws a new shard, independently. The update of an empty shard is zero.

    Guarantee: an example changes the update of one shard, from one vector of norm at most C into another, whatever
    `local` does. These may be opposite, so it moves the mean by at most 2C/M, and not C/M. Training adds no noise.
    """

    kind: Literal["shards"] = "shards"
    shards: Count
    clip_norm: ClipNorm
    local: LocalSgd

    def for_population(self, population: Population) -> Self:
        return replace(self, local=self.local.for_population(population))

    def train(self, loss: Loss, broadcast: Broadcast, batches: Batches, rows: Rows) -> Params:
        total = zeros_like(repeat_for_clients(broadcast.params, batches.clients), torch.float64)
        drawn = (rows.for_purpose(Purpose.SHARD).open().uniform(batches.sizes) * self.shards).floor()
        for shard in range(self.shards):
            shard_batches, empty = _select_shard(batches, drawn == shard)
            local = self.local.train(loss, broadcast, shard_batches, rows.for_purpose(Purpose.LOCAL, shard))
            update = clip({name: value.double() for name, value in local.items()}, self.clip_norm)
            total = add(total, scale_rows((~empty).double().to(batches.inputs.device), update))
        return scale(total, 1 / self.shards)

    def exposure(self, round: int) -> Exposure:
        reach = 2 * self.clip_norm / self.shards
        example = ExampleBound(sensitivity=reach, passes=1, parts=self.shards, counted_noise=same_noise)
        return Exposure(
            steps=(1,), sampling_rate=None, own_noise=None, update_norm=self.clip_norm, norm_order=2, example=example
        )

    def with_local_work(self, amount: int) -> Self:
        return replace(self, local=self.local.with_local_work(amount))

    def with_two_steps(self) -> Self:
        return replace(self, shards=2, local=self.local.with_two_steps())

    def model_copies(self, population: Population) -> float:
        return 6.0 + self.local.model_copies(population)

    def longest_update(self, population: Population) -> float:
        """An empty shard sends nothing."""
        return self.clip_norm * min(1.0, sum(population.examples) / population.clients / self.shards)

    def work_advice(self) -> WorkAdvice:
        return self.local.work_advice()

    @property
    def has_compiled_steps(self) -> bool:
        return self.local.has_compiled_steps

    def plan_warnings(self, population: Population) -> Iterator[str]:
        most = max(population.examples)
        if self.shards > most:
            yield (
                f"There are {self.shards:,} shards and at most {most:,} examples per client: empty shards send "
                "nothing, and only shrink the update compared to its noise. Choose fewer."
            )


def _select_shard(batches: Batches, chosen: torch.Tensor) -> tuple[Batches, torch.Tensor]:
    """Return each client's chosen examples, and which clients have none; those get their first example to train on."""
    sizes = chosen.sum(dim=1)
    empty = sizes == 0
    chosen = chosen.clone()
    chosen[empty, 0] = True
    client, example = chosen.nonzero(as_tuple=True)
    places = torch.tensor(batches.starts)[client] + example
    sizes = sizes.clamp(min=1)
    starts = sizes.cumsum(0) - sizes
    order = places if batches.order is None else batches.order[places]
    return replace(batches, starts=tuple(starts.tolist()), sizes=tuple(sizes.tolist()), order=order), empty
