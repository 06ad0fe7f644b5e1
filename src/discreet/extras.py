"""The extras of the package: which optional library belongs to which, and an error that says how to install it."""

import importlib
import importlib.util
from types import ModuleType

from discreet.errors import MissingExtra

EXTRAS = {
    "torch": "train",
    "randomgen": "train",
    "matplotlib": "report",
    "cryptography": "secure",
    "pyarrow": "tables",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "flwr": "flower",
    "ray": "ray",
    "dp_accounting": "check",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "optuna": "tune",
    "flint": "verify",
}  # by the name that is imported


def is_installed(library: str) -> bool:
    """Return whether a library of an extra is installed, without importing it."""
    try:
        return importlib.util.find_spec(library) is not None
    except (ModuleNotFoundError, ValueError):  # its import is blocked
        return False


def import_library(name: str, purpose: str = "This") -> ModuleType:
    """Import a library of an extra.

    Args:
        name: The library, or one of its modules.
        purpose: What needs it, as the beginning of a sentence.

    Raises:
        MissingExtra: If it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing_extra(error, purpose) or error from None


def missing_extra(error: ModuleNotFoundError, purpose: str = "This") -> MissingExtra | None:
    """Return the error that names the extra which a failed import needs; None if the library belongs to none."""
    library = (error.name or "").partition(".")[0]
    return missing_library(library, purpose) if library in EXTRAS else None


def missing_library(library: str, purpose: str) -> MissingExtra:
    """Return the error that says what needs a library of an extra, and how to install it."""
    return MissingExtra(
        f"{purpose} needs {library.replace('_', '-')}, which is not installed.",
        fix=f"Install it: pip install 'discreet[{EXTRAS[library]}]'",
    )
