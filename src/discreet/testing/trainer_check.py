"""The contract of local training as a check: clients alone, one example within its bound, fresh noise."""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.population import Population
from discreet.algorithms.training import ExampleBound, Exposure, LocalTrainer, Loss
from discreet.algorithms.training.exposure import same_noise
from discreet.algorithms.training.module_loss import ModuleLoss
from discreet.algorithms.training.per_round import value_in_round
from discreet.params import Params
from discreet.privacy import accountant
from discreet.privacy.events import Event, GaussianNoise
from discreet.testing.noise_statistics import MAX_CORRELATION, correlation
from discreet.testing.part_failure import report_errors, require
from discreet.testing.trainer_trial import TrainerTrial, smallest_clients, synthetic_examples
from discreet.testing.wrapped_part import wrap_part
from discreet.words import fill

ROUNDING = 1e-4  # relative, for updates in single precision
MOST_GROUPS = 3
SIZES = (7, 4, 12)
ROWS_ALONE = "Compute each row from the data of its own client alone."
STREAMS = "Draw from `rows` alone, which are fresh for each round, client and run."


def check_trainer(trainer: LocalTrainer) -> list[str]:
    """Check that a trainer keeps its contract, on a small linear model and synthetic data.

    How much noise training adds is not measured.

    Args:
        trainer: The trainer, ours or a user's own. Noise that is not chosen yet is set to a multiplier of 1.

    Returns:
        What was tried and measured, in sentences.

    Raises:
        PartFailed: The trainer doesn't keep its contract. The message says what was seen.

    Example:
        >>> from discreet.algorithms.training import LocalSgd
        >>> check_trainer(LocalSgd(learning_rate=0.1, batch_size=4, epochs=1))
        ['Trained 3 clients on synthetic data: no client changed the update of another.']
    """
    population = Population(examples=SIZES)
    with report_errors("The trainer"):
        fitted = wrap_part(LocalTrainer, trainer).with_noise(1.0).for_population(population)
        _check_events(per_client.worst_case(fitted), population)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(sum(SIZES), 12, generator=generator)
    targets = torch.randint(8, (sum(SIZES),), generator=generator)
    module = torch.nn.Linear(12, 8, device="meta")
    params = {"weight": torch.randn(8, 12, generator=generator) / 5, "bias": torch.zeros(8)}
    loss = ModuleLoss.from_module(module, lambda outputs, labels: cross_entropy(outputs, labels, reduction="none"))
    return _try(TrainerTrial(fitted, loss, params, (0, 1, 2), SIZES, inputs, targets))


def try_trainer(
    algorithm: Algorithm, population: Population, loss: Loss, params: Params, inputs: Tensor, targets: Tensor
) -> list[str]:
    """Try the trainer of an algorithm on synthetic data for its own model and its smallest clients.

    Args:
        algorithm: The algorithm with all its noise.
        population: Public client sizes.
        loss: Loss of the model on examples.
        params: The model.
        inputs: A batch of which only the shape and type are used.
        targets: A batch of which only the shape and type are used.

    Raises:
        PartFailed: The trainer doesn't keep its contract.
    """
    tried: dict[str, None] = {}
    for members, group in algorithm.client_groups(population)[:MOST_GROUPS]:
        clients = smallest_clients(population.examples, members or range(population.clients))
        sizes = tuple(population.examples[client] for client in clients)
        device = next(iter(params.values())).device
        own_inputs, own_targets = synthetic_examples(sum(sizes), inputs.to(device), targets.to(device))
        trial = TrainerTrial(group.trainer, loss, params, clients, sizes, own_inputs, own_targets)
        tried |= dict.fromkeys(_try(trial))
    return list(tried)


def _try(trial: TrainerTrial) -> list[str]:
    with report_errors("`exposure`"):
        exposure = per_client.worst_case(trial.trainer).exposure(0)
    base = trial.train()
    require(_is_same(base, trial.train(ambient=1)), "The same training gave two updates.", STREAMS)
    updates = [base, *_try_clients(trial, base)]
    tried = [fill("trial.training", clients=len(trial.clients))]
    if exposure.example is not None:
        tried.append(_try_examples(trial, exposure, exposure.example))
    if exposure.update_norm is not None:
        tried.append(_check_norms(updates, exposure.update_norm, exposure.norm_order or 2))
    if exposure.own_noise is not None:
        tried.append(_check_noise(trial))
    return tried


def _try_clients(trial: TrainerTrial, base: Tensor) -> list[Tensor]:
    """Replace all data of the first client, and return the updates that it then sent."""
    updates = []
    for name, values in trial.other_inputs(trial.sizes[0]).items():
        result = trial.with_examples(slice(0, trial.sizes[0]), values).train()
        require(
            _is_same(result[1:], base[1:]),
            f"Data of one client, replaced by {name} inputs, changed the update of another client.",
            ROWS_ALONE,
        )
        updates.append(result[:1])
    alone = trial.train(first_alone=True)
    require(
        torch.allclose(alone[0], base[0], rtol=ROUNDING, atol=ROUNDING * _scale(base)),
        "A client's update depends on which other clients are in its block.",
        ROWS_ALONE,
    )
    return updates


