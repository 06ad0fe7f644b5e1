"""Combinations of parts that would promise what they don't keep, refused when an algorithm is built."""

from typing import TYPE_CHECKING

from discreet.errors import InvalidInput, UnsoundCombination
from discreet.mechanisms import DistributedGaussian, LocalNoise
from discreet.sampling import Poisson, RoundRobin

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def check(algorithm: "Algorithm") -> None:
    """Each in a sentence that says what to use instead."""
    _weights(algorithm)
    _turns(algorithm)
    _bound(algorithm)
    _shares(algorithm)
    _published(algorithm)


def breaks_the_sum(algorithm: "Algorithm") -> bool:
    """Whether clients thin out the noise that they bring, so that the sum no longer carries all of it."""
    return algorithm.sparsifier.unsound is not None and isinstance(algorithm.mechanism, DistributedGaussian)


def _weights(algorithm: "Algorithm") -> None:
    if algorithm.weighting == "by_examples" and algorithm.mechanism.private:
        raise UnsoundCombination(
            "Weighing clients by their examples lets one client move the sum by more than the clip.",
            fix='Use weighting = "uniform", or mechanism = {kind = "none"} for a run without client-level privacy.',
        )


def _turns(algorithm: "Algorithm") -> None:
    if algorithm.trainer.changes and isinstance(algorithm.sampling, RoundRobin):
        raise UnsoundCombination(
            "Clients that take turns would pay for different rounds, where rounds differ in their local steps.",
            fix='Use one number of steps or epochs for all rounds, or sampling = {kind = "everyone"}.',
        )


def _bound(algorithm: "Algorithm") -> None:
    """A mechanism without a clip of its own leans on the bound that training keeps."""
    mechanism, trainer = algorithm.mechanism, algorithm.trainer
    if not isinstance(mechanism, LocalNoise) or mechanism.clip_norm is not None:
        return
    if trainer.bound(0) is None:
        raise InvalidInput(
            f"The mechanism {mechanism.kind!r} has no clip_norm, and the training bounds no update by itself.",
            fix="Give clip_norm, or clip gradients by gradient_clip and leave out momentum and weight decay.",
        )
    clip = getattr(trainer, "gradient_clip", None)
    if mechanism.order == 1 and clip is not None and clip.kind != "l1":
        raise InvalidInput(
            "Laplace noise is measured in L1, and the gradients are clipped in L2.",
            fix='Use gradient_clip = { kind = "l1", bound = … }, or give clip_norm.',
        )


def _shares(algorithm: "Algorithm") -> None:
    if isinstance(algorithm.mechanism, DistributedGaussian) and isinstance(algorithm.sampling, Poisson):
        raise UnsoundCombination(
            "Clients that bring their own share of noise make its total depend on how many joined.",
            fix='Use sampling = {kind = "fixed_size", cohort = …}, or mechanism = {kind = "gaussian", …}.',
        )


def _published(algorithm: "Algorithm") -> None:
    if breaks_the_sum(algorithm) and not algorithm.as_published:
        raise UnsoundCombination(
            str(algorithm.sparsifier.unsound),
            fix='Use sparsifier = {kind = "top_k", …}, which selects before the clip; or as_published = true for the '
            "paper's own order, of which only what one upload hides is certified.",
        )
