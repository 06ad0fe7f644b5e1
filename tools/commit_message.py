"""Check a commit message: a subject of at most 72 characters, a blank line, and a body that says why."""

import sys
from pathlib import Path

LONGEST = 72


def check(message: str) -> str | None:
    """Return what is wrong with the message, or None."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject, *rest = "\n".join(lines).strip().splitlines() or [""]
    if not subject or len(subject) > LONGEST:
        return f"The subject must have 1 to {LONGEST} characters, and has {len(subject)}."
    if subject.endswith(".") or not subject[0].isupper():
        return "The subject must start with a capital letter and end without a full stop."
    if not [line for line in rest if line.strip()] or rest[0].strip():
        return "After a blank line, the body must say why."
    return None


if __name__ == "__main__":
    problem = check(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if problem:
        print(problem)
        sys.exit(1)
