"""What the operator reads of a run whose process failed by a fault that nobody expected, such as too little memory."""

import errno

from discreet.deploy import superlink
from discreet.deploy.deployment_folder import DeploymentFolder
from discreet.errors import InvalidInput

CONTINUES = "it continues after its last finished round"
STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
NO_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")  # on a CPU torch has no class for it


def describe_failure(root: DeploymentFolder, name: str, error: Exception) -> InvalidInput:
    """Return the error that says why the process of a run failed, and what to do."""
    words = str(error)
    if isinstance(error, OSError) and error.errno in STORAGE:
        return storage_error(root, name, error.strerror or words)
    if isinstance(error, MemoryError) or any(part in words for part in NO_MEMORY):
        return InvalidInput(
            f"The server had not enough memory for the run {name!r}.",
            fix=f"Make memory free, or give the machine more, and start the same name again: {CONTINUES}.",
        )
    first = next(iter(words.splitlines()), "").rstrip(".")
    return InvalidInput(
        f"The process of the run {name!r} failed: {type(error).__name__}{': ' * bool(first)}{first}.",
        fix=f"Start the same name again: {CONTINUES}. If that fails too, look into {superlink.log_path(root)}",
    )


def storage_error(root: DeploymentFolder, name: str, fault: str) -> InvalidInput:
    """Return the error of a run that ended because nothing can be written."""
    return InvalidInput(
        f"The process of the run {name!r} ended, and nothing can be written to {root.server} ({fault}).",
        fix=f"Make room there, or make it writable, and start the same name again: {CONTINUES}.",
    )
