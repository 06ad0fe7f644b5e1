"""The checkpoint of a run: the server's state after the last round that is safe, as one safetensors file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from discreet.algorithms.algorithm import ServerState
from discreet.errors import InvalidInput
from discreet.json_reader import refuse_damage

CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """The server's state after `completed` rounds, and what a bit-identical resume depends on.

    Attributes:
        completed: Number of completed rounds.
        run: The run's id.
        block_size: The number of clients that are trained at once.
        experiment: Digest of the resolved experiment.
        line: The record of the last round.
        state: The server's state.
    """

    completed: int
    run: str
    block_size: int
    experiment: str
    line: dict[str, Any]
    state: ServerState

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        groups = self.state._asdict().items()
        tensors = {f"{group}/{name}": value for group, members in groups for name, value in members.items()}
        about = {
            "done": str(self.completed),
            "run": self.run,
            "block_size": str(self.block_size),
            "experiment": self.experiment,
            "line": json.dumps(self.line),
        }
        return tensor_bytes(tensors, about)

    @classmethod
    def read(cls, path: Path, like: ServerState, run: str, experiment: str) -> "Checkpoint":
        """Read the file, which must be of this run and experiment.

        Its tensors come in the order of `like`, since noise is drawn for one after the other, and on its devices.
        """
        try:
            with safetensors.safe_open(path, framework="pt") as file:
                about = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        except (OSError, safetensors.SafetensorError):
            raise InvalidInput(f"{path} can't be read.", fix="Start a new run.") from None
        damaged = InvalidInput(f"{path} is not a checkpoint of this run.", fix="Restore it, or start a new run.")
        with refuse_damage(damaged):
            whose = (about["run"], about["experiment"])
        if whose != (run, experiment):
            raise InvalidInput(
                f"{path} is of another experiment than resolved.toml beside it.",
                fix="Restore the file that was changed, or start a new run.",
            )
        with refuse_damage(damaged):
            groups = {
                group: {name: _find_like(tensors[f"{group}/{name}"], value) for name, value in members.items()}
                for group, members in like._asdict().items()
            }
            line = dict(json.loads(about["line"]))
            return cls(int(about["done"]), run, int(about["block_size"]), experiment, line, ServerState(**groups))


def _find_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Return the tensor on the device of another one, whose shape and type of numbers it must have."""
    if (tensor.shape, tensor.dtype) != (like.shape, like.dtype):
        raise ValueError
    return tensor.to(like.device)


def tensor_bytes(tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> bytes:
    """Return tensors as the content of a safetensors file. Tensors that share memory are stored separately."""
    copies = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    return safetensors.torch.save(copies, about)
