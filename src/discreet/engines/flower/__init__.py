"""The cohort's sum from real clients over a network: Flower carries the messages. The only place that imports flwr."""
