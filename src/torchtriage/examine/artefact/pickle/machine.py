"""The containers of a pickle, without what it names: nothing is imported, nothing called but the builders given here.

Work and memory are bounded by the bytes of the pickle and by OPCODES, whatever they say.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any, TypeAlias

from torchtriage.examine.artefact.pickle.moves import SLOTS, STOP, TABLE
from torchtriage.examine.artefact.pickle.nodes import Broken, Called, Named, Unmade

OPCODES = 25_000_000
"""That are followed: of a checkpoint some 45 for each tensor."""
_LINE = 2**16
_PLAIN = (str, float, bool, bytes, type(None))
_MARK = "there is no mark"
Builders: TypeAlias = Mapping[str, Callable[..., Any]]


class Machine:
    """One pickle of DATA, from byte AT on.

    BUILDERS: by name, what makes data of the arguments of a call; PERSISTENT: the same of a persistent id. names: all
    that it names, each with its first byte; called: those of them that it calls or fills. at: the byte after STOP.
    """

    def __init__(
        self, data: bytes, builders: Builders, persistent: Callable[[Any], Any] | None = None, at: int = 0
    ) -> None:
        self.data, self.at, self.builders = data, at, builders
        self.names: dict[str, int] = {}
        self.called: dict[str, int] = {}
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.spare = len(data) - at
        """Elements that builders may still copy: a container that stands in many places is not multiplied."""
        self._persistent = persistent

    def run(self) -> Any:
        """The value; raises Broken with the byte where the pickle does not hold."""
        start, data, table = self.at, self.data, TABLE
        try:
            for _ in repeat(None, OPCODES):
                code = data[self.at]
                self.at += 1
                if code == STOP:
                    return self.stack.pop()
                table[code](self)
        except IndexError:
            ended = self.at >= len(data)
            why = "the pickle ends before its end" if ended else "it takes more from the stack than there is"
            raise self.broken(why) from None
        except (KeyError, TypeError, ValueError, AttributeError, struct.error, OverflowError) as error:
            raise self.broken(f"{type(error).__name__}: {error}"[:200]) from None
        raise Broken(f"more than {OPCODES:,} opcodes from byte {start:,} on", self.at)

    def broken(self, why: str) -> Broken:
        at = min(self.at, len(self.data))
        return Broken(f"damaged at byte {at:,}: {why}", at)

    # arguments

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if size < 0 or len(piece) < size:
            raise self.broken(f"{size:,} bytes are announced, and {len(self.data) - self.at:,} follow")
        self.at += size
        return piece

    def number(self, read: Callable[[bytes, int], tuple[Any, ...]], size: int) -> Any:
        (value,) = read(self.data, self.at)
        self.at += size
        return value

    def line(self) -> bytes:
        end = self.data.find(b"\n", self.at, self.at + _LINE)
        if end < 0:
            raise self.broken("a line without an end")
        piece = self.data[self.at : end]
        self.at = end + 1
        return piece

    # the stack

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        if not self.marks:
            raise self.broken(_MARK)
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def copy(self, size: int) -> None:
        """Asks to copy SIZE elements; raises Unmade when it has been too much."""
        self.spare -= size
        if self.spare < 0:
            raise Unmade

    def named(self, name: str) -> Named:
        self.names.setdefault(name, self.at)
        return Named(name, self.at)

    def call(self, what: Any, args: Any) -> Any:
        """What calling WHAT with ARGS gives: data by one of the builders, else a Called."""
        if (member := _member(what, args)) is not None:
            return self.named(member)
        name = what.name if isinstance(what, Named) else f"{getattr(what, 'name', type(what).__name__)}(…)"
        self.called.setdefault(name, self.at)
        build = self.builders.get(name) if isinstance(what, Named) else None
        given = args if isinstance(args, tuple) else (args,)
        if build is not None:
            try:
                return build(self, *given)
            except (Unmade, TypeError, ValueError, AttributeError, IndexError, OverflowError, KeyError):
                pass  # not what the builder is for
        return Called(name, given)

    def fill(self, target: Any, state: Any) -> None:
        """BUILD."""
        if isinstance(target, Called):
            target.state = state
        elif hasattr(target, "filled"):
            target.filled(state)
        elif isinstance(target, Named):  # it sets attributes of a class or module
            self.called.setdefault(target.name, self.at)

    def put(self, target: Any, pairs: list[Any]) -> None:
        """Keys and values in turns."""
        into = target
        if isinstance(target, Called):
            into = target.items = target.items if isinstance(target.items, dict) else {}
        if not isinstance(into, dict):
            raise self.broken(f"a key is set in a {type(target).__name__}")
        if len(pairs) % 2:
            raise self.broken("a key without a value")
        for at in range(0, len(pairs), 2):
            key = pairs[at]
            into[key if type(key) is str else plain_key(key)] = pairs[at + 1]

    def add(self, target: Any, items: list[Any]) -> None:
        into = target
        if isinstance(target, Called):
            into = target.items = target.items if isinstance(target.items, list) else []
        if not isinstance(into, list):
            raise self.broken(f"an item is appended to a {type(target).__name__}")
        into.extend(items)

    def pid(self, given: Any) -> Any:
        told = self._persistent(given) if self._persistent is not None else None
        if told is None:
            self.called.setdefault("a persistent id", self.at)
            return Called("a persistent id", (given,))
        return told


def plain_key(key: Any) -> Any:
    """KEY, or words for it: hashing may be made to take long, and what a pickle builds may not be hashable."""
    if type(key) is int:
        return key if -SLOTS < key < SLOTS else f"{key:x}"[:40]
    if type(key) in (Called, Named):  # told apart by what they are, not by what is in them
        return key
    if type(key) in _PLAIN:
        return key if type(key) is str else repr(key)[:200]
    if type(key) is tuple and len(key) < 9 and all(type(each) in (*_PLAIN, int) for each in key):
        return "(" + ", ".join(str(plain_key(each)) for each in key) + ")"
    return f"a {type(key).__name__} at {id(key):x}"


def _member(what: Any, args: Any) -> str | None:
    """The name that a call of getattr stands for; Python before 3.11.4 writes the members of an Enum so."""
    match what, args:
        case Named(name="builtins.getattr" | "__builtin__.getattr"), (Named(name=owner), str(member)):
            return f"{owner}.{member}" if member.isidentifier() and not member.startswith("_") else None
    return None
