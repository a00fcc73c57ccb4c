"""What runs inside the user's job: hooks on the job's own torch, a clock of steps, and lines written as they happen.

Loaded by file path under a private name, in whatever Python the job has (3.10 or later): standard library and the
job's torch only, imports within the folder are relative, and nothing here ever prints.
"""

from .job import Job
from .start import begin, end

__all__ = ["Job", "begin", "end"]
