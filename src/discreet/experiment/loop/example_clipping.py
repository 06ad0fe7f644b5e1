"""The share of training examples whose gradients the clip shortens: a diagnostic that no guarantee covers."""

import torch

from discreet.algorithms import per_client
from discreet.algorithms.algorithm import ServerState
from discreet.algorithms.input_scale import InputScale
from discreet.algorithms.training.batches import Batch
from discreet.algorithms.training.per_example import count_clipped
from discreet.experiment.job import Job
from discreet.randomness.purposes import Purpose
from discreet.randomness.torch_seed import seed_torch

EXAMPLES = 500  # the most that are looked at, the same ones in every round
PIECE = 32  # of them, whose gradients are in memory at once


def clipped_example_share(job: Job, state: ServerState) -> float | None:
    """Return the share of some training examples whose gradient at this model is longer than the clip.

    None where single examples are not clipped, where every gradient is scaled to the clip, and where real clients keep
    their data. It draws no random number that training uses.
    """
    clip_norm = job.algorithm.trainer.example_clip()
    if clip_norm is None or not job.holds_data:
        return None
    generator = job.key.generator(Purpose.TRAINING_EXAMPLES)
    chosen = torch.randperm(sum(job.data.sizes), generator=generator)[:EXAMPLES].sort().values
    owners = torch.bucketize(chosen, torch.tensor(job.data.sizes).cumsum(0), right=True)
    clips = torch.tensor(per_client.repeat_value(clip_norm, job.population.clients))[owners].to(job.device)
    scale, model = InputScale.find(state.input_scale), {name: value[None] for name, value in state.params.items()}
    clipped = 0
    with seed_torch(0, job.device):  # for layers that draw, such as dropout
        for start in range(0, len(chosen), PIECE):
            rows, norms = chosen[start : start + PIECE], clips[start : start + PIECE]
            inputs, targets = job.data.examples_at(rows)
            if scale is not None:
                inputs, targets = scale.scale_inputs(inputs), scale.scale_targets(targets)
            everyone = torch.ones(1, len(rows), dtype=torch.bool, device=job.device)
            batch = Batch(inputs[None], targets[None], everyone, None)
            clipped += count_clipped(job.model.loss, model, batch, norms[None])
    return clipped / len(chosen)
