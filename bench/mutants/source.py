"""A file of a program as text and as syntax tree, and the edits that an operator may make of it.

Edits are spans of text, so that everything around a fault stays as its author wrote it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Loop = (ast.For, ast.AsyncFor, ast.While)
Located = ast.stmt | ast.expr | ast.keyword | ast.arg | ast.comprehension


@dataclass(frozen=True)
class Edit:
    """The characters from start to end of a file become text."""

    file: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Span:
    """The characters from start to end of a file."""

    file: str
    start: int
    end: int


@dataclass(frozen=True)
class Site:
    """One place where an operator plants its fault.

    edits: what changes. around: what else of the original an expert may point at; of an omission this is the innermost
    loop or function, for what is missing has no line of its own. aids: edits that are no fault, such as an import.
    """

    edits: tuple[Edit, ...]
    around: tuple[Span, ...] = ()
    aids: tuple[Edit, ...] = ()

    def __add__(self, other: Site) -> Site:
        return Site(self.edits + other.edits, self.around + other.around, self.aids + other.aids)

    @property
    def changes(self) -> tuple[Edit, ...]:
        return self.edits + self.aids


class Source:
    """One file: its text, its tree, and the parent of every node."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self.tree = ast.parse(text)
        self._lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._parents: dict[ast.AST, ast.AST] = {}
        self._nodes: list[ast.AST] = []  # each before its children, so that those below a node follow it
        self._ranges: dict[ast.AST, range] = {}
        self._number(self.tree)

    def _number(self, node: ast.AST) -> None:
        first = len(self._nodes)
        self._nodes.append(node)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr_context | ast.operator):  # one object in many places
                self._parents[child] = node
                self._number(child)
        self._ranges[node] = range(first, len(self._nodes))

    def span(self, node: ast.AST) -> Span:
        """Where NODE stands; a function with decorators begins at its def."""
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        start = self._offset(first, getattr(node, "col_offset", 0))
        return Span(self.name, start, self._offset(last, getattr(node, "end_col_offset", 0)))

    def _offset(self, line: int, column: int) -> int:
        """The index of the character at a line (from 1) and a column in bytes of UTF-8, as ast counts them."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[line - 1] + len(text.encode()[:column].decode())

    def code(self, node: ast.AST) -> str:
        span = self.span(node)
        return self.text[span.start : span.end]

    def walk(self, kind: type[Node], within: ast.AST | None = None) -> Iterator[Node]:
        """All nodes of KIND in the order of their text."""
        places = self._ranges[within or self.tree]
        found = [node for node in self._nodes[places.start : places.stop] if isinstance(node, kind)]
        yield from sorted(found, key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement with NODE in it; NODE where it is one."""
        return next(each for each in (node, *self.ancestors(node)) if isinstance(each, ast.stmt))

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """The innermost function around NODE."""
        return next((each for each in self.ancestors(node) if isinstance(each, ast.FunctionDef)), None)

    def loop(self, node: ast.AST) -> ast.For | ast.While | None:
        """The innermost loop around NODE in its own function."""
        for each in self.ancestors(node):
            if isinstance(each, Function):
                return None
            if isinstance(each, ast.For | ast.While):
                return each
        return None

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the suite that STATEMENT is in, itself among them."""
        parent = self._parents[statement]
        for field in ("body", "orelse", "finalbody"):
            suite = getattr(parent, field, None)
            if isinstance(suite, list) and statement in suite:
                return suite
        return [statement]

    def indent(self, statement: ast.stmt) -> str:
        return " " * statement.col_offset

    def scope(self, node: ast.AST) -> tuple[Span, ...]:
        """The innermost loop or function around NODE, where a reader looks for what is missing."""
        found = self.loop(node) or self.function(node)
        return (self.span(found),) if found else ()

    def whole_lines(self, statement: ast.stmt) -> Span:
        """STATEMENT with its indentation and line end, and the decorators of a definition."""
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        return Span(self.name, self._starts[first - 1], self._starts[statement.end_lineno or first])

    def replace(self, node: ast.AST, text: str) -> Site:
        span = self.span(node)
        return Site((Edit(self.name, span.start, span.end, text),))

    def drop(self, statement: ast.stmt) -> Site:
        """Without STATEMENT; `pass` stays where its block had nothing else."""
        around = self.scope(statement)
        if len(self.block(statement)) == 1:
            return Site(self.replace(statement, "pass").edits, around)
        span = self.whole_lines(statement)
        return Site((Edit(self.name, span.start, span.end, ""),), around)

    def before(self, statement: ast.stmt, code: str) -> Site:
        """CODE, of one or more lines, in front of STATEMENT and as deep."""
        start = self.whole_lines(statement).start
        return Site((Edit(self.name, start, start, textwrap.indent(code, self.indent(statement)) + "\n"),))

    def after(self, statement: ast.stmt, code: str) -> Site:
        end = self.whole_lines(statement).end
        return Site((Edit(self.name, end, end, textwrap.indent(code, self.indent(statement)) + "\n"),))

    def dedented(self, statement: ast.stmt) -> str:
        return textwrap.dedent(self.indent(statement) + self.code(statement))

    def unwrap(self, block: ast.With) -> Site:
        """The body of a with statement, one level less deep, without it."""
        first, last = self.whole_lines(block.body[0]).start, self.whole_lines(block).end
        body = textwrap.indent(textwrap.dedent(self.text[first:last]), self.indent(block))
        return Site((Edit(self.name, self.whole_lines(block).start, last, body),), self.scope(block))

    def imported(self, statement: str) -> Site:
        """With an import, where the file has it not yet."""
        if any(self.code(node) == statement for node in self.tree.body):
            return Site(())
        last = [node for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        if last:
            return Site((), (), self.after(last[-1], statement).edits)
        head = self.tree.body[1 if ast.get_docstring(self.tree) else 0]
        return Site((), (), self.before(head, statement).edits)


@dataclass(frozen=True)
class Project:
    """All Python files of one program, by name."""

    name: str
    sources: tuple[Source, ...]

    @classmethod
    def of(cls, name: str, texts: dict[str, str]) -> Project:
        return cls(name, tuple(Source(file, text) for file, text in sorted(texts.items()) if file.endswith(".py")))

    @property
    def texts(self) -> dict[str, str]:
        return {source.name: source.text for source in self.sources}

    def __getitem__(self, file: str) -> Source:
        return next(source for source in self.sources if source.name == file)


def applied(texts: dict[str, str], edits: tuple[Edit, ...]) -> dict[str, str]:
    """The files after the edits, which must not overlap; one of a file that is not there makes it.

    Raises ValueError for edits that overlap.
    """
    found = dict(texts)
    for file in {edit.file for edit in edits}:
        text, end = found.get(file, ""), None
        own = sorted((edit for edit in edits if edit.file == file), key=lambda edit: (edit.start, edit.end))
        for edit in reversed(own):
            if end is not None and edit.end > end:
                raise ValueError(f"{file}: edits overlap at {edit.start}")
            text, end = text[: edit.start] + edit.text + text[edit.end :], edit.start
        found[file] = text
    return found


def moved_offset(edits: tuple[Edit, ...], file: str, offset: int, *, is_end: bool = False) -> int:
    """Where a character of the original is after the edits; what was replaced becomes all of its replacement."""
    shift = 0
    for edit in sorted((each for each in edits if each.file == file), key=lambda each: (each.start, each.end)):
        if edit.end < offset or (edit.end == offset and (is_end or edit.start < edit.end)):
            shift += len(edit.text) - (edit.end - edit.start)
        elif edit.start < offset:
            return edit.start + shift + (len(edit.text) if is_end else 0)
    return offset + shift


def fault_lines(texts: dict[str, str], site: Site) -> dict[str, list[int]]:
    """The lines (from 1) of the mutated files, TEXTS, that an expert may point at."""
    lines: dict[str, set[int]] = {}
    edited = (Span(edit.file, edit.start, edit.end) for edit in site.edits)
    for span in (*edited, *site.around):
        start = moved_offset(site.changes, span.file, span.start)
        end = moved_offset(site.changes, span.file, span.end, is_end=True)
        text = texts[span.file]
        first = text.count("\n", 0, start) + 1
        last = first + text[start:end].rstrip("\n").count("\n")
        lines.setdefault(span.file, set()).update(range(first, last + 1))
    return {file: sorted(found) for file, found in lines.items()}
