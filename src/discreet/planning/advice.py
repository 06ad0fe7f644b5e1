"""What a person would want to know of an experiment before it runs, and didn't ask."""

from collections.abc import Iterator

from discreet.algorithms.training import BroadcastGradients, DpSgd
from discreet.algorithms.training.linear_head import LinearHead
from discreet.errors import InvalidInput
from discreet.experiment.loop.job import Job


def advice(job: Job) -> Iterator[str]:
    """A sentence each."""
    trainer, published = job.algorithm.trainer, job.algorithm.as_published
    if (isinstance(trainer, BroadcastGradients) or (published and isinstance(trainer, DpSgd))) and _is_linear(job):
        yield (
            'The model is one linear layer: recipe = "convex_local" takes any number of local steps at the noise of '
            'one a round, against whoever sees only sums; with noise = "skellam" also against the server that makes '
            "them, through a secure sum (docs/notes/local_steps.md)."
        )


def _is_linear(job: Job) -> bool:
    """Whether the margin clip's proof covers the model; the loss has to be the task's own cross-entropy."""
    try:
        LinearHead.detect(job.model.loss, job.params, job.data.inputs[:1][None])
    except InvalidInput:
        return False
    return job.task.kind == "classification"
