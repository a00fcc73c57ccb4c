"""A Python file as detectors see it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from torchtriage.core.evidence import Edit, Place
from torchtriage.examine.detector import Sighting, view
from torchtriage.examine.source.events import Written
from torchtriage.examine.source.facts import Call, Facts, Scope
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.names import Names, table
from torchtriage.examine.source.roles import Roles
from torchtriage.examine.source.text import Definition, Elsewhere, Text, definitions, too_deep
from torchtriage.examine.source.trace import Trace
from torchtriage.examine.source.walk import walk

_TRAINS = (b".backward(", b".step(", b".load_state_dict(")


class Script:
    """One file: its text, the facts of the one walk, and what follows from them. Nothing of it is ever executed."""

    def __init__(self, path: str, data: bytes, text: Text | None = None) -> None:
        """Raises UnreadableError when DATA is no Python. TEXT: a text made already, as that of a notebook."""
        self.text = text or Text(path, data)
        self.taken: dict[type, tuple[object, ...]] = {}
        self.mentioned: dict[re.Pattern[bytes], bool] = {}
        """Which words stand anywhere in the files that its execution went into."""
        self.tree = self.text.parse()
        try:
            self.facts: Facts = walk(self.tree)
        except RecursionError as error:
            raise too_deep(path) from error
        self.links = Links(path, self.facts, trains=any(word in data for word in _TRAINS))
        self.names = Names(self.facts, self.links)
        self.trace = Trace(self.facts, self.names)
        self.roles = Roles(self.facts, self.names, self.trace)
        self.written = Written(self.names, self.trace)

    @cached_property
    def hidden(self) -> str | None:
        """What may do the thing that a "missing X" rule looks for, out of this file's sight; None when nothing may."""
        owner = self.names.framework()
        if owner is not None:
            return owner
        return f"from {self.links.unknown_stars[0]} import *" if self.links.unknown_stars else None

    def calls(self, *tails: str) -> Iterator[Call]:
        """The calls whose last word is one of TAILS."""
        for tail in tails:
            yield from self.facts.calls.get(tail, ())

    def name(self, call: Call) -> str:
        """The real name of what is called: "torch.nn.utils.clip_grad_norm_"; "" for a local thing."""
        return self.names.resolve(call.node.func, call.scope)

    def named(self, *names: str) -> Iterator[Call]:
        """The calls of the things with these real NAMES."""
        for name in names:
            yield from (call for tail in self._tails(name) for call in self.calls(tail) if self.name(call) == name)

    def knows(self, call: Call) -> bool:
        """Whether what is called is defined in this file, or belongs to a package that touches nobody's training.

        What stands in another file of the project is followed, but "nothing in this file does it" cannot be said of it.
        """
        own = self.trace.definition(call.node.func, call.scope)
        if own is not None:
            return not isinstance(getattr(own.node, "lineno", 1), Elsewhere)
        if self.trace.is_record(call):
            return True
        known: list[str] = table()["known"]
        if self.name(call).partition(".")[0] in known or self.roles.of_class(self.name(call)) is not None:
            return True
        return call.receiver is not None and bool(self.roles.parts(call.receiver, call.scope))

    def shows(self, made: ast.Call, role: str) -> bool:
        """Whether the thing of that ROLE which MADE constructs is handed to code that cannot be seen from here."""
        return any(
            part.made is made
            for calls in self.facts.calls.values()
            for call in calls
            if not self.knows(call)
            for argument in call.arguments
            for part in self.roles.parts(argument, call.scope)
            if part.role == role
        )

    @property
    def aside(self) -> set[str]:
        """The words by which a thing may be used without being called: attributes and strings."""
        return self.facts.aside

    def _tails(self, name: str) -> list[str]:
        """Under which last words NAME may be called here: its own, and those of `import … as`."""
        last = name.rpartition(".")[2]
        aliases = {store.name for store in self.facts.aliases if store.imported.endswith(f".{last}")}
        return sorted({last, *aliases})

    def seen(self, node: ast.AST, fact: str = "", edits: tuple[Edit, ...] = ()) -> Sighting:
        """A sighting at NODE."""
        return Sighting(self.place(node), fact, edits=edits)

    def place(self, node: ast.AST) -> Place:
        """Where NODE stands, in this file or in one that it imports."""
        line, end = getattr(node, "lineno", 1), getattr(node, "end_lineno", None)
        if isinstance(line, Elsewhere):
            return Place(path=line.path, line=int(line))
        cell, number = self.text.spot(line)
        return Place(
            path=self.text.path,
            line=number,
            column=self.text.column(line, getattr(node, "col_offset", 0)),
            end_line=None if end is None else number + end - line,
            cell=cell,
            anchor=self.text.line(line).strip(),
        )

    def insertion(self, remedy: str, statement: ast.stmt, code: str) -> tuple[Edit, ...]:
        """The edit that puts the line CODE before a simple STATEMENT; none when that does not start its own line."""
        line = statement.lineno
        if not isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign):
            return ()
        if len(self.text.indent(line)) != statement.col_offset:
            return ()
        if line > 1 and self.text.raw(line - 1).rstrip(b"\r\n").endswith(b"\\"):
            return ()
        return self.line_above(remedy, line, code)

    def line_above(self, remedy: str, line: int, code: str) -> tuple[Edit, ...]:
        """The edit that puts CODE on a line of its own above LINE, indented as that is."""
        start = self.text.start(line)
        end = "\r\n" if self.text.raw(line).endswith(b"\r\n") else "\n"
        return self.change(remedy, start, start, f"{self.text.indent(line)}{code}{end}")

    def line_removed(self, remedy: str, line: int) -> tuple[Edit, ...]:
        """The edit that takes out LINE."""
        start = self.text.start(line)
        return self.change(remedy, start, start + len(self.text.raw(line)), "")

    def replaced(self, remedy: str, node: ast.AST, code: str) -> tuple[Edit, ...]:
        """The edit that puts CODE in the place of NODE."""
        return self.change(remedy, *self.text.span(node), code)

    def appended(self, remedy: str, node: ast.AST, code: str) -> tuple[Edit, ...]:
        """The edit that puts CODE right behind NODE."""
        _, end = self.text.span(node)
        return self.change(remedy, end, end, code)

    def change(self, remedy: str, first: int, last: int, code: str) -> tuple[Edit, ...]:
        """The edit that puts CODE in the place of the bytes from FIRST to LAST; none where these are not the file's."""
        is_foreign = first < 0 or bool(self.text.cells)  # the bytes of a notebook are JSON
        if is_foreign or self.text.encoding not in ("utf-8", "utf-8-sig"):
            return ()
        return (Edit(remedy, self.text.path, first, last, code),)

    def source(self, node: ast.AST) -> str:
        """NODE as it stands in the file, on one line."""
        if isinstance(getattr(node, "lineno", 1), Elsewhere):
            return ast.unparse(node)
        lines = [
            self.text.line(number).encode()
            for number in range(getattr(node, "lineno", 1), (getattr(node, "end_lineno", 1) or 1) + 1)
        ]
        lines[-1] = lines[-1][: getattr(node, "end_col_offset", None)]
        lines[0] = lines[0][getattr(node, "col_offset", 0) :]
        return " ".join(line.decode(errors="replace").strip() for line in lines)

    @cached_property
    def definitions(self) -> list[Definition]:
        """Every function and class of the file, those around others first."""
        return definitions(self.tree)

    def definitions_around(self, line: int) -> list[Definition]:
        """The functions and classes that LINE stands in, the innermost last."""
        return [each for each in self.definitions if each.lineno <= line <= (each.end_lineno or 0)]

    @cached_property
    def classes(self) -> tuple[Scope, ...]:
        return tuple(scope for scope in self.facts.scopes if scope.kind == "class")


@view(Script, of=Script)
def _whole(script: Script) -> tuple[Script, ...]:
    return (script,)
