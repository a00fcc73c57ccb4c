"""What stands in the place of what a pickle names, and of what it would call: inert, and made of nothing else."""

from __future__ import annotations

from typing import Any


class Named:
    """A global ("collections.OrderedDict") that is not imported. at: the byte of the opcode that asks for it."""

    __slots__ = ("at", "name")

    def __init__(self, name: str, at: int = 0) -> None:
        self.name, self.at = name, at

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Called:
    """What a call would give, not made. state: what BUILD would hand to it; items: what would be put into it."""

    __slots__ = ("args", "items", "name", "state")

    def __init__(self, name: str, args: Any) -> None:
        self.name, self.args = name, args
        self.state: Any = None
        self.items: dict[Any, Any] | list[Any] | None = None

    def __repr__(self) -> str:
        return f"<{self.name}(…)>"


class Broken(Exception):
    """The bytes are no pickle from here on. why: in words, with the byte; at: of the opcode that does not hold."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.why, self.at = why, at


class Unmade(Exception):
    """Raised by a builder for arguments that are not what it is for: the call stays a Called."""
