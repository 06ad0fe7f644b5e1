"""Refuse combinations of parts that void the guarantee, when an algorithm is built."""

from typing import TYPE_CHECKING

from discreet.algorithms import per_client
from discreet.algorithms.aggregation import Lattice
from discreet.algorithms.mechanisms import AdaptiveGaussian, Gaussian, IntegerNoise, LocalNoise, NoPrivacy
from discreet.algorithms.population import Population
from discreet.algorithms.training import Exposure
from discreet.errors import InvalidInput, UnsoundCombination

if TYPE_CHECKING:
    from discreet.algorithms.algorithm import Algorithm


def check_algorithm(algorithm: "Algorithm") -> None:
    """Refuse an algorithm whose parts don't go together.

    Raises:
        InvalidInput: If a part lacks what another needs.
        UnsoundCombination: If the parts together void the guarantee. The message says what to use instead.
    """
    _check_weights(algorithm)
    _check_each_upload(algorithm)
    _check_update_bound(algorithm)
    _check_example_bound(algorithm)
    _check_lattice(algorithm)
    _check_thinned_noise(algorithm)


def check_overlap(algorithm: "Algorithm", population: Population) -> None:
    """Refuse shared examples if the algorithm can't protect an example that several clients hold."""
    if population.max_multiplicity > 1 and algorithm.mechanism.unit == "example":
        raise UnsoundCombination(
            f"{population.max_multiplicity} clients may hold the same example, and each would move the sum by it, but "
            "the noise is for one.",
            fix="Deal every example to one client.",
        )
    if population.max_multiplicity > 1 and len(algorithm.client_groups(population)) > 1:
        raise overlap_error(population.max_multiplicity, "the same example")


def overlap_error(clients: int, shared: str) -> UnsoundCombination:
    """Return the error for examples or persons, `shared`, that several clients hold and protect differently."""
    return UnsoundCombination(
        f"{clients} clients may hold {shared}, and they protect it differently: the settings of no single client would "
        "bound what is learned about it.",
        fix="Give one sampling rate, clip, noise and epsilon for all clients, or give each client examples and persons "
        "of its own.",
    )


def has_thinned_noise(algorithm: "Algorithm") -> bool:
    """Return whether clients remove some of their noise shares, so that the sum doesn't carry all the noise.

    That is so unless the mechanism is known to have no shares: the server adds the noise, or each client all of it.
    """
    return algorithm.sparsifier.unsound_reason is not None and not isinstance(
        algorithm.mechanism, NoPrivacy | Gaussian | AdaptiveGaussian | LocalNoise
    )


def _check_weights(algorithm: "Algorithm") -> None:
    if algorithm.weighting == "by_examples" and algorithm.mechanism.is_private:
        raise UnsoundCombination(
            "Weighing clients by their examples lets one client move the sum by more than the clip.",
            fix='Use weighting = "uniform", or mechanism = {kind = "none"} for a run without client-level privacy.',
        )


def _check_each_upload(algorithm: "Algorithm") -> None:
    """Refuse a median where only a sum carries enough noise, and a median of weighted updates."""
    aggregation, mechanism = algorithm.aggregation, algorithm.mechanism
    if not aggregation.needs_each_upload:
        return
    if mechanism.is_private and not mechanism.is_local:
        raise UnsoundCombination(
            f"The aggregation {aggregation.kind!r} can be moved by about the clip norm by one client, and the noise of "
            f"the mechanism {mechanism.kind!r} is for a sum, whose mean one client moves by 1/n of that.",
            fix='Use aggregation = { kind = "plain" }, or let each client add all of its noise (pfl, ldp_fedavg).',
        )
    if algorithm.weighting == "by_examples":
        raise InvalidInput(
            f"The aggregation {aggregation.kind!r} counts clients alike, and weights by examples would shrink the "
            "updates of small clients instead.",
            fix='Use weighting = "uniform".',
        )


def check_turns(algorithm: "Algorithm", rounds: int, population: Population) -> None:
    """Refuse clients that join some rounds only, where rounds differ: the planned price is that of the first ones."""
    if algorithm.sampling.rounds_joined(population, rounds) < rounds and _exposure(algorithm).has_uneven_rounds:
        raise UnsoundCombination(
            "Clients that take turns would pay for different rounds, where rounds differ in their local steps.",
            fix='Use one number of steps or epochs for all rounds, or sampling = {kind = "everyone"}.',
        )


