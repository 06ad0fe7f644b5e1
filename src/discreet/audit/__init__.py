"""Attacks on a guarantee: what an attacker really learns, beside what is certified."""
