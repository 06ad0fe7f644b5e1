"""What training alone exposes of a client's data: the facts from which releases are priced."""

import math
from collections.abc import Callable
from typing import NamedTuple

from discreet.algorithms.training.per_round import sum_over_rounds, value_in_round
from discreet.privacy.events import Event, Noise, PoissonSampled, Repeated

NEGLIGIBLE = 1e-12  # a probability of failure that costs utility only, never privacy


class UpdateSums(NamedTuple):
    """The sums that an update is made up of.

    Attributes:
        times: Number of sums.
        rate: Probability that an example is in a sum.
        passes: How often an example is added to a sum that it is in.
        parts: Vectors that are added up in a sum at least, whatever the examples.
    """

    times: int
    rate: float
    passes: int
    parts: int

    def vectors_per_sum(self, examples: int) -> int:
        """Return the most vectors in one sum of a client with this many examples."""
        return max(self.passes * examples, self.parts)

    def max_examples(self, examples: int, failure: float = NEGLIGIBLE) -> int:
        """Bound the examples in all sums together, up to a probability of `failure` (Bernstein's inequality)."""
        mean, log = self.times * examples * self.rate, -math.log(failure)
        likely = mean + log / 3 + math.sqrt(log * log / 9 + 2 * mean * log)
        return math.ceil(min(likely, self.times * examples))


WHOLE_UPDATE = UpdateSums(times=1, rate=1.0, passes=1, parts=1)  # an update that is bounded and rounded as a whole


class ExampleBound(NamedTuple):
    """How one example enters an update, where training bounds that. No field has a default.

    Attributes:
        sensitivity: How far one example can move a client's update of the round, by construction. For an update of
            several sums it is the root of the sum of squares: noise of z times this value on the update is noise of
            multiplier z on each sum.
        passes: How often an example is added to a sum that it is in.
        parts: Vectors that are added up in a sum at least, whatever the examples.
        counted_noise: Turns the noise of the update, relative to `sensitivity`, into the noise that each sum is counted
            with: `same_noise`, or less where the client also uses a sum in another way.
    """

    sensitivity: float
    passes: int
    parts: int
    counted_noise: Callable[[Noise], Noise]


class Exposure(NamedTuple):
    """What a client's updates expose by training alone, before the mechanism's noise. No field has a default.

    Attributes:
        steps: Sums of examples in each round that are counted one by one; the last number stays in force. An update
            that is only bounded as a whole is one.
        sampling_rate: Probability that an example is in such a sum, by a secret draw of its own; None if all are.
        own_noise: Noise that training adds to each sum, relative to how far one example moves it. None if it adds none,
            or if that noise is still to be chosen: then training by itself protects nobody.
        update_norm: Norm that no update of the round exceeds, by construction; None if unbounded.
        norm_order: Order of that norm: 1 or 2. None if unbounded.
        example: How one example enters the round's update; None if nothing bounds that.
    """

    steps: tuple[int, ...]
    sampling_rate: float | None
    own_noise: Noise | None
    update_norm: float | None
    norm_order: int | None
    example: ExampleBound | None

    @property
    def has_uneven_rounds(self) -> bool:
        """Whether rounds differ in what they reveal."""
        return len(self.steps) > 1

    def own_event(self, rounds: range) -> Event | None:
        """Return what the updates of these rounds reveal about one example by training's own noise; None without."""
        return None if self.own_noise is None else self._sampled_event(self.own_noise, rounds)

    def example_event(self, noise: Noise, rounds: range) -> Event:
        """Return what these rounds reveal about one example if every update carries this noise.

        The noise is relative to the example's sensitivity.
        """
        assert self.example is not None  # an algorithm whose training bounds no example is refused when it is built
        return self._sampled_event(self.example.counted_noise(noise), rounds)

    def sums(self, round: int) -> UpdateSums:
        """Return the sums that an update of this round is made up of; on a lattice each is rounded by itself."""
        assert self.example is not None  # as above
        rate = 1.0 if self.sampling_rate is None else self.sampling_rate
        return UpdateSums(value_in_round(self.steps, round), rate, self.example.passes, self.example.parts)

    def _sampled_event(self, noise: Noise, rounds: range) -> Event:
        sampled = noise if self.sampling_rate is None else PoissonSampled(sampling_rate=self.sampling_rate, event=noise)
        return Repeated(count=sum_over_rounds(self.steps, rounds), event=sampled)


# An update that nothing bounds, and that no noise protects.
NOTHING_DECLARED = Exposure(
    steps=(1,), sampling_rate=None, own_noise=None, update_norm=None, norm_order=None, example=None
)


def expose_steps(
    steps: tuple[int, ...], sampling_rate: float, own_noise: Noise | None, example: ExampleBound | None
) -> Exposure:
    """Return what a trainer exposes that draws examples for each step, and doesn't bound its update as a whole."""
    return Exposure(steps, sampling_rate, own_noise, update_norm=None, norm_order=None, example=example)


def expose_update(norm: float | None, order: int | None) -> Exposure:
    """Return what a trainer exposes that bounds its update as a whole, if at all, and not what one example moves.

    Args:
        norm: Norm that no update exceeds, by construction. None if nothing bounds it: the mechanism must then clip.
        order: Order of that norm: 1 or 2. It has no default, since an L2 bound is not an L1 bound. None without a norm.
    """
    return Exposure((1,), None, own_noise=None, update_norm=norm, norm_order=order, example=None)


def same_noise(noise: Noise) -> Noise:
    """Return the noise itself: nothing but the update depends on its sums."""
    return noise
