"""What runs inside the user's job: hooks on the job's own torch, a clock of steps, and lines written as they happen.

Loaded by file path under a private name, in whatever Python the job has (3.10 or later): standard library and the
job's torch only, imports within the folder are relative, and nothing here ever prints.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job import Job
    from .start import begin, end

__all__ = ["Job", "begin", "end"]


def __getattr__(name: str) -> Any:
    """On first use: whoever reads a record takes the events from here, and nothing of what places hooks."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".start" if name != "Job" else ".job", __name__), name)