def _try_examples(trial: TrainerTrial, exposure: Exposure, example: ExampleBound) -> str:
    if example.counted_noise is not same_noise:  # the bound holds for each sum, given what else depends on it
        return fill("trial.example_by_sum")
    moved = _measure_examples(trial, exposure, example)
    if moved == 0:
        return fill("trial.example_absent")
    return fill("trial.example_moved", moved=f"{moved:.3g}")


def _measure_examples(trial: TrainerTrial, exposure: Exposure, example: ExampleBound) -> float:
    """Replace single examples of the first client, and return the largest move over the declared bound.

    The bound is for an example that is blanked: one that is replaced may move an update twice as far. An update of
    several sums moves by at most √sums times its declared sensitivity.
    """
    largest = 0.0
    for round in range(4):
        bound = example.sensitivity * math.sqrt(value_in_round(exposure.steps, round))
        base = trial.train(round)
        for place in sorted({0, trial.sizes[0] - 1}):
            for name, values in trial.other_inputs(1).items():
                result = trial.with_examples(slice(place, place + 1), values).train(round)
                require(bool(torch.isfinite(result).all()), f"With one {name} example, an update is not finite.")
                ratio = float((result[0] - base[0]).double().norm()) / (bound * (1 if name == "NaN" else 2))
                require(
                    ratio <= 1 + ROUNDING,
                    f"One example that was replaced ({name} values) moved an update by {ratio:.3g} times what "
                    "`exposure` declares.",
                    "Bound each example by itself, NaN and infinity too, or declare a larger sensitivity.",
                )
                largest = max(largest, ratio)
        if largest > 0:
            break
    return largest


def _check_norms(updates: list[Tensor], bound: float, norm_order: int) -> str:
    largest = max(float(update.double().norm(p=norm_order, dim=1).max()) for update in updates)
    require(
        largest <= bound * (1 + ROUNDING),
        f"An update has a norm of {largest:.4g}, and `exposure` declares at most {bound:.4g}.",
        "Clip what is added up, and replace NaN and infinity by zero.",
    )
    return fill("trial.update_norm", largest=f"{largest:.4g}", bound=f"{bound:.4g}")


def _check_noise(trial: TrainerTrial) -> str:
    """Refuse noise that is missing or the same twice. Blank examples leave nothing but noise."""
    if not trial.has_real_inputs:
        return fill("trial.whole_inputs")
    blank = trial.with_examples(slice(None), torch.full_like(trial.inputs, torch.nan))
    results = {(round, seed): blank.train(round, seed) for round in (0, 1) for seed in (0, 1)}
    finite = all(bool(torch.isfinite(result).all()) for result in results.values())
    require(
        finite, "With NaN in all examples, an update is not finite.", "Count an example that is not finite as zero."
    )
    first, second = (results[round, 0] - results[round, 1] for round in (0, 1))  # what is not noise cancels
    require(bool((first != 0).any(dim=1).all()), "Training declares noise, and two runs gave the same update.", STREAMS)
    limit = max(MAX_CORRELATION, 6 / math.sqrt(first.shape[1]))
    pairs = {"Two rounds": (first[0], second[0])}
    if len(first) > 1:
        pairs["Two clients"] = (first[0], first[1])
    for name, (left, right) in pairs.items():
        shared = correlation(left, right)
        require(
            abs(shared) < min(limit, 0.999), f"{name} carry the same noise: the correlation is {shared:.2f}.", STREAMS
        )
    return fill("trial.training_noise")


def _check_events(trainer: LocalTrainer, population: Population) -> None:
    """Refuse a trainer whose releases can't be priced, or that reveals less in more rounds."""
    exposure, noise = trainer.exposure(0), GaussianNoise(noise_multiplier=2.0)
    pairs: list[tuple[Event | None, Event | None]] = [
        (exposure.own_event(range(1)), exposure.own_event(range(3))),
    ]
    if exposure.example is not None:
        require(exposure.example.sensitivity > 0, "The sensitivity of an example must be above 0.")
        pairs.append((exposure.example_event(noise, range(1)), exposure.example_event(noise, range(3))))
    for few, many in pairs:
        if few is not None and many is not None:
            costs = [accountant.epsilon(event, 1e-5, "zero_out") for event in (few, many)]
            require(
                0 < costs[0] <= costs[1] < math.inf, f"1 and 3 rounds cost an epsilon of {costs[0]} and {costs[1]}."
            )
    counts = trainer.examples_per_step(population)
    require(
        len(counts) == population.clients and min(counts) > 0,
        "`examples_per_step` must return a positive number for each client.",
    )
    require(trainer.model_copies(population) > 0, "`model_copies` must be above 0.")


def _is_same(left: Tensor, right: Tensor) -> bool:
    """Return whether updates agree: to the last bit on the CPU, up to rounding on a GPU, whose sums have no order."""
    if left.device.type == "cpu":
        return torch.equal(left.nan_to_num(), right.nan_to_num())
    return torch.allclose(left, right, rtol=ROUNDING, atol=ROUNDING * _scale(right), equal_nan=True)


def _scale(updates: Tensor) -> float:
    return float(updates.nan_to_num(0, 0, 0).abs().max())
