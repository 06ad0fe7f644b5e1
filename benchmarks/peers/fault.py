"""What one program of this folder found in another library."""

from dataclasses import dataclass
from importlib.metadata import version


@dataclass(frozen=True)
class Fault:
    """A fault of a library, measured with the installed version.

    Attributes:
        library: The name of the package.
        title: The fault in one sentence.
        expected: What a user of the library would expect, in numbers.
        measured: What was measured.
        is_seen: Whether the fault is there in this version.
        remark: When it matters, what the library itself says about it, and how its users avoid it.
        ours: What holds the same fault off here: a test, or a refusal.
    """

    library: str
    title: str
    expected: str
    measured: str
    is_seen: bool
    remark: str
    ours: str

    @property
    def version(self) -> str:
        """The installed version of the library."""
        return version(self.library)
