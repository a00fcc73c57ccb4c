"""Changes of text that remedies propose: put into the bytes of a file, and kept only where they keep their word."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from torchtriage.core.evidence import Edit
from torchtriage.core.fault import EditSafety
from torchtriage.core.finding import Finding

MOST = 5000
Judge = Callable[[bytes], Sequence[Finding] | None]


class Mended(Struct, frozen=True):
    """One file before and after. done: the findings whose edits stand; refused: those whose edits did not help."""

    path: str
    before: bytes
    after: bytes
    done: tuple[Finding, ...]
    refused: tuple[Finding, ...]


def mended(path: str, data: bytes, judge: Judge, *, unsafe: bool = False) -> Mended:
    """DATA with the edits of its findings, one after the other.

    JUDGE: the findings of a content of PATH; None for one that is no Python. An edit stays only when its finding is
    gone, no other has come, the rest of the file is as it was, and the modules that it names are imported before it.
    """
    now, done, refused = data, [], []
    tried: set[tuple[str, int]] = set()
    found = judge(now) or ()
    for _ in range(MOST):
        finding = next((each for each in found if _edits(each, unsafe) and _key(each, found) not in tried), None)
        if finding is None:
            break
        edits = _edits(finding, unsafe)
        after = changed(now, edits)
        left = judge(after) if all(_is_bound(now, edit) for edit in edits) else None
        if left is not None and _helped(finding, found, left):
            now, found = after, left
            done.append(finding)
        else:
            tried.add(_key(finding, found))
            refused.append(finding)
    return Mended(path, data, now, tuple(done), tuple(refused))


def changed(data: bytes, edits: Sequence[Edit]) -> bytes:
    """DATA with EDITS; raises ValueError where two of them overlap."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        if edit.start < at:
            raise ValueError(f"{edit.path}: two edits overlap at byte {edit.start}")
        parts += [data[at : edit.start], edit.text.encode()]
        at = edit.end
    return b"".join([*parts, data[at:]])


def _edits(finding: Finding, unsafe: bool) -> tuple[Edit, ...]:
    """The edits of the first remedy that may be applied and has some."""
    for remedy in finding.remedies:
        if remedy.edit is EditSafety.SAFE or (unsafe and remedy.edit is EditSafety.UNSAFE):
            own = tuple(dict.fromkeys(e for item in finding.evidence for e in item.edits if e.remedy == remedy.id))
            if own:
                return own
    return ()


def _is_bound(data: bytes, edit: Edit) -> bool:
    """Whether every module that the text of EDIT names is bound there: on its own line already, or for the whole file.

    An import inside another function, after the place, or only for type checkers binds nothing there.
    """
    line = data.count(b"\n", 0, edit.start) + 1
    own = data[data.rfind(b"\n", 0, edit.start) + 1 : edit.end].decode("utf-8", "replace")
    named = {word for word in _ROOT.findall(edit.text) if word not in _ROOT.findall(own)}
    if not named:
        return True
    tree = ast.parse(data)
    imported = {name for node in ast.walk(tree) for name in _imported(node)}
    early = {name for node in _always(tree) if node.lineno < line for name in _imported(node)}
    around = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]  # fmt: skip
    hidden = {name for function in around for name in _local(function)}
    return all(name in early and name not in hidden for name in named & (imported | _MODULES))


def _always(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run whenever the file is imported."""
    for node in tree.body:
        yield node
        if isinstance(node, ast.Try):
            yield from node.body


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)


def _local(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The names that FUNCTION binds itself."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


_ROOT = re.compile(r"(?<![\w.\"'])([A-Za-z_]\w*)(?=\.[A-Za-z_])")
_MODULES = frozenset({"torch", "copy", "math", "os"})


def _helped(finding: Finding, before: Sequence[Finding], after: Sequence[Finding]) -> bool:
    then, now = (Counter(each.fault.slug for each in found) for found in (before, after))
    return now[finding.fault.slug] < then[finding.fault.slug] and not now - then


def _key(finding: Finding, found: Sequence[Finding]) -> tuple[str, int]:
    """A finding among those of the same words in one file, whatever lines they stand in."""
    alike = [each for each in found if each.fingerprint == finding.fingerprint]
    return finding.fingerprint, len(alike) - alike.index(finding)
