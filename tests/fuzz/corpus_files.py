"""The kept corpus: for each parser a folder of inputs, valid ones and those that once made it fail."""

import hashlib
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
VALID = "valid-"  # the beginning of the names of inputs that are read without an error


def kept_inputs(parser: str) -> list[Path]:
    """Return the files that are kept for a parser."""
    return sorted((CORPUS / parser).iterdir())


def keep_input(parser: str, content: bytes) -> Path:
    """Keep an input, under a name that follows from its bytes."""
    path = CORPUS / parser / f"found-{hashlib.sha256(content).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
