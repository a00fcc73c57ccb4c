"""What an answer says, where it has to say it in a form: its route, its cause, its verdict, its program."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_AROUND = " \t>#*_`-."
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")
_HUNK = re.compile(r"^@@", re.M)
_BETWEEN = re.compile(r"\s*(?:,|;|->|→|>|\bthen\b)\s*")


def said(name: str, answer: str) -> str | None:
    """What stands after "NAME:" in the last line that begins so, in small letters; None where no line does."""
    for line in reversed(answer.splitlines()):
        head, colon, rest = line.partition(":")
        if colon and head.strip(_AROUND).upper() == name:
            return rest.strip(_AROUND).lower()
    return None


def route(answer: str) -> tuple[str, ...] | None:
    """The names of the route in their order; None where there is no such line."""
    line = said("ROUTE", answer)
    return None if line is None else tuple(name.strip("*_`. ") for name in _BETWEEN.split(line) if name.strip("*_`. "))


def referral(answer: str) -> str | None:
    """The field that the route names as elsewhere."""
    first = " ".join(route(answer) or ())
    return first.removeprefix("elsewhere").strip(" (:)") if first.startswith("elsewhere") else None


def program(answer: str, before: str) -> str | None:
    """The program that ANSWER makes of BEFORE: the last diff that fits it, or the last whole program; else None."""
    found = [made for language, block in blocks(answer) if (made := _made(language, block, before)) is not None]
    if not found and "\n@@ " in answer:
        found = [made for made in (patched(before, answer),) if made is not None]
    return found[-1] if found else None


def blocks(answer: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks that have an end: language in small letters, text."""
    fence, language, held = "", "", list[str]()
    for line in answer.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, language, held = mark.group(1), mark.group(2).lower(), []
        elif fence and mark and mark.group(1).startswith(fence) and not mark.group(2):
            yield language, "".join(held)
            fence = ""
        else:
            held.append(line)


def changed(before: str, after: str) -> bool:
    """Whether AFTER does anything else than BEFORE says: comments and spaces do not count."""
    return _tree(before) != _tree(after)


def _made(language: str, block: str, before: str) -> str | None:
    if language in ("diff", "patch") or _HUNK.search(block) or block.startswith("--- "):
        return patched(before, block)
    whole = language in ("", "python", "py", "python3") and 2 * len(block) >= len(before)
    return block if whole and names(before) <= names(block) else None


def names(text: str) -> set[str]:
    """The functions and classes that a program defines at its top; a snippet lacks some of them."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return set()
    return {each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def _tree(text: str) -> str:
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return text


def patched(before: str, diff: str) -> str | None:
    """BEFORE after a unified diff; None where a hunk's lines are not there. Numbers of lines only say where to look."""
    lines, offset = before.splitlines(), 0
    hunks = list(_hunks(diff))
    for start, old, new in hunks:
        at = _found(lines, old, start - 1 + offset)
        if at is None:
            return None
        lines[at : at + len(old)] = new
        offset += len(new) - len(old)
    return "\n".join(lines) + "\n" if hunks else None


def _hunks(diff: str) -> Iterator[tuple[int, list[str], list[str]]]:
    start = 0
    old: list[str] = []
    new: list[str] = []
    for line in [*diff.splitlines(), "@@ -0"]:
        if head := re.match(r"@@ (?:-(\d+))?", line):
            while old and new and not old[-1].strip() and not new[-1].strip():  # what follows the last hunk
                del old[-1], new[-1]
            if old or new:
                yield start, old, new
            start, old, new = int(head.group(1) or 1), [], []
        elif line.startswith(("--- ", "+++ ", "\\", "diff ", "index ", "```")):
            continue
        elif line[:1] in ("-", " ", ""):
            old.append(line[1:])
            new += [] if line.startswith("-") else [line[1:]]
        elif line.startswith("+"):
            new.append(line[1:])


def _found(lines: list[str], old: list[str], near: int) -> int | None:
    """Where OLD stands in LINES, nearest to NEAR; spaces at the ends of lines do not count."""
    have, want = [line.rstrip() for line in lines], [line.rstrip() for line in old]
    places = [at for at in range(len(have) - len(want) + 1) if have[at : at + len(want)] == want]
    return min(places, key=lambda at: abs(at - near)) if places else None
