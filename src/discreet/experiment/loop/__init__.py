"""The training loop: build a job, play its rounds, and certify what they revealed."""
