"""The text of one source file: its bytes, its lines as Python counts them, and what cannot be read, in words."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from functools import cached_property

from msgspec import Struct

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Elsewhere(int):
    """A line of another file, which says so wherever it is printed."""

    path: str

    def __new__(cls, line: int, path: str) -> Elsewhere:
        made = super().__new__(cls, line)
        made.path = path
        return made

    def __str__(self) -> str:
        return f"{int(self)} of {self.path.rpartition('/')[2]}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class UnreadableError(Exception):
    """A file that is no Python: why (naming path:line) and what would make it readable."""

    def __init__(self, why: str, unblock: str) -> None:
        super().__init__(why)
        self.why, self.unblock = why, unblock


class Cell(Struct, frozen=True):
    """A cell of a notebook: the line of the whole text at which it starts, and its number; both from 1."""

    start: int
    number: int


class Text:
    """PATH as the user gave it, with forward slashes; DATA, the bytes of the file. Lines and columns count from 1.

    cells: of a notebook, whose DATA is the code of these cells, one below the other.
    """

    def __init__(self, path: str, data: bytes, cells: tuple[Cell, ...] = ()) -> None:
        self.path, self.data, self.cells = path, data, cells

    def spot(self, line: int) -> tuple[int | None, int]:
        """The cell in which LINE stands (None outside of notebooks), and its number there."""
        at = bisect_right(self.cells, line, key=lambda cell: cell.start)
        return (self.cells[at - 1].number, line - self.cells[at - 1].start + 1) if at else (None, line)

    def whole(self, cell: int | None, line: int) -> int:
        """The other way round: the line of the whole text that is LINE of CELL."""
        return next((each.start + line - 1 for each in self.cells if each.number == cell), line)

    def parse(self) -> ast.Module:
        """The tree of the file by the rules of this Python; raises UnreadableError naming the line."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the user's code, at parse time: not ours to print
                tree = ast.parse(self.data, self.path)
                self.data.decode(self.encoding)  # the parser passes over a comment that the interpreter refuses
                return tree
        except SyntaxError as error:
            raise self._unreadable(error) from error
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            raise UnreadableError(
                f"{self.path}:{line}: byte {error.start} is no {error.encoding}",
                "Save it as UTF-8, or name its encoding in the first line.",
            ) from error
        except ValueError as error:
            raise UnreadableError(
                f"{self.path}:1: not Python source: {error}", "Give a text file of Python."
            ) from error
        except (RecursionError, MemoryError) as error:
            raise too_deep(self.path) from error

    def _unreadable(self, error: SyntaxError) -> UnreadableError:
        where = f"{self.path}:{error.lineno or 1}"
        if "codec" in error.msg or "encoding" in error.msg or "utf-8" in error.msg:
            return UnreadableError(f"{where}: {error.msg}", "Save it as UTF-8, or name its encoding in the first line.")
        return UnreadableError(
            f"{where}: {error.msg}", "Mend the syntax, or check with the Python that the file is for."
        )

    @cached_property
    def encoding(self) -> str:
        """By PEP 263: a byte order mark, a coding comment, else UTF-8."""
        return tokenize.detect_encoding(io.BytesIO(self.data).readline)[0]

    @cached_property
    def _starts(self) -> list[int]:
        return [match.start() for match in _LINE.finditer(self.data)]

    def start(self, line: int) -> int:
        """The byte at which LINE starts; -1 where this file has no such line."""
        is_own = 0 < line <= len(self._starts) and not isinstance(line, Elsewhere)
        return self._starts[line - 1] if is_own else -1

    def raw(self, line: int) -> bytes:
        """LINE with its line end, as it stands in the file."""
        start = self.start(line)
        found = _LINE.match(self.data, start) if start >= 0 else None
        return found.group() if found else b""

    def indent(self, line: int) -> str:
        """The blanks with which LINE begins."""
        raw = self.raw(line)
        return raw[: len(raw) - len(raw.lstrip(b" \t"))].decode()

    def line(self, number: int) -> str:
        """The text of a line without its line end."""
        return self.raw(number).rstrip(b"\r\n").decode(self.encoding, "replace").removeprefix("\ufeff")

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The bytes of NODE: its first, and the one behind its last; -1 for one of another file.

        They are right in UTF-8, where the parser's columns are bytes.
        """
        line, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", None) or 1
        if isinstance(line, Elsewhere):
            return -1, -1
        first, behind = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None) or 0
        return self._byte(line, first), self._byte(last, behind)

    def _byte(self, line: int, offset: int) -> int:
        mark = 3 if line == 1 and self.encoding == "utf-8-sig" else 0  # the parser does not count it
        return self.start(line) + mark + offset

    def column(self, line: int, offset: int) -> int:
        """The column of a character that the parser puts OFFSET bytes (of UTF-8) into LINE."""
        return len(self.line(line).encode()[:offset].decode(errors="replace")) + 1


def definitions(tree: ast.AST) -> list[Definition]:
    """Every function and class of TREE, those around others first."""
    return [each for each in ast.walk(tree) if isinstance(each, Definition)]


def too_deep(path: str) -> UnreadableError:
    """For code that no walk can follow to its end."""
    return UnreadableError(f"{path}:1: nested too deeply to be read", "Split the deepest expression or elif chain.")
