"""What a run writes down about frames that torch.compile compiles again and again."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LOOKS = frozenset({32, 128, 512, 2048, 8192, 32_768})  # steps after which the compiler's own account is read
_ENOUGH = 4  # compilations of one frame from which it is written down
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_VALUE = re.compile(r"'[^']*'|-?\d+(\.\d+)?(e[-+]?\d+)?")
_INSTALLED = ("/site-packages/", "/dist-packages/", "/torch/")


def recompiles(job: Job) -> None:
    """Frames that were compiled often: how often, and which guard failed most. Dynamo is read, never imported."""
    job.spaced()
    told: dict[Any, int] = {}

    def iterated(step: int) -> None:
        if step in _LOOKS:
            look()

    def look() -> None:
        dynamo = sys.modules.get("torch._dynamo.utils")
        account = getattr(dynamo, "get_compilation_metrics", None)
        for number, frame in _frames(account() if account is not None else []).items():
            if frame.compiles >= _ENOUGH and told.get(number) != frame.compiles + frame.given_up:
                told[number] = frame.compiles + frame.given_up
                job.record("recompiles", **frame.facts())

    job.listen(iterated)
    job.on("ending", look)


class _Frame:
    """One function or stretch between two graph breaks: its compilations, and the guards that failed before them."""

    def __init__(self) -> None:
        self.name, self.where = "", ("", 0)
        self.compiles, self.seconds, self.given_up = 0, 0.0, False
        self.guards: Counter[str] = Counter()
        self.example: dict[str, tuple[str, tuple[str, int] | None]] = {}

    def add(self, metrics: Any) -> None:
        if metrics.co_filename is None:  # what torch runs uncompiled from here on has no name in its account
            self.given_up = True
        else:
            self.name, self.where = str(metrics.co_name), (metrics.co_filename, metrics.co_firstlineno or 0)
            self.compiles += 1
            self.seconds += metrics.entire_frame_compile_time_s or 0.0
        reason = getattr(metrics, "recompile_reason", None)  # since torch 2.6
        if reason:
            guard = reason.partition("#")[0].partition("\n")[0].partition(": ")[2].strip()
            kind = _VALUE.sub("_", guard)
            self.guards[kind] += 1
            self.example[kind] = guard[:120], _users(reason)

    def facts(self) -> dict[str, Any]:
        kind, repeated = next(iter(self.guards.most_common(1)), ("", 0))
        guard, place = self.example.get(kind, ("", None))
        path, line = place or self.where
        counts = {"compiles": self.compiles, "repeated": repeated, "seconds": self.seconds}
        return {
            **counts, "given_up": self.given_up, "name": self.name, "guard": guard, "path": _as_written(path),
            "line": line,
        }  # fmt: skip


def _frames(account: Any) -> dict[str, _Frame]:
    """By the number that torch gave the frame: the first in 0/3, its fourth compilation."""
    frames: dict[str, _Frame] = {}
    for metrics in account:
        frames.setdefault(str(metrics.compile_id).rpartition("/")[0], _Frame()).add(metrics)
    return frames


def _users(reason: str) -> tuple[str, int] | None:
    """The innermost line of the user's code in the stack that torch gives with a reason."""
    lines = [(path, int(line)) for path, line in _PLACE.findall(reason)]
    lines = [each for each in lines if not any(part in each[0] for part in _INSTALLED)]
    return lines[-1] if lines else None


def _as_written(path: str) -> str:
    """PATH relative to the working folder where it lies below."""
    from pathlib import Path

    full = Path(path).absolute()
    return str(full.relative_to(Path.cwd()) if full.is_relative_to(Path.cwd()) else full)
