"""Hostile clients in private runs on digits: what the server's bound and robust aggregation save."""
