"""An algorithm as a composition of parts: what clients and server do in a round, and what that reveals."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Literal, NamedTuple

from discreet.algorithms import declarations, per_client, releases, soundness
from discreet.algorithms.aggregation import AnyAggregation, Plain
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.client_groups import ClientGroups, group_clients
from discreet.algorithms.full_precision import in_full_precision
from discreet.algorithms.input_scale import InputScale
from discreet.algorithms.mechanisms import AnyMechanism, NoPrivacy
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import AnySampling, Everyone
from discreet.algorithms.server_optimizers import AnyServer, ServerSgd
from discreet.algorithms.sparsifiers import AllCoordinates, AnySparsifier, PublicUpdate
from discreet.algorithms.standardisation import Standardisation, moments_algorithm
from discreet.algorithms.training import AnyTrainer, Exposure, Loss
from discreet.algorithms.training.batches import Batches
from discreet.algorithms.training.exposure import NEGLIGIBLE, WHOLE_UPDATE, UpdateSums
from discreet.algorithms.uploads import Uploads
from discreet.lazy_torch import torch
from discreet.params import Params, check_form, norms, round_to_types, scale
from discreet.part import Flag, part
from discreet.privacy.release import Release
from discreet.randomness.purposes import Purpose
from discreet.randomness.streams import Rows
from discreet.round_clock import NO_CLOCK, Clock
from discreet.round_phases import Phase
from discreet.secure_sums.lattice.grid import Grid, Load


class ServerState(NamedTuple):
    """What the server keeps from round to round; a checkpoint stores these tensors.

    Attributes:
        params: The model.
        mechanism: State of the mechanism, such as an adaptive clip.
        server: State of the server optimiser, such as its momentum.
        input_scale: Centre and spread of every input, if inputs are standardised: 0 and 1 before the first round.
    """

    params: Params
    mechanism: Params
    server: Params
    input_scale: Params = {}  # noqa: RUF012 - never changed


@part
class Algorithm:
    """A composition of parts. Combinations that void the guarantee are refused when it is built.

    Attributes:
        sampling: Which clients join a round.
        trainer: What a client does with the broadcast model and its data.
        sparsifier: Which coordinates of an update are sent.
        mechanism: How updates are bounded, and which noise the sum carries.
        aggregation: How updates are summed.
        server: How the model moves by the mean update.
        weighting: Whether clients count alike or by their examples.
        as_published: Allow what a paper does although its proof doesn't cover it. The card prints it as a claim.
        standardisation: Which numbers are standardised by one noisy sum before the first round. The data decides it.
    """

    sampling: AnySampling = Everyone()
    trainer: AnyTrainer
    sparsifier: AnySparsifier = AllCoordinates()
    mechanism: AnyMechanism = NoPrivacy()
    aggregation: AnyAggregation = Plain()
    server: AnyServer = ServerSgd()
    weighting: Literal["uniform", "by_examples"] = "uniform"
    as_published: Flag = False
    standardisation: Standardisation | None = None

    def __post_init__(self) -> None:
        # a file that is only read runs no code of its user; the server's optimiser comes after all that is checked
        if all(own.is_loaded for own in declarations.client_parts(self)):
            soundness.check_algorithm(self)

    def init(self, params: Params) -> ServerState:
        """Return the state before the first round."""
        like, wanted = next(iter(params.values())), self.standardisation
        input_scale = {} if wanted is None else wanted.unit_scale(like)
        return ServerState(params, self.mechanism.init(params), self.server.init(params), input_scale)

    def broadcast(self, state: ServerState, round: int, public: PublicUpdate | None = None) -> Broadcast:
        """Return what the clients of a round receive.

        Args:
            state: The server's state.
            round: Number of the round, starting at 0.
            public: Computes an update on public data, for sparsifiers that need one.
        """
        announcement = self.mechanism.announce(state.mechanism, self.sensitivity(round))
        announcement |= self.sparsifier.announce(state.params, round, public)
        announcement |= state.input_scale
        return self.rebuild_broadcast(round, state.params, announcement)

    def sensitivity(self, round: int) -> float | None:
        """Return how far one unit, a client or an example, can move an update of this round; None if unbounded."""
        exposure = self._exposure(round)
        if self.mechanism.unit == "client":
            return exposure.update_norm
        return None if exposure.example is None else exposure.example.sensitivity

    def rebuild_broadcast(self, round: int, params: Params, announcement: Params) -> Broadcast:
        """Rebuild the broadcast that a client received. The encoding is not sent: it follows from the algorithm."""
        return Broadcast(
            round, params, announcement, self.aggregation.encoding(round, params, self.update_sums(round).times)
        )

    @in_full_precision
    def client_step(
        self,
        loss: Loss,
        broadcast: Broadcast,
        batches: Batches,
        weights: torch.Tensor,
        rows: Rows,
        clock: Clock = NO_CLOCK,
    ) -> Uploads:
        """Train, select coordinates, weigh, bound, encode, and add the clients' own noise, in this order.

        Args:
            loss: Loss of a model on examples.
            broadcast: What the clients received.
            batches: The clients' data.
            weights: One weight for each client, used with weighting = "by_examples".
            rows: Random streams, one for each client.
            clock: Measures where the time goes.
        """
        whole, input_scale = self.mechanism.unit == "client", InputScale.find(broadcast.announcement)
        batches = replace(batches, input_scale=input_scale, clock=clock)
        # an update that is clipped as a whole is rounded after the clip, not in training
        training_broadcast = replace(broadcast, encoding=None) if whole else broadcast
        with clock.phase(Phase.TRAINING):
            delta = self.trainer.train(loss, training_broadcast, batches, rows.for_purpose(Purpose.TRAIN))
        with clock.phase(Phase.CLIPPING):
            if whole:  # the clip comes after; the bound of an example is left in double precision, as it was summed
                delta = round_to_types(delta, broadcast.params)
            chosen = self.sparsifier.select(delta, broadcast.announcement)
            weighed = per_client.scale_by(chosen, weights) if self.weighting == "by_examples" else chosen
            bounded = self.mechanism.bound(weighed, broadcast)
        with clock.phase(Phase.ENCODING):
            coins = rows.for_purpose(Purpose.ENCODE)
            encoded = self.aggregation.encode(bounded, broadcast.encoding, coins, bounded=whole)
        with clock.phase(Phase.NOISE):
            shared = self.mechanism.add_noise_share(encoded, broadcast, rows.for_purpose(Purpose.SHARE))
        clean = None if shared is encoded else encoded
        with clock.phase(Phase.CLIPPING):
            sizes = norms(chosen) if broadcast.encoding is None else broadcast.encoding.norms(chosen)
        return Uploads(self.sparsifier.finish(shared, broadcast.announcement), sizes, clean)

    def weights(self, population: Population) -> tuple[float, ...]:
        """Return each client's public weight: 1, or its expected examples a step relative to the mean client."""
        if self.weighting == "uniform":
            return (1.0,) * population.clients
        examples = self.trainer.examples_per_step(population)
        mean = sum(examples) / len(examples)
        return tuple(count / mean for count in examples)

    def expected_cohort(self, population: Population, departed: Collection[int] = ()) -> float:
        """Return the expected cohort size without clients that `departed` for good: the public divisor of sums."""
        expected = self.sampling.expected_cohort(population)
        if not departed:
            return expected
        weights = self.weights(population)
        return expected * sum(weight for client, weight in enumerate(weights) if client not in departed) / sum(weights)

    @in_full_precision
    def server_step(
        self,
        state: ServerState,
        broadcast: Broadcast,
        total: Params,
        contributors: int,
        population: Population,
        noise: Rows,
        departed: Collection[int] = (),
        clock: Clock = NO_CLOCK,
    ) -> ServerState:
        """Decode the sum, add the server's noise, divide by the cohort size, and move the model.

        Args:
            state: The server's state before the round.
            broadcast: What the clients of the round received.
            total: The sum of their uploads.
            contributors: Number of clients in the sum.
            population: Public client sizes.
            noise: Random stream of the server.
            departed: Clients that left for good.
            clock: Measures where the time goes.
        """
        # the members of a secure sum are public, and missing clients must not shrink the step
        cohort = float(contributors) if self.aggregation.is_secure else self.expected_cohort(population, departed)
        if self.aggregation.needs_each_upload:  # as a median, which is n times itself, of uploads that have their noise
            cohort = float(max(contributors, 1))
        decoded = self.aggregation.decode(total, broadcast.encoding, state.params)
        with clock.phase(Phase.NOISE):
            released, mechanism = self.mechanism.release_sum(
                decoded, state.mechanism, broadcast, cohort, contributors, noise
            )
        update = round_to_types(self.sparsifier.expand(released, broadcast.announcement), state.params)
        mean = scale(update, 1 / cohort)
        params, server = self.server.step(state.params, mean, state.server)
        check_form("The model after a step of the server", params, state.params)
        check_form("The server's state after a step", server, state.server)
        model = {name: value.detach() for name, value in params.items()}
        return ServerState(model, mechanism, server, state.input_scale)

    def releases(
        self,
        population: Population,
        round: int,
        cohort: tuple[int, ...] | None = None,
        contributors: int | None = None,
    ) -> list[Release]:
        """List what one round reveals.

        Args:
            population: Public client sizes.
            round: Number of the round, starting at 0.
            cohort: Clients that joined, if that is known. None: all. If the secret draw is part of the guarantee, the
                release concerns all clients in every round.
            contributors: Clients that contributed a noise share. None assumes the planned minimum.
        """
        return releases.list_releases(self, population, range(round, round + 1), cohort, contributors)

    def planned_releases(self, rounds: int, population: Population) -> list[Release]:
        """List what all rounds together reveal about the client who joins most often.

        Raises:
            UnsoundCombination: If clients join some rounds only, and rounds differ in what they reveal.
        """
        soundness.check_turns(self, rounds, population)
        return releases.list_releases(self, population, range(self.sampling.rounds_joined(population, rounds)), None)

    def for_population(self, population: Population, dimension: int | None = None) -> Algorithm:
        """Return a copy with the fields filled in that follow from the client sizes and the size of the model.

        Noise that is not chosen yet stays open, and with it the scale of a lattice.

        Args:
            population: Public client sizes.
            dimension: Number of values in the model, if it is known.

        Raises:
            InvalidInput: If a list has not one value for each client, or a lattice doesn't fit the model.
            UnsoundCombination: If the clients are too few, or share examples that the algorithm can't protect.
        """
        per_client.check_client_values(self.mechanism, population)
        soundness.check_overlap(self, population)
        mechanism = self.mechanism.for_cohort(*self.sampling.cohort_bounds(population))
        algorithm = replace(self, trainer=self.trainer.for_population(population), mechanism=mechanism)
        load = algorithm.sum_load(population)
        aggregation = self.aggregation.for_sum(dimension, load)
        aggregation.check_load(load)
        return replace(algorithm, aggregation=aggregation)

    def for_moments(self, population: Population) -> Algorithm | None:
        """Return the algorithm of the round before the first, which sums moments; None without such a round."""
        return moments_algorithm(self, population)

    def grid(self, population: Population) -> Grid | None:
        """Return the lattice that integer noise is priced on; None for real numbers, or if noise is still open."""
        aggregation, sums = self.aggregation.for_sum(None, self.sum_load(population)), self.update_sums(0, population)
        return aggregation.grid(sums.times, sums.vectors_per_sum(max(population.examples)))

    def has_uneven_rounds(self, population: Population) -> bool:
        """Return whether rounds differ in what they reveal."""
        return self._exposure(0, population).has_uneven_rounds

    def wraparound_probability(self, population: Population, rounds: int) -> float | None:
        """Bound the probability that any of `rounds` sums wraps around; None without a ring, or if unknown."""
        once = self.aggregation.wraparound_probability(self.sum_load(population))
        return None if once is None else min(1.0, rounds * (once + NEGLIGIBLE))

    def _exposure(self, round: int, population: Population | None = None) -> Exposure:
        """Return what training exposes in this round, of the client that it exposes most."""
        trainer = per_client.worst_case(self.trainer)
        return (trainer if population is None else trainer.for_population(population)).exposure(round)

    @property
    def may_send_doubles(self) -> bool:
        """Whether uploads in clear may be doubles: where only their sum has enough noise (docs/notes/numerics.md)."""
        shared = not self.mechanism.is_local and self.mechanism.upload_noise() is not None
        return self.mechanism.unit == "example" or (shared and self.mechanism.integer_shares is None)

    def update_sums(self, round: int, population: Population | None = None) -> UpdateSums:
        """Return the sums that an update of this round is made up of."""
        if self.mechanism.unit == "client":
            return WHOLE_UPDATE
        return self._exposure(round, population).sums(round)

    def sum_load(self, population: Population, contributors: Collection[int] | None = None) -> Load | None:
        """Return what one sum on a lattice carries, in units of what one client or one example may move it by.

        None without a lattice, or if its noise is unknown.

        Args:
            population: Public client sizes.
            contributors: The clients in the sum. None: as many as may join.
        """
        integers, joined = self.mechanism.integer_shares, contributors
        if joined is None:
            joined = range(self.sampling.cohort_bounds(population)[1])
        deviation = None if integers is None else self.mechanism.noise_deviation(tuple(joined))
        if integers is None or deviation is None:
            return None
        examples = population.examples if contributors is None else [population.examples[each] for each in joined]
        sums, whole, most = self.update_sums(0, population), self.mechanism.unit == "client", len(joined)
        vectors = most if whole else sums.max_examples(sum(examples))
        rounded = None if whole else most * sums.times
        return Load(vectors, rounded, 1 / math.sqrt(sums.times), deviation, most, integers.noise)

    def client_groups(self, population: Population) -> ClientGroups:
        """Group clients with equal settings, each group with its algorithm. Usually one group: all clients (None)."""
        if not (per_client.client_fields(self.trainer) or per_client.client_fields(self.mechanism)):
            return ((None, self),)
        return group_clients(self, population.clients)

    def worst_case(self) -> Algorithm:
        """Return a copy in which all clients have the settings that reveal most."""
        return replace(
            self, trainer=per_client.worst_case(self.trainer), mechanism=per_client.worst_case(self.mechanism)
        )

    def with_noise(self, noise_multiplier: float | tuple[float, ...]) -> Algorithm:
        """Return a copy with this noise multiplier where none is chosen yet; a tuple has one for each client."""
        trainer, mechanism = self.trainer.with_noise(noise_multiplier), self.mechanism.with_noise(noise_multiplier)
        return replace(self, trainer=trainer, mechanism=mechanism)
