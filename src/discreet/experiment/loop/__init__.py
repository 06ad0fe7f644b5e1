"""The training loop, and the job that it runs."""
