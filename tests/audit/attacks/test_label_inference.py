"""What a server can count of a client's labels: all without privacy, nothing of one example with it."""

from dataclasses import replace

import pytest
import torch
from scipy.stats import binom

from discreet.algorithms.recipes.fedavg import fedavg
from discreet.api.experiment_jobs import prepare_job
from discreet.audit.attacks.label_inference import (
    HIDES_NO_COUNTS,
    ViewAttack,
    attack_labels,
    find_last_bias,
    mean_prediction,
    overlap,
    round_counts,
)
from discreet.audit.attacks.server_view import server_views
from discreet.audit.attacks.stand_in_examples import Victims, stand_in_examples
from discreet.errors import Unsupported
from discreet.experiment.configuration.experiment_file import load_experiment
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.randomness.streams import RunKey

KEY = RunKey.from_seed(4)


@pytest.fixture
def job():
    return prepare_job(load_experiment(None, ("seed=1", "rounds=3", "task.clients=5")))


def test_a_raw_update_gives_the_counts_of_all_labels_away(job):
    found = attack_labels(job, None, key=KEY)
    assert found.guesses[0].counts == found.counts
    assert found.guesses[0].overlap == 1
    assert found.prior_overlap < 0.8
    assert sum(found.guesses[1].counts) == sum(found.counts)
    assert found.guesses[1].overlap < 1


def test_the_counts_of_a_network_are_exact_too():
    job = prepare_job(load_experiment(None, ("seed=1", "rounds=3", "task.clients=5", "model.kind=mlp")))
    found = attack_labels(job, None, key=KEY)
    assert found.guesses[0].overlap > 0.9


def test_labels_of_own_data_are_those_of_the_first_client(job):
    found = attack_labels(job, None, on_data=True, key=KEY)
    labels = job.task.train.examples_at(torch.arange(24))[1]
    assert found.counts == torch.bincount(labels, minlength=10).tolist()
    assert found.guesses[0].counts == found.counts


def test_the_label_of_one_example_is_guessed_at_chance_under_the_noise_of_the_promise(job):
    """300 clients of one example; at chance, as many right guesses come less than once in a million seeds."""
    (card, *_) = certify_run(job.terms, job.rounds, None, shared=False)
    raw, _, private = server_views(job, card)
    generator = torch.Generator().manual_seed(3)
    examples = stand_in_examples(job.task, generator)
    right = {}
    for view in (raw, private):
        attack = ViewAttack(job, view, find_last_bias(job), mean_prediction(job, examples), 1)
        right[view.name] = 0
        for number in range(300):
            one = Victims(examples.inputs[number, None], examples.targets[number, None], "")
            counts = attack.infer(one, 1.0, RunKey.from_seed(number))
            right[view.name] += int(counts.argmax() == one.targets[0])
    assert right[raw.name] == 300
    most = int(binom.isf(1e-6, 300, 0.1))  # under ε-DP a little more than chance is allowed; this bound is stricter
    assert right[private.name] <= most


def test_counts_are_whole_and_add_up_to_the_size_of_the_client():
    assert round_counts(torch.tensor([0.5, 0.31, 0.19]), 10).tolist() == [5, 3, 2]
    assert round_counts(torch.tensor([-1.0, 0.5, 0.5]), 4).tolist() == [0, 2, 2]
    assert overlap(torch.tensor([2, 2]), torch.tensor([3, 1])) == 0.75


def test_a_loss_other_than_cross_entropy_is_refused(job):
    model = replace_loss(job)
    with pytest.raises(Unsupported, match="another loss"):
        attack_labels(replace(job, model=model, algorithm=fedavg(learning_rate=0.1, batch_size=4)), None)


def replace_loss(job):
    def own_loss(outputs, targets):
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    return type(job.model)(job.model.loss.module, "classification", loss=own_loss)


def test_a_guarantee_for_examples_says_that_it_hides_no_counts(job):
    (card, *_) = certify_run(job.terms, job.rounds, None, shared=False)
    assert card.unit == "example"
    assert attack_labels(job, card, key=KEY).sentences()[-1] == HIDES_NO_COUNTS
    assert HIDES_NO_COUNTS not in attack_labels(job, None, key=KEY).sentences()
