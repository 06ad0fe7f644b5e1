"""Which options belong to which mode of `discreet audit`: an option outside its mode is refused, never ignored."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from discreet.errors import InvalidInput

Mode: TypeAlias = Literal["canaries", "round", "membership", "inversion", "labels"]

ATTACKS: tuple[Mode, ...] = ("membership", "inversion", "labels")

# an option that is not listed belongs to every mode
MODES: Mapping[str, tuple[Mode, ...]] = {
    "--canaries": ("canaries",),
    "--estimator": ("canaries",),
    "--confidence": ("canaries",),
    "--runs": ("canaries",),
    "--unit": ("canaries", "round"),
    "--against": ("canaries", "round"),
    "--shadows": ("membership",),
    "--compare": ("membership",),
    "--batch": ("inversion",),
    "--on-data": ("inversion", "labels"),
    "--picture": ("canaries", *ATTACKS),
    "--repetitions": ("round",),
    "--data-dir": ("canaries", *ATTACKS),
}


def choose_mode(attack: Mode | None, *, whole_round: bool) -> Mode:
    """Return the mode that --attack and --round choose; without either, an audit by canaries.

    Raises:
        InvalidInput: Both are given.
    """
    if attack is not None and whole_round:
        raise InvalidInput(
            f"--round belongs to an audit without --attack, and got --attack {attack}.",
            fix="Leave out one of the two.",
        )
    return attack or ("round" if whole_round else "canaries")


def refuse_other_options(mode: Mode, options: Mapping[str, object]) -> None:
    """Refuse options of another mode: what they ask for would silently not be done.

    Args:
        mode: The mode of this audit.
        options: The value of each option by its name; None and False if it was not given.

    Raises:
        InvalidInput: An option was given that belongs to another mode.
    """
    for name, modes in MODES.items():
        if options[name] is None or options[name] is False or mode in modes:
            continue
        owner = _describe(modes)
        if mode == "canaries":
            got, fix = f"no {owner.split()[0]}", f"Add {owner}, or leave out {name}."
        else:
            got, fix = _describe((mode,)), f"Leave out {name}."
        raise InvalidInput(f"{name} belongs to {owner}, and got {got}.", fix=fix)


def _describe(modes: tuple[Mode, ...]) -> str:
    """Name modes by the options that choose them."""
    if "canaries" in modes:
        left_out = [] if "round" in modes else ["--round"]
        left_out += [] if set(ATTACKS) <= set(modes) else ["--attack"]
        return f"an audit without {' and '.join(left_out)}"
    return "--round" if modes == ("round",) else f"--attack {' or '.join(modes)}"
