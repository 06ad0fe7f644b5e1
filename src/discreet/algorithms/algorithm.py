"""How the parts meet: what a client does, what the server does, and what both reveal."""

import math
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import torch

from discreet.algorithms import per_client, releases, soundness
from discreet.algorithms.aggregation import AnyAggregation, Plain
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.mechanisms import AnyMechanism, IntegerNoise, NoPrivacy
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.sparsifiers import All, AnySparsifier, PublicUpdate
from discreet.algorithms.training import AnyTrainer, Loss, UpdateSums
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.trainer import NEGLIGIBLE
from discreet.params import Params, norms, scale
from discreet.part import Flag, part
from discreet.privacy.release import Release
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows
from discreet.secure_sums.lattice import Grid, Load


class ServerState(NamedTuple):
    """All that the server carries from round to round; a checkpoint is these tensors."""

    params: Params
    mechanism: Params
    server: Params


class Uploads(NamedTuple):
    """What a block of clients sends, and what is only looked at: norms before the clip, rows before their noise."""

    rows: Params
    norms: torch.Tensor
    clean: Params | None = None  # None where clients add no noise: then it is the rows

    def select(self, places: slice | list[int]) -> "Uploads":
        """What these of the block sent; a slice is a view of it, without a copy."""
        rows = {name: value[places] for name, value in self.rows.items()}
        clean = None if self.clean is None else {name: value[places] for name, value in self.clean.items()}
        return Uploads(rows, self.norms[places], clean)


