"""How a job has ended that a signal has ended."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress


class Death(int):
    """The code of such a job as a shell tells it: 128 + the number of the signal."""

    def follow(self) -> None:
        """Ends this process by the same signal, as whoever waits for the job expects, and without a core of its own.

        Returns where that cannot be: the signal has no default that ends a process.
        """
        number = self - 128
        with suppress(OSError, ValueError):
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        with suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
