"""The largest coordinates: of each client's update, of the noisy sum, or as in DP-FedSAM (Shi et al. 2023)."""

from typing import Literal

from discreet.algorithms.sparsifiers.sparsifier import Sparsifier
from discreet.algorithms.sparsifiers.top_coordinates import apply_mask, largest_mask
from discreet.params import Params
from discreet.part import Flag, Rate, part
from discreet.words import fill


@part
class TopK(Sparsifier):
    """Each client keeps its largest coordinates, a `fraction` of each tensor or of all together.

    Local update sparsification in an order that can be certified (LUS, Cheng et al. 2022): choose, then clip, then add
    noise to every coordinate, kept or not.

    Guarantee: the mechanism's. The choice comes before the clip and is part of the update that the noise covers.
    Without noise on them, the positions of the zeros would leak.
    """

    kind: Literal["top_k"] = "top_k"
    fraction: Rate
    per_layer: Flag = True

    depends_on_data = True
    has_common_mask = False
    unsound_reason = None

    def select(self, delta: Params, announcement: Params) -> Params:
        return apply_mask(largest_mask(delta, self.fraction, per_layer=self.per_layer), delta)


@part
class ServerTopK(Sparsifier):
    """The server keeps the largest coordinates of the noisy sum, a `fraction` of all tensors together.

    Guarantee: the mechanism's. This is post-processing.
    """

    kind: Literal["server_top_k"] = "server_top_k"
    fraction: Rate

    depends_on_data = False
    has_common_mask = False
    unsound_reason = None

    def expand(self, released: Params, announcement: Params) -> Params:
        one = {name: value[None] for name, value in released.items()}
        chosen = apply_mask(largest_mask(one, self.fraction, per_layer=False), one)
        return {name: value[0] for name, value in chosen.items()}


@part
class PublishedTopK(Sparsifier):
    """The order of DP-FedSAM (Shi et al. 2023, Algorithm 1, Option II): clip, noise share, then largest coordinates.

    Not certified. The paper's ε is that of the sum's noise N(0, σ²C²), to which every client brings a share. Here each
    client deletes its share where its own mask is zero, and the mask depends on its data: the sum doesn't carry that
    noise everywhere, and where it does depends on what is to be hidden. What remains, by post-processing, is the
    guarantee of one share alone, σ/√m. `TopK`, `RandomK` and `ServerTopK` keep the whole guarantee.
    """

    kind: Literal["published_top_k"] = "published_top_k"
    fraction: Rate

    depends_on_data = True
    has_common_mask = False

    @property
    def unsound_reason(self) -> str:
        return fill("claim.deleted_noise")

    def finish(self, sent: Params, announcement: Params) -> Params:
        """Keep the largest of each tensor: "based on the magnitude of weight in each layer" (section 3.3)."""
        return apply_mask(largest_mask(sent, self.fraction, per_layer=True), sent)
