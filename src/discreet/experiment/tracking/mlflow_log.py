"""The tracker for MLflow: metrics by round, and the guarantee as tags. It needs `discreet[mlflow]`."""

import time
from collections.abc import Mapping
from typing import Any

from discreet.experiment.tracking.number_writer import TrackedRun
from discreet.extras import import_library

PURPOSE = "The tracker mlflow"
LONGEST = 5000  # letters of a tag
ID_FILE = "mlflow_run.txt"  # in the run directory: a resumed run goes on in the same run of MLflow


class MlflowLog:
    """A run of MLflow, on a server or in a database, as MLflow's own client reaches it."""

    def __init__(self, address: str | None, experiment: str, run: TrackedRun) -> None:
        self._client: Any = import_library("mlflow.tracking", PURPOSE).MlflowClient(tracking_uri=address)
        self._entities: Any = import_library("mlflow.entities", PURPOSE)
        self._is_finished = False
        kept = run.directory / ID_FILE
        if run.first_round > 1 and kept.is_file():
            self._id = kept.read_text(encoding="utf-8").strip()
            self._client.update_run(self._id, status="RUNNING")
            return
        known = self._client.get_experiment_by_name(experiment)
        number = self._client.create_experiment(experiment) if known is None else known.experiment_id
        self._id = str(self._client.create_run(number, run_name=run.directory.name).info.run_id)
        self._client.log_param(self._id, "rounds", run.rounds)
        kept.write_text(f"{self._id}\n", encoding="utf-8")

    def write(self, round: int, numbers: Mapping[str, float]) -> None:
        now = int(1000 * time.time())
        metrics = [self._entities.Metric(name, value, now, round) for name, value in numbers.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def finish(self, facts: Mapping[str, str]) -> None:
        for name, text in facts.items():
            self._client.set_tag(self._id, name, text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")
        self._is_finished = True

    def close(self) -> None:
        self._client.set_terminated(self._id, status="FINISHED" if self._is_finished else "KILLED")
