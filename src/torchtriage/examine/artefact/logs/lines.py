"""A log taken apart into lines, of which only those are looked at that can matter; and the rank that each names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

LONGEST = 2**14
"""Bytes of a line that are looked at."""
WORDS = (
    b"Traceback", b"Error", b"error: ", b"us error", b"xception", b"Interrupt", b"Warning: ", b"NCCL ", b"exitcode",
    b"oot Cause", b"oom", b"out-of-memory", b"Killed", b"ut of memory", b"CANCELLED", b"tion fault", b"core dumped",
    b"terminate called", b"what()", b"NVRM", b"ssertion", b".cpp:", b"atchdog", b"No space left", b"torch._dynamo",
    b"Failures:", b"Exceeded ", b"terminated with", b"return code", b"died with",
    b"[rank=", b" 137", b"SIG", b"killed ", b"EADDRINUSE", b"corrupt", b"free(): ",
    b"DataLoader worker", b".exc.", b"errors.", b"zipfile.",
)  # fmt: skip
"""A line without any of these says nothing of an end."""
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|.)")
_PREFIX = re.compile(
    r"(?:\[(?:rank|default|trainer|worker)(?P<rank>\d{1,6})\]:\s?|\[\d{1,4},(?P<mpi>\d{1,6})\]\s?<\w+>:\s?|"
    r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[\d.,Z]* \[rank(?P<dated>\d{1,6})\]\s?)"
)
_SOURCE = re.compile(
    r"\((?:[A-Za-z_][\w.<>:/-]{0,80} )?(?P<pid>pid=\d{1,9}(?:, ip=[\w.:-]{1,60})?)\)\s?|"  # Ray
    r"\[(?P<pod>pod/[\w.-]{1,250}(?:/[\w.-]{1,250})?)\]\s|"  # kubectl logs --prefix
    r"(?P<service>[\w.-]{1,60}-\d{1,4}) {1,40}\| |"  # docker compose
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?"  # what containers log
)
_TOLD = re.compile(r"\[rank=(\d{1,6}), world_size=\d{1,6}\]")
Key = int | str | None
"""Who writes: a rank, else a process by what stands before its lines, else nobody that is told."""
_LABEL = re.compile(r"\s{0,5}(\d{1,6}): ")
_NAMED = re.compile(r"(?:^|[^a-zA-Z])(?:global_?)?rank[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)
_STREAM = frozenset({"stdout.log", "stderr.log", "stdout", "stderr", "error.json"})


def hits(body: bytes, words: Iterable[bytes]) -> list[tuple[int, int]]:
    """Start and end of the lines in BODY that hold one of WORDS, in order."""
    found: dict[int, int] = {}
    for word in words:
        low, at = 0, body.find(word)
        while at >= 0:
            start = max(body.rfind(b"\n", low, at), body.rfind(b"\r", low, at), low - 1) + 1
            end = end_of(body, at)
            found[start] = end
            low, at = end + 1, body.find(word, end)
    return sorted(found.items())


def end_of(body: bytes, at: int) -> int:
    """Where the line at AT ends; what a progress bar writes over is a line of its own."""
    over = body.find(b"\r", at, at + LONGEST)
    line = body.find(b"\n", at) if over < 0 else body.find(b"\n", at, over)
    return line if line >= 0 else over if over >= 0 else len(body)


def plain(line: bytes) -> str:
    """LINE as text without the colours of a terminal."""
    text = line[:LONGEST].decode("utf-8", "replace").rstrip("\r")
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def of_rank(text: str, labelled: bool) -> tuple[Key, str]:
    """Who wrote a line, as it says before its words, and the words. LABELLED: `srun --label` numbered the lines."""
    rank: int | None = None
    source: str | None = None
    if labelled and (label := _LABEL.match(text)):
        rank, text = int(label[1]), text[label.end() :]
    while found := _PREFIX.match(text) or _SOURCE.match(text):
        named = next((group for group in found.groups() if group is not None), None)
        if found.re is _PREFIX:
            rank = int(named or 0)
        else:
            source = named or source
        text = text[found.end() :]
    return source if rank is None else rank, text


def told_rank(text: str) -> int | None:
    """The rank that a process says it has, as Ray's workers do."""
    found = _TOLD.search(text) if "[rank=" in text else None
    return int(found[1]) if found else None


def is_labelled(head: bytes) -> bool:
    """Whether `srun --label` wrote the lines of HEAD: all but few begin with a number of at least two tasks."""
    lines = [plain(line) for line in head.split(b"\n")[:200] if line.strip()]
    labels = [found[1] for line in lines if (found := _LABEL.match(line))]
    return len(set(labels)) > 1 and len(labels) >= 0.9 * len(lines)


def rank_of_file(path: str) -> int | None:
    """The rank that a file's name tells: rank3.log, or 3/stderr.log as torchrun writes it."""
    parts = PurePath(path).parts
    if len(parts) > 1 and parts[-1] in _STREAM and parts[-2].isdecimal():
        return int(parts[-2][:6])
    found = _NAMED.findall(parts[-1]) if parts else []
    return int(found[-1]) if found else None
