"""Trackers: where the numbers of a run's rounds are also written, such as TensorBoard or MLflow."""
