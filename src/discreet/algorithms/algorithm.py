"""How the parts meet: what a client does, what the server does, and what both reveal."""

from dataclasses import replace
from typing import Literal, NamedTuple

import torch

from discreet.aggregation import AnyAggregation, Plain
from discreet.algorithms import soundness
from discreet.batches import Batches
from discreet.broadcast import Broadcast
from discreet.mechanisms import AnyMechanism, NoPrivacy
from discreet.params import Params, norms, per_client, scale
from discreet.part import Flag, part
from discreet.population import Population
from discreet.privacy.events import Event, Repeated
from discreet.privacy.release import Release
from discreet.randomness import Rows
from discreet.sampling import AnySampling, Everyone
from discreet.server_optimizers import AnyServer, ServerSgd
from discreet.sparsifiers import All, AnySparsifier
from discreet.training import AnyTrainer, Loss


class ServerState(NamedTuple):
    """All that the server carries from round to round; a checkpoint is these tensors."""

    params: Params
    mechanism: Params
    server: Params


class Sent(NamedTuple):
    """What a block of clients sends, and what is only looked at: norms before the clip."""

    rows: Params
    norms: torch.Tensor


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
        soundness.check(self)

    def init(self, params: Params) -> ServerState:
        return ServerState(params, self.mechanism.init(params), self.server.init(params))

    def broadcast(self, state: ServerState, round: int) -> Broadcast:
        announced = self.mechanism.announce(state.mechanism, self.trainer.bound(round))
        return Broadcast(round, state.params, announced | self.sparsifier.announce(state.params, round))

    def client_step(
        self, loss: Loss, broadcast: Broadcast, batches: Batches, weights: torch.Tensor, rows: Rows
    ) -> Sent:
        """Train, weigh, select, bound, encode, add the client's own noise. Weights come before the bound."""
        delta = self.trainer.train(loss, broadcast, batches, rows.at("train"))
        weighed = per_client(weights, delta) if self.weighting == "by_examples" else delta
        chosen = self.sparsifier.select(weighed, broadcast.announced)
        encoded = self.aggregation.encode(self.mechanism.bound(chosen, broadcast), rows.at("encode"))
        shared = self.mechanism.share(encoded, broadcast, rows.at("share"))
        return Sent(self.sparsifier.finish(shared, broadcast.announced), norms(delta))

    def server_step(
        self, state: ServerState, broadcast: Broadcast, total: Params, population: Population, noise: Rows
    ) -> ServerState:
        """Decode, add the server's noise, expand, divide by the expected cohort, move the model."""
        cohort = self.sampling.expected_cohort(population)  # the actual size is not public
        decoded = self.aggregation.decode(total)
        released, mechanism = self.mechanism.on_server(decoded, state.mechanism, broadcast, cohort, noise)
        mean = scale(self.sparsifier.expand(released, broadcast.announced), 1 / cohort)
        params, server = self.server.step(state.params, mean, state.server)
        return ServerState(params, mechanism, server)

    def releases(self, population: Population, round: int, cohort: tuple[int, ...] | None = None) -> list[Release]:
        """What a round reveals: of an example, to whoever sees updates; of a client, to whoever sees models.

        `cohort` are those who joined, as far as that is known; None stands for everyone alike. Where the draw itself
        is part of the price, everyone pays in every round, drawn or not.
        """
        return self._releases(population, range(round, round + 1), cohort)

    def _releases(self, population: Population, rounds: range, cohort: tuple[int, ...] | None) -> list[Release]:
        found = []
        local = self.trainer.event(population, rounds)
        if local is not None:
            # An example that lies in m clients is touched by each of them.
            event: Event = Repeated(count=population.max_multiplicity, event=local)
            found.append(Release(unit="example", relation="add_or_remove", view="server", event=event, clients=cohort))
        alone, noise = self.mechanism.own_noise(), self.mechanism.noise()
        if alone is not None:
            # Whoever sees an upload by itself knows whose it is, and any other update might have stood there.
            event = _times(alone, len(rounds))
            found.append(Release(unit="client", relation="replace", view="server", event=event, clients=cohort))
        if noise is not None and not soundness.breaks_the_sum(self):
            seen = self.sampling.amplify(noise, population)
            # Who stays away keeps its share of noise with it: then only what it would have sent is hidden.
            away = alone is not None and self.sampling.relation == "add_or_remove"
            relation, payers = "zero_out" if away else self.sampling.relation, cohort if seen == noise else None
            event = _times(seen, len(rounds))
            found.append(Release(unit="client", relation=relation, view="public", event=event, clients=payers))
        return found

    def over(self, rounds: int, population: Population) -> list[Release]:
        """What all rounds together reveal of the one who joins most often."""
        return self._releases(population, range(self.sampling.rounds_joined(population, rounds)), None)

    def fitted(self, population: Population) -> "Algorithm":
        """The same algorithm with the numbers that follow from how much data clients have."""
        mechanism = self.mechanism.fitted(self.sampling.expected_cohort(population))
        return replace(self, trainer=self.trainer.fitted(population), mechanism=mechanism)

    def with_noise(self, noise_multiplier: float) -> "Algorithm":
        """The same algorithm with the noise that was still open."""
        trainer, mechanism = self.trainer.with_noise(noise_multiplier), self.mechanism.with_noise(noise_multiplier)
        return replace(self, trainer=trainer, mechanism=mechanism)


def _times(event: Event, rounds: int) -> Event:
    return event if rounds == 1 else Repeated(count=rounds, event=event)
