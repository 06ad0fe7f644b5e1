"""Advice about an experiment before it runs: another recipe that would serve it better, or a longer schedule."""

from collections.abc import Iterator

from discreet.algorithms.training import BroadcastGradients, DpSgd
from discreet.algorithms.training.linear_head import LinearHead
from discreet.errors import InvalidInput
from discreet.experiment.job import Job
from discreet.planning.schedule_warning import schedule_warnings


def advice(job: Job) -> Iterator[str]:
    """Yield a sentence for each recommendation."""
    trainer, published = job.algorithm.trainer, job.algorithm.as_published
    if (isinstance(trainer, BroadcastGradients) or (published and isinstance(trainer, DpSgd))) and _is_linear(job):
        yield (
            'The model is one linear layer: recipe = "convex_local" takes any number of local steps at the noise of '
            'one per round, against observers who see only sums; with noise = "skellam" also against the server, '
            "through a secure sum (docs/notes/local_steps.md)."
        )
    yield from (f"Warning: {sentence}" for sentence in schedule_warnings(trainer, job.rounds))


def _is_linear(job: Job) -> bool:
    """Return whether the proof of the margin clip covers the model: one linear layer with the task's cross-entropy."""
    try:
        LinearHead.detect(job.model.loss, job.params, job.data.inputs[:1][None])
    except InvalidInput:
        return False
    return job.task.kind == "classification"
