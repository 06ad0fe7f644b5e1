"""Several processes that share a script's runs: each takes every n-th of them."""

import argparse


def part(text: str) -> tuple[int, int]:
    """`3/10`: the third of ten processes."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"must be I/N with I from 1 to N, and got {text!r}")
    return int(number), int(parts)