def _check_update_bound(algorithm: "Algorithm") -> None:
    """Refuse a local mechanism without clip_norm if training doesn't bound updates in its norm."""
    mechanism, exposure = algorithm.mechanism, _exposure(algorithm)
    if not isinstance(mechanism, LocalNoise) or mechanism.clip_norm is not None:
        return
    if exposure.update_norm is None:
        raise InvalidInput(
            f"The mechanism {mechanism.kind!r} has no clip_norm, and the training doesn't bound updates.",
            fix="Give clip_norm, or clip gradients by gradient_clip and leave out momentum and weight decay.",
        )
    # a bound in L1 is one in L2 too, and not the reverse; one without an order bounds nothing
    if exposure.norm_order is None or exposure.norm_order > mechanism.norm_order:
        raise InvalidInput(
            f"{mechanism.kind} noise is measured in L{mechanism.norm_order}, and the training bounds updates in "
            f"L{exposure.norm_order}.",
            fix='Use gradient_clip = { kind = "l1", bound = … }, or give clip_norm.',
        )


def _check_example_bound(algorithm: "Algorithm") -> None:
    """Refuse noise for single examples if training, or what follows it, doesn't bound what one example moves."""
    if algorithm.mechanism.unit != "example":
        return
    if _exposure(algorithm).example is None:
        raise InvalidInput(
            f"The mechanism {algorithm.mechanism.kind!r} has no clip_norm, so it protects examples, and the training "
            f"{algorithm.trainer.kind!r} doesn't bound what one example moves.",
            fix='Give clip_norm to protect whole clients, or use recipe = "ddp_fedavg".',
        )
    if algorithm.sparsifier.depends_on_data:
        raise UnsoundCombination(
            f"The sparsifier {algorithm.sparsifier.kind!r} chooses by the update itself: one example could change the "
            "choice, and move the update by more than training allows.",
            fix='Use sparsifier = {kind = "random_k", …}, or "server_top_k".',
        )


def _check_lattice(algorithm: "Algorithm") -> None:
    """Refuse integer noise without a lattice, and a lattice without it: rounding comes before noise, never after."""
    on_lattice, integers = isinstance(algorithm.aggregation, Lattice), isinstance(algorithm.mechanism, IntegerNoise)
    if integers and not on_lattice:
        raise UnsoundCombination(
            f"The mechanism {algorithm.mechanism.kind!r} adds integers, and updates are summed as real numbers.",
            fix='Use aggregation = { kind = "lattice" }.',
        )
    if on_lattice and not integers:
        raise UnsoundCombination(
            f"Updates on a lattice need integer noise, and the mechanism {algorithm.mechanism.kind!r} adds none.",
            fix='Use mechanism = { kind = "skellam", … } or "discrete_gaussian".',
        )
    if (
        isinstance(algorithm.aggregation, Lattice)
        and algorithm.aggregation.rotated
        and algorithm.sparsifier.has_common_mask
    ):
        raise InvalidInput(
            f"A rotation spreads every update over all coordinates, and the sparsifier {algorithm.sparsifier.kind!r} "
            "sends only some.",
            fix="Use rotated = false, or leave the sparsifier out.",
        )
    if on_lattice and _exposure(algorithm).has_uneven_rounds:
        raise UnsoundCombination(
            "On a lattice every round has the same number of sums, and here rounds differ in their local steps.",
            fix="Use one number of steps or epochs for all rounds.",
        )


def _exposure(algorithm: "Algorithm") -> Exposure:
    """Return what training exposes of the smallest client: what it bounds doesn't depend on the client sizes."""
    return per_client.worst_case(algorithm.trainer).for_population(Population(examples=(1,))).exposure(0)


def _check_thinned_noise(algorithm: "Algorithm") -> None:
    if algorithm.sparsifier.unsound_reason is not None and isinstance(algorithm.mechanism, IntegerNoise):
        raise UnsoundCombination(
            str(algorithm.sparsifier.unsound_reason),
            fix='Use sparsifier = {kind = "top_k", …}, which selects before the clip: through a secure sum nothing '
            "could be certified.",
        )
    if has_thinned_noise(algorithm) and not algorithm.as_published:
        raise UnsoundCombination(
            str(algorithm.sparsifier.unsound_reason),
            fix='Use sparsifier = {kind = "top_k", …}, which selects before the clip; or as_published = true for the '
            "paper's own order, where only what one upload hides is certified.",
        )
