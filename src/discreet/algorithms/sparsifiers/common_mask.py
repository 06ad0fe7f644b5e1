"""One mask for all clients, computed from public information."""

from __future__ import annotations

import hashlib
from typing import Literal

from discreet.algorithms.sparsifiers.sparsifier import PublicUpdate, Sparsifier
from discreet.algorithms.sparsifiers.top_coordinates import apply_mask, count_kept, largest_mask
from discreet.errors import InvalidInput
from discreet.lazy_torch import torch
from discreet.params import Params, count_values, scale, unflatten
from discreet.part import Flag, Index, Rate, part


@part
class RandomK(Sparsifier):
    """k = ceil(fraction·d) coordinates of all tensors together, drawn anew in each round (Fed-SMP's rand_k).

    The draw depends only on `seed` and the round, so it is public. `scaled` multiplies by d/k, which makes the
    expectation over draws the whole update. It comes before the clip: after it, one client would move the sum by d/k
    clip norms.

    Guarantee: the mechanism's. The mask doesn't depend on data, and the server's mask on the noisy sum is
    post-processing.
    """

    kind: Literal["random_k"] = "random_k"
    fraction: Rate
    scaled: Flag = False
    seed: Index = 0

    has_common_mask = True
    unsound_reason = None

    @property
    def depends_on_data(self) -> bool:
        return self.scaled  # the factor d/k lets every example move it by more

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        coordinates = count_values(params)
        chosen = torch.zeros(coordinates, dtype=torch.bool)
        chosen[
            torch.randperm(coordinates, generator=self._mask_generator(round))[: count_kept(self.fraction, coordinates)]
        ] = True
        return _as_announcement(unflatten(chosen, params), params)  # the draw doesn't depend on the order of tensors

    def select(self, delta: Params, announcement: Params) -> Params:
        chosen = apply_mask(_announced_masks(delta, announcement), delta)
        if not self.scaled:
            return chosen
        coordinates = sum(value[0].numel() for value in delta.values())
        return scale(chosen, coordinates / count_kept(self.fraction, coordinates))

    def expand(self, released: Params, announcement: Params) -> Params:
        return apply_mask(_announced_masks(released, announcement), released)

    def coordinates(self, update: int) -> int:
        return count_kept(self.fraction, update)

    def _mask_generator(self, round: int) -> torch.Generator:
        """Return the round's generator. It is on the CPU, where a seed gives the same numbers on every machine."""
        seed = hashlib.blake2b(f"random_k {self.seed} {round}".encode(), digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(seed, "little", signed=True))


@part
class PublicTopK(Sparsifier):
    """The k = ceil(fraction·d) largest coordinates of an update on public data (Fed-SMP's top_k).

    Guarantee: the mechanism's, if that data is public: the mask then doesn't depend on any client.
    """

    kind: Literal["public_top_k"] = "public_top_k"
    fraction: Rate

    depends_on_data = False
    has_common_mask = True
    unsound_reason = None
    needs_public_data = True

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        if public is None:
            raise missing_public_data()
        one = {name: value[None] for name, value in public(params, round).items()}
        chosen = largest_mask(one, self.fraction, per_layer=False)
        return _as_announcement({name: mask[0] for name, mask in chosen.items()}, params)

    def select(self, delta: Params, announcement: Params) -> Params:
        return apply_mask(_announced_masks(delta, announcement), delta)

    def expand(self, released: Params, announcement: Params) -> Params:
        return apply_mask(_announced_masks(released, announcement), released)

    def coordinates(self, update: int) -> int:
        return count_kept(self.fraction, update)


def missing_public_data() -> InvalidInput:
    """Return the error for `public_top_k` with a task that has no public data."""
    return InvalidInput(
        "The sparsifier 'public_top_k' takes its mask from an update on public data, and there is none.",
        fix="Name some in the task (public_examples = …, for FEMNIST public_writers = true, for your own arrays "
        'public=…), or use sparsifier = { kind = "random_k", fraction = … }.',
    )


def _as_announcement(masks: Params, params: Params) -> Params:
    """Name the masks for the announcement, and move them to the model's device."""
    return {mask_name(name): mask.to(params[name].device) for name, mask in masks.items()}


def mask_name(name: str) -> str:
    """Return the name under which a tensor's mask is announced."""
    return f"mask {name}"


def _announced_masks(block: Params, announcement: Params) -> Params:
    return {name: announcement[mask_name(name)] for name in block}
