"""What a server can rebuild of a client's examples: exact without privacy, noise with it."""

from dataclasses import replace

import pytest
import torch

import discreet as d
from discreet.algorithms.recipes.ddp_fedavg import ddp_fedavg
from discreet.api.experiment_jobs import prepare_job
from discreet.audit.attacks.gradient_inversion import FirstLayer, find_first_layer, invert_first_layer
from discreet.audit.attacks.inversion_attack import ANALYTIC, OPTIMISATION, attack_inversion
from discreet.audit.attacks.server_view import RAW, own_view
from discreet.audit.attacks.stand_in_examples import image_shape, own_examples, stand_in_examples
from discreet.errors import InvalidInput
from discreet.experiment.configuration.experiment_file import load_experiment
from discreet.experiment.configuration.run_settings import RunSettings
from discreet.experiment.loop.job_builder import build_job_from_objects
from discreet.experiment.loop.run_guarantees import certify_run
from discreet.randomness.streams import RunKey

KEY = RunKey.from_seed(4)


def prepare(*overrides):
    return prepare_job(load_experiment(None, ("seed=1", "rounds=3", "task.clients=5", *overrides)))


def image_job(module, shape=(1, 12, 12)):
    """Return a job on images of this shape, with the algorithm of the built-in experiment."""
    draw = torch.Generator().manual_seed(0)
    task = d.clients_from_arrays(
        torch.rand(40, *shape, generator=draw), torch.arange(40) % 4, clients=[number % 4 for number in range(40)]
    )
    algorithm = d.pfl(local_steps=1, sampling_rate=0.5, clip_norm=0.5, learning_rate=1.0, noise_multiplier=5.0)
    return build_job_from_objects(
        task,
        module,
        {"loss": None, "metric": None},
        key=KEY,
        algorithm=algorithm,
        privacy=None,
        settings=RunSettings(rounds=2, seed=1),
    )


def test_the_ratio_of_two_gradients_is_the_input():
    inputs, errors = torch.tensor([0.5, -2.0, 3.0]), torch.tensor([0.1, -0.4])
    gradient = {"weight": errors[:, None] * inputs, "bias": errors}
    assert invert_first_layer(gradient, FirstLayer("weight", "bias")).tolist() == pytest.approx([0.5, -2.0, 3.0])


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_raw_update_of_one_example_gives_the_example_away(model):
    found = attack_inversion(prepare(f"model.kind={model}"), None, key=KEY)
    raw = found.reconstructions[0]
    assert found.method == ANALYTIC
    assert raw.view == RAW
    assert torch.allclose(raw.inputs, found.originals, atol=1e-5)
    assert min(raw.psnr(found.value_range)) > 90
    assert raw.verdict() == "recovers the examples"


def test_a_sum_of_clients_blends_their_examples_and_noise_hides_them():
    """Noise alone reaches a mean correlation of 0.45 with four images of 64 pixels less than once in a billion."""
    job = prepare()
    (card, *_) = certify_run(job.terms, job.rounds, None, shared=False)
    found = attack_inversion(job, card, key=KEY)
    _, summed, private = found.reconstructions
    assert summed.view == "a secure sum of 5 clients"
    assert max(summed.psnr(found.value_range)) < 20
    assert sum(private.correlations) / 4 < 0.45
    assert private.verdict() == "can't recover the examples"
    assert "ε" in private.view


def test_a_batch_is_rebuilt_by_optimisation_in_some_order():
    found = attack_inversion(prepare(), None, batch=2, steps=200, key=KEY)
    assert found.method == OPTIMISATION
    assert len(found.originals) == 2
    assert min(found.reconstructions[0].correlations) > 0.95


def test_a_small_convolutional_network_is_inverted_by_optimisation():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 5, stride=2, padding=2),
            torch.nn.Sigmoid(),
            torch.nn.Flatten(),
            torch.nn.Linear(288, 4),
        )
    job = image_job(net)
    assert find_first_layer(job) is None
    assert image_shape(job.task) == (12, 12, 1)
    found = attack_inversion(job, None, steps=60, key=KEY)
    raw, _, private = found.reconstructions
    assert sum(raw.correlations) / 4 > 0.8
    assert sum(private.correlations) / 4 < 0.45
    assert found.to_plain()["shape"] == [12, 12, 1]


def test_inputs_that_a_layer_changes_first_are_not_taken_for_the_examples():
    job = image_job(torch.nn.Sequential(torch.nn.GroupNorm(1, 1), torch.nn.Flatten(), torch.nn.Linear(144, 4)))
    assert find_first_layer(job) is None


def test_own_data_is_attacked_only_if_that_is_asked_for():
    job = prepare()
    found = attack_inversion(job, None, on_data=True, key=KEY)
    starts = torch.tensor(job.task.train.starts[:4])  # one example of each of the first four clients
    assert torch.allclose(found.originals.float(), job.task.train.examples_at(starts)[0])
    assert found.origin == "the clients' own data"
    assert attack_inversion(job, None, key=KEY).origin == "the built-in digits, which are public"


def test_own_examples_are_dealt_client_by_client_and_start_again():
    task = image_job(torch.nn.Linear(7, 4), shape=(7,)).task
    starts = task.train.starts
    wanted = [starts[0], starts[0] + 1, starts[1], starts[1] + 1]
    dealt = own_examples(task, per_client=2, least=10)
    assert torch.equal(dealt.inputs[:4], task.train.examples_at(torch.tensor(wanted))[0])
    assert len(dealt.inputs) == 16
    assert torch.equal(dealt.inputs[8:10], task.train.examples_at(torch.tensor([starts[0] + 2, starts[0] + 3]))[0])


def test_stand_in_images_have_the_shape_and_the_classes_of_the_task():
    job = image_job(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 4)), shape=(3, 16, 16))
    made = stand_in_examples(job.task, torch.Generator().manual_seed(0))
    assert made.inputs.shape[1:] == (3, 16, 16)
    assert int(made.targets.max()) == 3
    assert 0 <= float(made.inputs.min()) < float(made.inputs.max()) <= 1


def test_rows_of_a_table_are_stood_in_for_by_random_rows():
    job = image_job(torch.nn.Linear(7, 4), shape=(7,))
    found = attack_inversion(job, None, key=KEY)
    assert found.shape is None
    assert found.origin == "random rows, which are nobody's"
    assert torch.allclose(found.reconstructions[0].inputs, found.originals, atol=1e-4)


def test_the_server_of_shared_noise_sees_the_sum_of_all_clients():
    job = prepare()
    algorithm = ddp_fedavg(sampling_rate=0.5, clip_norm=0.5, learning_rate=1.0, noise_multiplier=4.0)
    job = replace(job, algorithm=algorithm.for_population(job.population, 650), privacy=None)
    view = own_view(job, None)
    assert view.sees_sum
    assert view.clients == 5
    found = attack_inversion(job, None, key=KEY)
    assert sum(found.reconstructions[2].correlations) / 4 < 0.45


@pytest.mark.parametrize("batch", [0, 5])
def test_a_batch_outside_of_one_to_four_is_refused(batch):
    with pytest.raises(InvalidInput, match="1 to 4 examples"):
        attack_inversion(prepare(), None, batch=batch)
