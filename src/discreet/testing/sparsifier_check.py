"""The contract of a sparsifier as a check: which coordinates it leaves out, and whether data decides that."""

import torch

from discreet.algorithms.broadcast import CLIP
from discreet.algorithms.sparsifiers import Sparsifier
from discreet.params import Params, count_values, norms, unflatten
from discreet.testing.part_failure import report_errors, require
from discreet.testing.wrapped_part import wrap_part
from discreet.words import fill

CLIENTS, ROUNDS = 4, 3
MOST_VALUES = 50_000  # of all changes that are tried in a round
ROUNDING = 1e-5  # relative, for norms in single precision
FUNCTION = "Compute the result from the arguments alone, and keep nothing from call to call."


def check_sparsifier(sparsifier: Sparsifier, params: Params | None = None) -> list[str]:
    """Check that a sparsifier keeps its contract: it treats clients alone, and data decides no more than is declared.

    Args:
        sparsifier: The sparsifier, ours or a user's own.
        params: A model to try it on; by default a small one.

    Returns:
        What was tried, in sentences.

    Raises:
        PartFailed: The sparsifier doesn't keep its contract. The message says what was seen.

    Example:
        >>> from discreet.algorithms.sparsifiers import TopK
        >>> check_sparsifier(TopK(fraction=0.1))[0]
        'Selected coordinates of 4 clients in 3 rounds: each alone, and the same again.'
    """
    sparsifier = wrap_part(Sparsifier, sparsifier)
    params = params or {"weight": torch.zeros(40, 50), "bias": torch.zeros(40), "shift": torch.zeros(1)}
    tried = [fill("trial.selection", clients=CLIENTS, rounds=ROUNDS)]
    with report_errors("The sparsifier"):
        for round in range(ROUNDS):
            announcement = _check_announcement(sparsifier, params, round)
            rows = _block(params, seed=round)
            chosen = sparsifier.select(rows, announcement)
            _check_rows(sparsifier, rows, chosen, announcement)
            _check_after_noise(sparsifier, rows, announcement)
            if sparsifier.has_common_mask:
                _check_common_mask(sparsifier, params, chosen, announcement)
            if not sparsifier.depends_on_data:
                _check_independence(sparsifier, rows, chosen, announcement, params)
    if sparsifier.has_common_mask:
        tried.append(fill("trial.common_mask"))
    if not sparsifier.depends_on_data:
        tried.append(fill("trial.independent_selection", tries=ROUNDS * _changes(params)))
    return tried


def public_update(params: Params, round: int) -> Params:
    """Return random numbers as the update on public data, for sparsifiers that need one."""
    return {name: value[0] for name, value in _block(params, seed=1000 + round, clients=1).items()}


def _block(params: Params, seed: int, clients: int = CLIENTS) -> Params:
    """Return random updates without a zero, so that a zero shows what was left out."""
    values = torch.randn(clients, count_values(params), generator=torch.Generator().manual_seed(seed))
    values[values == 0] = 1
    return unflatten(values.to(next(iter(params.values()))), params)


def _check_announcement(sparsifier: Sparsifier, params: Params, round: int) -> Params:
    announcement, again = (sparsifier.announce(params, round, public_update) for _ in range(2))
    require(_is_equal(announcement, again), "One round was announced in two ways.", FUNCTION)
    require(CLIP not in announcement, f"A sparsifier must not announce {CLIP!r}, which is the mechanism's.")
    device = next(iter(params.values())).device
    there = all(value.device == device for value in announcement.values())
    require(there, "What is announced must be on the model's device.")
    return announcement


