"""One mask for all clients, from what is public anyway."""

import hashlib
from typing import Literal

import torch

from discreet.algorithms.sparsifiers.sparsifier import PublicUpdate
from discreet.algorithms.sparsifiers.top_coordinates import apply_mask, count_kept, largest_mask
from discreet.errors import InvalidInput
from discreet.params import Params, count_values, scale, unflatten
from discreet.part import Flag, Index, Rate, part


@part
class RandomK:
    """k = ceil(fraction·d) coordinates of all tensors together, drawn anew in each round (Fed-SMP's rand_k).

    The draw hangs on `seed` and the round alone, so everybody may know it. `scaled` makes the expectation over draws
    the whole update, by a factor d/k. It comes before the clip: after it, one client would move the sum by d/k clips.

    Guarantee: the mechanism's. The mask knows no data, and what the server drops of the noisy sum is post-processing.
    """

    kind: Literal["random_k"] = "random_k"
    fraction: Rate
    scaled: Flag = False
    seed: Index = 0

    @property
    def depends_on_data(self) -> bool:
        return self.scaled  # by d/k, every example moves it by more

    @property
    def has_common_mask(self) -> bool:
        return True

    @property
    def unsound_reason(self) -> str | None:
        return None

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        coordinates = count_values(params)
        chosen = torch.zeros(coordinates, dtype=torch.bool)
        chosen[
            torch.randperm(coordinates, generator=self._mask_generator(round))[: count_kept(self.fraction, coordinates)]
        ] = True
        return _as_announcement(
            unflatten(chosen, params), params
        )  # however a model lists its tensors, the draw is the same

    def select(self, delta: Params, announcement: Params) -> Params:
        chosen = apply_mask(_announced_masks(delta, announcement), delta)
        if not self.scaled:
            return chosen
        coordinates = sum(value[0].numel() for value in delta.values())
        return scale(chosen, coordinates / count_kept(self.fraction, coordinates))

    def finish(self, sent: Params, announcement: Params) -> Params:
        return sent

    def expand(self, released: Params, announcement: Params) -> Params:
        return apply_mask(_announced_masks(released, announcement), released)

    def coordinates(self, update: int) -> int:
        return count_kept(self.fraction, update)

    def _mask_generator(self, round: int) -> torch.Generator:
        """On the host, where a seed gives the same numbers on every machine."""
        seed = hashlib.blake2b(f"random_k {self.seed} {round}".encode(), digest_size=8).digest()
        return torch.Generator().manual_seed(int.from_bytes(seed, "little", signed=True))


@part
class PublicTopK:
    """The k = ceil(fraction·d) largest coordinates of an update made on public data (Fed-SMP's top_k).

    Guarantee: the mechanism's, as long as that data is public: the mask then knows nothing of any client.
    """

    kind: Literal["public_top_k"] = "public_top_k"
    fraction: Rate

    @property
    def depends_on_data(self) -> bool:
        return False

    @property
    def has_common_mask(self) -> bool:
        return True

    @property
    def unsound_reason(self) -> str | None:
        return None

    def announce(self, params: Params, round: int, public: PublicUpdate | None = None) -> Params:
        if public is None:
            raise missing_public_data()
        one = {name: value[None] for name, value in public(params, round).items()}
        chosen = largest_mask(one, self.fraction, per_layer=False)
        return _as_announcement({name: mask[0] for name, mask in chosen.items()}, params)

    def select(self, delta: Params, announcement: Params) -> Params:
        return apply_mask(_announced_masks(delta, announcement), delta)

    def finish(self, sent: Params, announcement: Params) -> Params:
        return sent

    def expand(self, released: Params, announcement: Params) -> Params:
        return apply_mask(_announced_masks(released, announcement), released)

    def coordinates(self, update: int) -> int:
        return count_kept(self.fraction, update)


def missing_public_data() -> InvalidInput:
    """What is said of `public_top_k` where a task has no public data."""
    return InvalidInput(
        "The sparsifier 'public_top_k' takes its mask from an update on public data, and there is none.",
        fix="Name some in the task (public_examples = …, for FEMNIST public_writers = true, for your own arrays "
        'public=…), or use sparsifier = { kind = "random_k", fraction = … }.',
    )


def _as_announcement(masks: Params, params: Params) -> Params:
    """As announcement, beside what a mechanism announces; on the model's device."""
    return {mask_name(name): mask.to(params[name].device) for name, mask in masks.items()}


def mask_name(name: str) -> str:
    """As a tensor's mask is announcement."""
    return f"mask {name}"


def _announced_masks(block: Params, announcement: Params) -> Params:
    return {name: announcement[mask_name(name)] for name in block}
