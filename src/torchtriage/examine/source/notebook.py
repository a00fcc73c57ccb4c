"""The code of a notebook as one text, which still knows the cell of each of its lines."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from torchtriage.examine.source.text import Cell, Text, UnreadableError

# Line magics and shell lines; "%%time" and its kin run the cell's own Python.
_MAGIC = re.compile(r"(?m)^([ \t]*)(?:%(?!%)|!|\?|[\w.\[\]]+\?{1,2}[ \t]*$|[\w.\[\]'\", ]+=[ ]?[!%])(?:.*\\\n)*.*$")
_TIMED = re.compile(r"%%(?:time|timeit|capture|prun|memit)\b.*")


class Notebook(Struct, frozen=True):
    """text: the code of all cells that are Python. unread: of each other one where it stands and why."""

    text: Text
    unread: tuple[str, ...]


def read(path: str, data: bytes) -> Notebook:
    """Raises UnreadableError when DATA is no notebook."""
    lines: list[str] = []
    cells: list[Cell] = []
    unread: list[str] = []
    for number, code in _code(path, data):
        error = _error(code)
        if error is not None:
            unread.append(f"{path}, cell {number}, line {error.lineno or 1}: {error.msg}")
            continue
        cells.append(Cell(len(lines) + 1, number))
        lines.extend(code.split("\n"))
    return Notebook(Text(path, "\n".join([*lines, ""]).encode("utf-8", "replace"), tuple(cells)), tuple(unread))


def _code(path: str, data: bytes) -> Iterator[tuple[int, str]]:
    """The code cells of the notebook, by their number among all of its cells, from 1."""
    try:
        book: Any = json.loads(data)  # Jupyter writes NaN, which is no JSON
        cells = book["cells"] if "cells" in book else [cell for sheet in book["worksheets"] for cell in sheet["cells"]]
        for number, cell in enumerate(cells, start=1):
            if cell["cell_type"] == "code":
                source = cell["source"] if "source" in cell else cell["input"]
                text = "".join(source) if isinstance(source, list) else str(source)
                if (code := _python(text)) is not None:
                    yield number, code
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableError(f"{path}:1: no notebook: {error!r}", "Save it again with Jupyter.") from error


def _python(text: str) -> str | None:
    """TEXT with a `pass` for each line of magic, so that lines stay where they are; None for a cell in no Python."""
    text = text.encode("utf-8", "replace").decode()  # half of a sign is no Python
    text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    first = text.lstrip("\n").partition("\n")[0]
    if first.startswith("%%"):
        if not _TIMED.match(first):
            return None
        text = text.replace(first, "pass", 1)
    if _error(text) is None:  # "% 3" may also continue an expression
        return text
    return _MAGIC.sub(lambda found: f"{found[1]}pass" + "\n" * found[0].count("\n"), text)


def _error(code: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxError(str(error) or "nested too deeply")
    return None