def _check_rows(sparsifier: Sparsifier, rows: Params, chosen: Params, announcement: Params) -> None:
    shapes = {name: value.shape for name, value in rows.items()}
    require(
        {name: value.shape for name, value in chosen.items()} == shapes,
        "`select` must keep names and shapes of tensors.",
    )
    require(_is_equal(chosen, sparsifier.select(rows, announcement)), "`select` gave two results.", FUNCTION)
    for step, name in ((sparsifier.select, "select"), (sparsifier.finish, "finish")):
        together = step(rows, announcement)
        for client in range(CLIENTS):
            alone = step(_row(rows, client), announcement)
            require(
                _is_equal(_row(together, client), alone),
                f"`{name}` treats a client in another way when others are in its block.",
                "Treat each row by itself.",
            )
    twice = sparsifier.select(chosen, announcement)
    require(
        _is_equal(_mask(twice), _mask(chosen)), "Selecting from a selection leaves out other coordinates than before."
    )


def _check_after_noise(sparsifier: Sparsifier, rows: Params, announcement: Params) -> None:
    """Refuse a change of noisy uploads that nothing declares, and an expansion that depends on more than the sum."""
    extra = torch.linspace(-1, 1, CLIENTS, device=next(iter(rows.values())).device)
    sent = sparsifier.finish(rows | {"extra": extra}, announcement)
    require(
        "extra" in sent and torch.equal(sent["extra"], extra),
        "`finish` must send what a mechanism adds to an update as it is.",
    )
    if sparsifier.unsound_reason is None:
        other = sparsifier.finish({name: value.roll(1, 0) for name, value in rows.items()}, announcement)
        masks = _mask({name: sent[name] for name in rows}), _mask({name: other[name] for name in rows})
        require(
            _is_equal(*masks),
            "`finish` chooses by the noisy upload, which removes noise that is accounted.",
            "Select before the noise, in `select`; or say in `unsound_reason` why the sum can't be certified.",
        )
    total = {name: value[0] for name, value in rows.items()}
    before = sparsifier.expand(total, announcement)
    sparsifier.select({name: value * -3 for name, value in rows.items()}, announcement)
    require(
        _is_equal(before, sparsifier.expand(total, announcement)),
        "`expand` gave another result for the same sum after other updates were selected.",
        FUNCTION,
    )
    whole = {name: value.shape for name, value in before.items()} == {name: each.shape for name, each in total.items()}
    require(whole, "`expand` must return an update of the whole model.")


def _check_common_mask(sparsifier: Sparsifier, params: Params, chosen: Params, announcement: Params) -> None:
    require(bool(announcement), "A common mask must be announced, and nothing is.")
    masks = [_mask(_row(chosen, client)) for client in range(CLIENTS)]
    require(
        all(_is_equal(masks[0], mask) for mask in masks[1:]),
        "Two clients left out different coordinates, and `has_common_mask` says that all leave out the same.",
    )
    kept, declared = sum(int(mask.sum()) for mask in masks[0].values()), sparsifier.coordinates(count_values(params))
    require(kept == declared, f"{kept} coordinates were kept, and `coordinates` says {declared}.")


def _check_independence(
    sparsifier: Sparsifier, rows: Params, chosen: Params, announcement: Params, params: Params
) -> None:
    for seed in range(_changes(params)):
        change = {name: value * 0.1 / (1 + seed) for name, value in _block(params, seed=100 + seed).items()}
        moved = sparsifier.select({name: rows[name] + change[name] for name in rows}, announcement)
        by, selection = norms(change), norms({name: moved[name] - chosen[name] for name in moved})
        ratio = float((selection / by).max())
        require(
            ratio <= 1 + ROUNDING,
            f"A change of an update moved what was selected by {ratio:.3g} times itself, and `depends_on_data` says "
            "that it can't.",
            "Declare depends_on_data = True, or choose coordinates without looking at the update.",
        )


def _changes(params: Params) -> int:
    return max(2, min(20, MOST_VALUES // count_values(params)))


def _row(rows: Params, client: int) -> Params:
    return {name: value[client : client + 1] for name, value in rows.items()}


def _mask(rows: Params) -> Params:
    return {name: value != 0 for name, value in rows.items()}


def _is_equal(left: Params, right: Params) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)
