"""What a pickle names and would call, and what in it only swells: told from its opcodes, of which none is executed."""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from torchtriage.examine.artefact.pickle.nodes import Broken
from torchtriage.examine.artefact.pickle.opcodes import Opcode, Source, opcodes

OPCODES = 300_000
"""That are looked at: less than a second. What a hostile pickle calls, it calls in the first of them or hides well."""
NAMES = 64
"""Names that are kept."""
DEEP = 1000
"""Containers within each other; state that a job writes has some ten."""
SWOLLEN = 10**9
"""Values that a walk through all of it would meet, since containers stand in others many times over."""
SLOT = 2**24
"""A memo slot of that number, in a pickle of fewer opcodes, makes the reader allocate gigabytes for nothing."""
_CALLS = frozenset({"REDUCE", "BUILD", "NEWOBJ", "NEWOBJ_EX", "INST", "OBJ"})
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_MOVES = {  # by name: whether it takes all down to the last mark, what it takes below that, what it leaves
    each.name: (
        "mark" in (kinds := [kind.name for kind in each.stack_before]),
        kinds.index("mark") if "mark" in kinds else len(kinds),
        len(each.stack_after),
    )
    for each in pickletools.opcodes
}


class Name(NamedTuple):
    """A global ("posix.system"), an extension or a persistent id, and the byte of the opcode that asks for it."""

    name: str
    at: int


class Weight(NamedTuple):
    """Of a value on the stack: containers within each other, and values that a walk through it meets."""

    depth: int = 0
    leaves: float = 1.0


_MARK, _LEAF = object(), Weight()


@dataclass
class Inspected:
    """What was found. names: in the order in which they are asked for, each once; calls: opcodes that call or build.

    swells: what takes memory or time out of all proportion, with the byte where it shows. ends: why the reading ended
    before STOP, "" where it did not; at: the byte there. seen: opcodes.
    """

    names: list[Name] = field(default_factory=list)
    calls: int = 0
    swells: list[str] = field(default_factory=list)
    ends: str = ""
    at: int = 0
    seen: int = 0

    @property
    def said(self) -> str:
        """In one sentence; "" where there is nothing to tell."""
        named = ", ".join(f"{each.name} at byte {each.at:,}" for each in self.names[:_SHOWN])
        more = f" and {len(self.names) - _SHOWN} more" if len(self.names) > _SHOWN else ""
        parts = [f"it names {named}{more}" if named else "", *self.swells[:_SHOWN]]
        parts.append(self.ends)
        return "; ".join(part for part in parts if part)


_SHOWN = 3


def inspect(source: Source, most: int = OPCODES) -> Inspected:
    """What the first MOST opcodes of SOURCE ask for."""
    found, machine = Inspected(), _Machine()
    try:
        for each in islice(opcodes(source), most):
            found.seen, found.at = found.seen + 1, each.at
            machine.step(each, found)
    except Broken as broken:
        found.ends, found.at = broken.why, broken.at
    else:
        found.ends = f"after {most:,} opcodes no more were looked at" if found.seen == most else ""
    return found


class _Machine:
    """The stack as far as names need it: strings as they are, of all else its weight."""

    def __init__(self) -> None:
        self._stack: list[object] = []
        self._memo: dict[int, object] = {}
        self._told: set[str] = set()

    def step(self, opcode: Opcode, found: Inspected) -> None:
        name, arg = opcode.name, opcode.arg
        found.calls += name in _CALLS
        if name in _PUTS or name == "MEMOIZE":
            self._put(arg if name != "MEMOIZE" else len(self._memo), opcode, found)
        elif name in _GETS:
            self._stack.append(self._memo.get(arg, _LEAF))
        elif name == "DUP":
            self._stack.append(self._stack[-1] if self._stack else _LEAF)
        else:
            self._named(opcode, found)
            self._moved(opcode, found)

    def _put(self, slot: int, opcode: Opcode, found: Inspected) -> None:
        if isinstance(slot, int) and slot > max(SLOT, found.seen):
            self._swells("slot", f"memo slot {slot:,} at byte {opcode.at:,}", found)
        self._memo[slot] = self._stack[-1] if self._stack else _LEAF

    def _named(self, opcode: Opcode, found: Inspected) -> None:
        """Before the stack moves: STACK_GLOBAL takes its names from there."""
        name = ""
        if opcode.name in {"GLOBAL", "INST"}:
            name = ".".join(str(opcode.arg).split(" ", 1))
        elif opcode.name == "STACK_GLOBAL":
            words = [str(each) if isinstance(each, str) else "?" for each in self._stack[-2:]]
            name = ".".join(words)
        elif opcode.name in {"EXT1", "EXT2", "EXT4"}:
            name = f"extension {opcode.arg}"
        elif opcode.name in {"PERSID", "BINPERSID"}:
            name = "a persistent id"
        if name and name not in self._told and len(found.names) < NAMES:
            self._told.add(name)
            found.names.append(Name(name, opcode.at))

    def _moved(self, opcode: Opcode, found: Inspected) -> None:
        marked, below, left = _MOVES[opcode.name]
        if opcode.name == "MARK":
            self._stack.append(_MARK)
        elif marked or below:
            taken = self._taken(marked, below)
            self._stack.extend(self._weighed(taken, opcode, found) for _ in range(left))
        elif left:
            self._stack.append(opcode.arg if isinstance(opcode.arg, str) else _LEAF)

    def _taken(self, marked: bool, below: int) -> list[object]:
        """What an opcode takes from the stack: down to the last mark, and what it fills below that."""
        taken: list[object] = []
        while marked and self._stack and (top := self._stack.pop()) is not _MARK:
            taken.append(top)
        return taken + [self._stack.pop() for _ in range(min(below, len(self._stack)))]

    def _weighed(self, parts: list[object], opcode: Opcode, found: Inspected) -> Weight:
        weights = [each for each in parts if isinstance(each, Weight)]
        depth = 1 + max((each.depth for each in weights), default=-1)
        leaves = min(sum(each.leaves for each in weights) + len(parts) - len(weights) or 1.0, 1e18)
        if depth > DEEP:
            self._swells("deep", f"more than {DEEP:,} containers within each other by byte {opcode.at:,}", found)
        if leaves > SWOLLEN:
            self._swells("leaves", f"a walk would meet {SWOLLEN:,} values and more by byte {opcode.at:,}", found)
        return Weight(depth, leaves)

    def _swells(self, kind: str, said: str, found: Inspected) -> None:
        if kind not in self._told:
            self._told.add(kind)
            found.swells.append(said)