@part
class Algorithm:
    """Who joins, what a client does, what it may reveal, how updates are summed, how the model moves."""

    sampling: AnySampling = Everyone()
    trainer: AnyTrainer
    sparsifier: AnySparsifier = All()
    mechanism: AnyMechanism = NoPrivacy()
    aggregation: AnyAggregation = Plain()
    server: AnyServer = ServerSgd()
    weighting: Literal["uniform", "by_examples"] = "uniform"
    as_published: Flag = False  # allow what a paper does and its proof doesn't carry: the card says so

    def __post_init__(self) -> None:
        soundness.check_algorithm(self)

    def init(self, params: Params) -> ServerState:
        return ServerState(params, self.mechanism.init(params), self.server.init(params))

    def broadcast(self, state: ServerState, round: int, public: PublicUpdate | None = None) -> Broadcast:
        """What the round's clients get; `public` makes an update on public data, where there is some."""
        announcement = self.mechanism.announce(state.mechanism, self.sensitivity(round))
        announcement |= self.sparsifier.announce(state.params, round, public)
        return self.rebuild_broadcast(round, state.params, announcement)

    def sensitivity(self, round: int) -> float | None:
        """How far what is hidden, a client or an example, moves an update of this round by the making of it."""
        return (
            self.trainer.max_update_norm(round)
            if self.mechanism.unit == "client"
            else self.trainer.example_sensitivity(round)
        )

    def rebuild_broadcast(self, round: int, params: Params, announcement: Params) -> Broadcast:
        """The broadcast of what was told: the way onto the lattice follows, so whoever holds the algorithm knows it."""
        return Broadcast(round, params, announcement, self.aggregation.encoding(round, params, self._sums(round).times))

    def client_step(
        self, loss: Loss, broadcast: Broadcast, batches: Batches, weights: torch.Tensor, rows: Rows
    ) -> Uploads:
        """Train, select, weigh, bound, encode, add the client's own noise. Weights come before the bound."""
        whole = self.mechanism.unit == "client"
        heard = replace(broadcast, encoding=None) if whole else broadcast  # what is clipped as a whole is rounded later
        delta = self.trainer.train(loss, heard, batches, rows.for_purpose(Purpose.TRAIN))
        chosen = self.sparsifier.select(delta, broadcast.announcement)
        weighed = per_client.scale_by(chosen, weights) if self.weighting == "by_examples" else chosen
        bounded = self.mechanism.bound(weighed, broadcast)
        encoded = self.aggregation.encode(bounded, broadcast.encoding, rows.for_purpose(Purpose.ENCODE), bounded=whole)
        shared = self.mechanism.add_noise_share(encoded, broadcast, rows.for_purpose(Purpose.SHARE))
        clean = None if shared is encoded else encoded
        sizes = norms(chosen) if broadcast.encoding is None else broadcast.encoding.norms(chosen)
        return Uploads(self.sparsifier.finish(shared, broadcast.announcement), sizes, clean)

    def weights(self, population: Population) -> tuple[float, ...]:
        """What each client counts: one, or the examples it is expected to use over the mean client's. Public."""
        if self.weighting == "uniform":
            return (1.0,) * population.clients
        examples = self.trainer.examples_per_step(population)
        mean = sum(examples) / len(examples)
        return tuple(each / mean for each in examples)

    def expected_cohort(self, population: Population, departed: Collection[int] = ()) -> float:
        """Return the expected cohort size without clients that `departed` for good: the public divisor of sums."""
        expected = self.sampling.expected_cohort(population)
        if not departed:
            return expected
        weights = self.weights(population)
        return expected * sum(each for client, each in enumerate(weights) if client not in departed) / sum(weights)

    def server_step(
        self,
        state: ServerState,
        broadcast: Broadcast,
        total: Params,
        contributors: int,
        population: Population,
        noise: Rows,
        departed: Collection[int] = (),
    ) -> ServerState:
        """Decode, add the server's noise, expand, divide by the expected cohort, move the model."""
        # who is in a secure sum is no secret, and who isn't must not shrink the step
        cohort = float(contributors) if self.aggregation.is_secure else self.expected_cohort(population, departed)
        decoded = self.aggregation.decode(total, broadcast.encoding, state.params)
        released, mechanism = self.mechanism.release_sum(
            decoded, state.mechanism, broadcast, cohort, contributors, noise
        )
        mean = scale(self.sparsifier.expand(released, broadcast.announcement), 1 / cohort)
        params, server = self.server.step(state.params, mean, state.server)
        return ServerState(params, mechanism, server)

    def releases(
        self,
        population: Population,
        round: int,
        cohort: tuple[int, ...] | None = None,
        contributors: int | None = None,
    ) -> list[Release]:
        """What a round reveals: of an example, to whoever sees updates; of a client, to whoever sees models.

        `cohort` are those who joined, as far as that is known; None stands for everyone alike. Where the draw itself
        is part of the price, everyone pays in every round, drawn or not. `contributors` says how many brought their
        noise; None stands for as few as were planned for.
        """
        return releases.list_releases(self, population, range(round, round + 1), cohort, contributors)

    def planned_releases(self, rounds: int, population: Population) -> list[Release]:
        """What all rounds together reveal of the one who joins most often."""
        return releases.list_releases(self, population, range(self.sampling.rounds_joined(population, rounds)), None)

    def for_population(self, population: Population, dimension: int | None = None) -> "Algorithm":
        """The same algorithm with the numbers that follow from how much data clients have, and from the model's size.

        What is still open (noise, and the scale of a lattice that goes by it) stays so.
        """
        per_client.check_client_values(self.mechanism, population)
        soundness.check_overlap(self, population)
        mechanism = self.mechanism.for_cohort(*self.sampling.cohort_bounds(population))
        found = replace(self, trainer=self.trainer.for_population(population), mechanism=mechanism)
        load = found._load(population)
        aggregation = self.aggregation.for_sum(dimension, load)
        aggregation.check_load(load)
        return replace(found, aggregation=aggregation)

    def grid(self, population: Population) -> Grid | None:
        """What integer noise is priced on; None where updates are real numbers, or too little is known yet."""
        fitted, sums = self.aggregation.for_sum(None, self._load(population)), self._sums(0)
        return fitted.grid(sums.times, sums.vectors_per_sum(max(population.examples)))

    def wraparound_probability(self, population: Population, rounds: int) -> float | None:
        """At most how often any of so many sums leaves its ring; None where there is none, or too little is known."""
        once = self.aggregation.wraparound_probability(self._load(population))
        return None if once is None else min(1.0, rounds * (once + NEGLIGIBLE))

    def _sums(self, round: int) -> UpdateSums:
        return self.trainer.update_sums(round) if self.mechanism.unit == "example" else UpdateSums()

    def _load(self, population: Population) -> Load | None:
        """What one sum on a lattice carries, in units of what one client, or one example, may move."""
        mechanism = self.mechanism
        if not isinstance(mechanism, IntegerNoise) or mechanism.noise_multiplier is None or mechanism.shares is None:
            return None
        sums = self._sums(0)
        most = self.sampling.cohort_bounds(population)[1]
        whole = mechanism.unit == "client"
        vectors = most if whole else sums.max_examples(sum(population.examples))
        rounded = None if whole else most * sums.times
        deviation = mechanism.noise_multiplier * math.sqrt(most / mechanism.shares)
        return Load(vectors, rounded, 1 / math.sqrt(sums.times), deviation, most, mechanism.kind)

    def client_groups(self, population: Population) -> "ClientGroups":
        """Clients whose numbers are alike, and the algorithm as it is for them; as a rule one kind: everyone (None)."""
        if not (per_client.client_fields(self.trainer) or per_client.client_fields(self.mechanism)):
            return ((None, self),)
        return _group_clients(self, population.clients)

    def worst_case(self) -> "Algorithm":
        """For whoever may not tell clients apart: all have the numbers that reveal most."""
        return replace(
            self, trainer=per_client.worst_case(self.trainer), mechanism=per_client.worst_case(self.mechanism)
        )

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> "Algorithm":
        """The same algorithm with the noise that was still open; a list has one for each client."""
        trainer, mechanism = self.trainer.with_noise(noise_multiplier), self.mechanism.with_noise(noise_multiplier)
        return replace(self, trainer=trainer, mechanism=mechanism)


ClientGroups: TypeAlias = tuple[tuple[tuple[int, ...] | None, Algorithm], ...]


@lru_cache(maxsize=32)
def _group_clients(algorithm: Algorithm, clients: int) -> ClientGroups:
    trainer, mechanism = algorithm.trainer, algorithm.mechanism
    lists = [getattr(part, name) for part in (trainer, mechanism) for name in per_client.client_fields(part)]
    alike: dict[tuple[float, ...], list[int]] = {}
    for client in range(clients):
        alike.setdefault(tuple(numbers[client] for numbers in lists), []).append(client)
    return tuple(
        (
            tuple(group),
            replace(
                algorithm,
                trainer=per_client.for_client(trainer, group[0]),
                mechanism=per_client.for_client(mechanism, group[0]),
            ),
        )
        for group in alike.values()
    )
