"""The server's half of a deployment: one run, begun or gone on with, over whatever carries messages to the clients."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from discreet.deploy.app import App, public_draws
from discreet.deploy.certificates import key_from
from discreet.deploy.site import Site
from discreet.engines.flower.calls import Calls
from discreet.engines.flower.carrier import Carrier
from discreet.engines.flower.engine import FlowerEngine
from discreet.engines.flower.waiting import Waiting
from discreet.errors import InvalidInput
from discreet.experiment import api, keys, preparing, run
from discreet.experiment.config import Flower
from discreet.experiment.job import Job
from discreet.experiment.outcome import Outcome
from discreet.experiment.record import Record
from discreet.experiment.run import Line
from discreet.randomness import RunKey
from discreet.tasks import OwnTable


def waiting(app: App) -> Waiting:
    engine = app.experiment.engine
    assert isinstance(engine, Flower)  # deploy init writes no other
    return Waiting(timeout=engine.timeout, patience=engine.patience)


def serve(site: Site, name: str, carrier: Carrier, say: Callable[[str], None], data_dir: Path | None = None) -> Outcome:
    """Train the deployment's experiment. A run of this name that was stopped goes on after its last round."""
    app, where = App.open(site.app), site.run(name)
    before = Record.open(where) if where.exists() else None
    if before is not None and before.finished():
        raise InvalidInput(f"The run {name!r} is finished.", fix="Name a new one: discreet deploy submit --name …")
    seed = app.experiment.seed
    if seed is not None:
        key = RunKey.seed(seed)
    else:
        key = RunKey.fresh() if before is None else keys.recall(before.identity.id, site.key_dir)
    ready = prepared(site, app, name, key, carrier, say, data_dir)
    watch = _watch(ready, say)
    if before is None:
        say(f"Run {name!r} begins: {ready.rounds} rounds, {ready.population.clients} clients.")
        outcome = run.start(ready, where, None, site.key_dir, watch)
    else:
        say(f"Run {name!r} goes on after round {len(before.rounds())} of {ready.rounds}.")
        outcome = run.resume(ready, before, site.key_dir, watch)
    api.page(where)
    say(f"Run {name!r} is done after {outcome.done} rounds: {where}" if not outcome.stopped else outcome.stopped)
    return outcome


def prepared(
    site: Site,
    app: App,
    name: str,
    key: RunKey,
    carrier: Carrier,
    say: Callable[[str], None],
    data_dir: Path | None = None,
) -> Job:
    """The job whose cohorts are real clients."""
    public = public_draws(app.experiment)
    ready = preparing.from_source(app.source(data_dir), key, declared=app.population, public=public)
    if isinstance(app.experiment.task, OwnTable):  # the server's stand-in: nobody trains on it, so it is tested on
        ready = replace(ready, test=(ready.data.inputs, ready.data.targets))
    engine = app.experiment.engine
    assert isinstance(engine, Flower)
    # A round that was broadcast from and not kept would be made again, with the same noise and other contributors.
    ready = replace(ready, settings=replace(ready.settings, checkpoint_every=1))
    calls = Calls(
        carrier=carrier,
        members=app.members,
        run=_identified(name, key),
        experiment=app.digest,
        key=key_from(site.server / "server.key"),
        say=say,
        timeout=engine.timeout,
    )
    remote = FlowerEngine(calls, ready.algorithm, ready.population, ready.rounds, engine.session_rounds)
    return replace(ready, remote=lambda: remote)


def _identified(name: str, key: RunKey) -> str:
    """The run as clients know it: the same when it goes on, another for each key and name."""
    return hashlib.blake2b(name.encode(), key=key.secret, digest_size=16, person=b"discreet run id").hexdigest()


def _watch(ready: Job, say: Callable[[str], None]) -> run.Watch:
    def watch(line: Line) -> None:
        shown = [f"round {line['round']} of {ready.rounds}", f"{line['clients']} clients", f"{line['seconds']:.2f} s"]
        if "lost" in line:
            shown.append(f"lost: {line['lost']}")
        shown += [f"{name} {value:.4g}" for name, value in line.get("evaluation", {}).items() if value is not None]
        if line.get("epsilon") is not None:
            shown.append(f"ε {line['epsilon']:.4g}")
        say(", ".join(shown))

    return watch
