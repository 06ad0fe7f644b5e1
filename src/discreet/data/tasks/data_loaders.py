"""The dataset behind a DataLoader, if reading it by index gives the examples that the loader would give."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import InvalidInput
from discreet.lazy_torch import torch

BY_INDEX = "Each round draws its own batches, so examples are read by their index."


def indexed_dataset(source: Any, which: str) -> Any:
    """Return a dataset that can be read by index: the one that was passed in, or that of a DataLoader.

    A loader's batch size, shuffling, workers and drop_last are not looked at.

    Args:
        source: A dataset or a DataLoader.
        which: Its name for messages.

    Raises:
        InvalidInput: It has no items with an index, or the loader draws or joins examples in its own way.
    """
    is_loader = isinstance(source, torch.utils.data.DataLoader)
    dataset = source.dataset if is_loader else source
    if isinstance(dataset, torch.utils.data.IterableDataset):
        raise InvalidInput(
            f"{_capital(which)} is an IterableDataset, whose items have no index. {BY_INDEX}",
            fix="Pass a Dataset with __len__ and __getitem__, or read it into arrays for clients_from_arrays.",
        )
    if is_loader:
        _check_loader(source, which)
    is_array = isinstance(dataset, torch.Tensor | np.ndarray | tuple | dict | str)
    if is_array or not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise InvalidInput(
            f"{_capital(which)} must be a torch Dataset or DataLoader, and got an object of the class "
            f"{type(source).__name__}.",
            fix="Pass arrays and tensors to clients_from_arrays.",
        )
    return dataset


def _check_loader(loader: torch.utils.data.DataLoader[Any], which: str) -> None:
    """Refuse a loader that leaves out or repeats examples, which are counted once each, or that may mix them."""
    if (own := _own_sampler(loader)) is not None:
        raise InvalidInput(
            f"{_capital(which)} is a DataLoader with a sampler of its own ({type(own).__name__}). {BY_INDEX}",
            fix="Pass the examples that the client holds: torch.utils.data.Subset(dataset, indices).",
        )
    if loader.collate_fn not in (torch.utils.data.default_collate, torch.utils.data.default_convert):
        name = getattr(loader.collate_fn, "__name__", type(loader.collate_fn).__name__)
        raise InvalidInput(
            f"{_capital(which)} is a DataLoader with a collate_fn of its own ({name}), which may mix the examples of a "
            "batch; then no guarantee holds for one of them.",
            fix="Prepare each example by itself, in the dataset's __getitem__.",
        )
    if type(loader).__iter__ is not torch.utils.data.DataLoader.__iter__:
        raise InvalidInput(
            f"{_capital(which)} is a DataLoader whose class reads in its own way ({type(loader).__name__}). {BY_INDEX}",
            fix="Pass its dataset.",
        )


def _own_sampler(loader: torch.utils.data.DataLoader[Any]) -> Any:
    """Return the sampler that doesn't draw each example once. None if both are usual."""
    usual = (torch.utils.data.SequentialSampler, torch.utils.data.RandomSampler)
    sampler, batches = loader.sampler, loader.batch_sampler
    if batches is not None and type(batches) is not torch.utils.data.BatchSampler:
        return batches
    draws_once = type(sampler) in usual and not getattr(sampler, "replacement", False)
    return None if draws_once and len(sampler) == len(loader.dataset) else sampler  # type: ignore[arg-type]


def _capital(which: str) -> str:
    return which[:1].upper() + which[1:]
