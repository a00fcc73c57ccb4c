"""What the callbacks of all frameworks do: a watch that begins with the training and is judged at its end."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.watching import Watch, watch

if TYPE_CHECKING:
    from torchtriage.core.case import Case


class Around:
    """Takes what `torchtriage.toolkit.watch` takes; see there. A second training begins anew, in its own folder."""

    def __init__(
        self,
        out: str | Path | None = None,
        symptom: str | None = None,
        *,
        steps: int | None = None,
        quiet: bool = False,
    ) -> None:
        super().__init__()
        self._asked = (out, symptom, steps, quiet)
        self._watch: Watch | None = None
        self._open = False

    @property
    def case(self) -> Case:
        """What the training showed; raises TriageError until it has ended."""
        if self._watch is None:
            raise TriageError("no training has begun", "TriageCallback", "Read the case after the training.")
        return self._watch.case

    @property
    def folder(self) -> Path | None:
        """Where the record is, once the training has begun."""
        return self._watch.folder if self._watch is not None else None

    def begin(self) -> None:
        """The training begins; raises TriageError as `watch` does."""
        self.end()
        out, symptom, steps, quiet = self._asked
        self._watch = watch(out, symptom, steps=steps, quiet=quiet).__enter__()
        self._open = True
        atexit.register(self._left_open)

    def end(self, error: BaseException | None = None) -> None:
        """The training has ended, with ERROR or well."""
        if self._open and self._watch is not None:
            self._open = False
            atexit.unregister(self._left_open)
            self._watch.__exit__(type(error) if error is not None else None, error, None)

    def _left_open(self) -> None:
        """At the interpreter's end: an error that nobody told of has just been printed."""
        self.end(getattr(sys, "last_value", None))
