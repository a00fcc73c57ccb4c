"""Where names live while a program is executed: modules, calls and class bodies."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from torchtriage.examine.source.execution.values import Class, Function, Value


@dataclass(eq=False)
class File:
    """A file of the project under way. path: as findings name it; real: where it lies, for its own imports."""

    path: str
    real: Path | None
    values: dict[str, Value] = field(default_factory=dict)
    is_open: bool = False
    """A star import has brought what is not known."""
    unknown: dict[str, Value] = field(default_factory=dict)
    """Names that nothing in sight defines: each is one thing wherever it is read."""


@dataclass(eq=False)
class Frame:
    """The names of one call, of a class body, or (with FILE's own values) of a module."""

    file: File
    values: dict[str, Value]
    parent: Frame | None = None
    function: Function | None = None
    owner: Class | None = None
    is_class: bool = False
    outside: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Names that are declared global or nonlocal, and where they live."""
    skipped: list[ast.expr] = field(default_factory=list)
    """What `if kind == "adam": return Adam(…)` would have returned, where nobody knows the kind."""

    def home(self, name: str) -> dict[str, Value] | None:
        """The names among which NAME is found from here; None where it is none of the project's."""
        if name in self.outside:
            return self.outside[name] if name in self.outside[name] else None
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values and (frame is self or not frame.is_class):
                return frame.values
            frame = frame.parent
        return self.file.values if name in self.file.values else None

    def store(self, name: str, value: Value) -> None:
        self.outside.get(name, self.values)[name] = value


class Break(Exception):
    """`break` on its way to its loop."""


class Continue(Exception):
    """`continue` on its way to its loop."""


class Return(Exception):
    """`return` on its way to the call."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Raised(Exception):
    """An error that the program raises itself, on its way to a handler."""


class TooLong(Exception):
    """More steps than any training needs to show what it does."""
