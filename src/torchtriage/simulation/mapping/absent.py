"""What a script asks for and the simulated device does not have: one sentence each, with the line that asks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


class NotSimulated(RuntimeError):
    """A script asked for something that only a real device has; the message says what, and at which line."""


@dataclass(frozen=True)
class Absence:
    """NAME, asked for at FILE and LINE; WHY is the rest of the sentence. ends: the run cannot go on without it."""

    name: str
    why: str
    file: str
    line: int
    ends: bool

    def __str__(self) -> str:
        file = Path(self.file)
        place = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
        return f"{self.name} ({place}:{self.line}): {self.why}"


class Absences:
    """What was asked for so far; each is told once on stderr.

    passed: folders whose code asks on behalf of somebody else.
    """

    def __init__(self, passed: tuple[str, ...]) -> None:
        self.passed = passed
        self.found: list[Absence] = []

    def note(self, name: str, why: str, *, ends: bool = False) -> Absence:
        """Notes that NAME is absent; where the run goes on, WHY tells with what."""
        file, line = self.caller()
        absence = Absence(name, why, file, line, ends)
        if absence not in self.found:
            self.found.append(absence)
            if not ends:  # otherwise the error says it
                sys.stderr.write(f"torchtriage: {absence}\n")
        return absence

    def refuse(self, name: str, why: str) -> NoReturn:
        raise NotSimulated(str(self.note(name, why, ends=True)))

    def refusal(self, name: str, why: str) -> Callable[..., NoReturn]:
        """A function that takes the place of NAME."""

        def refused(*_: Any, **__: Any) -> NoReturn:
            self.refuse(name, why)

        return refused

    def refused_class(self, name: str, why: str) -> type:
        """A class that takes the place of NAME: nothing is one of it, and none can be made."""
        refuse = self.refusal(name, why)
        return type(name.rpartition(".")[2], (), {"__new__": refuse, "__module__": name.rpartition(".")[0]})

    def caller(self) -> tuple[str, int]:
        """The innermost line outside of torch and of ours; ("", 0) where there is none."""
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if not file.startswith(("<", *self.passed)):
                return file, frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return "", 0
