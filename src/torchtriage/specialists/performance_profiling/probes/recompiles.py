"""What a run writes down about frames that torch.compile compiles again and again."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from .events import Recompiles

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LOOKS = frozenset({32, 128, 512, 2048, 8192, 32_768})  # steps after which the compiler's own account is read
_ASKED = 64  # calls of the compiler that are noted
_CHANGING = 3  # lines that change what a guard holds, which are told
_ENOUGH = 4  # compilations of one frame from which it is written down
_PLACE = re.compile(r'File "([^"]+)", line (\d+)')
_VALUE = re.compile(r"'[^']*'|-?\d+(\.\d+)?(e[-+]?\d+)?")
_NAME = re.compile(r"^(\w+)((?:\.\w+)*)")
_INSTALLED = ("/site-packages/", "/dist-packages/", "/torch/")


def recompiles(job: Job) -> None:
    """Frames that were compiled often: how often, and which guard failed most; where the compiler was asked for, and
    the lines that change what the guard holds. Dynamo is read, never imported.
    """
    import torch

    job.spaced()
    told: dict[Any, int] = {}
    asked: list[tuple[str, int]] = []

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in torch
            if len(asked) < _ASKED:
                asked.append(job.caller())
            return original(*args, **kwargs)

        return compile

    def iterated(step: int) -> None:
        if step in _LOOKS:
            look()

    earlier = _account()  # of a process that was compiling before the watch began

    def look() -> None:
        since = [each for each in _account() if not any(each is old for old in earlier)]
        for number, frame in _frames(since).items():
            if frame.compiles >= _ENOUGH and told.get(number) != frame.compiles + frame.given_up:
                told[number] = frame.compiles + frame.given_up
                compiled = next(iter(asked), None) if len(set(asked)) == 1 else None
                job.record(frame.describe(compiled, _changing(job, frame)))

    job.wrap(torch, "compile", make)
    job.wrap(torch.nn.Module, "compile", make)
    job.listen(iterated)
    job.on("ending", look)


def _account() -> list[Any]:
    """What torch's compiler has noted of its last compilations, 64 at most."""
    account = getattr(sys.modules.get("torch._dynamo.utils"), "get_compilation_metrics", None)
    return list(account()) if account is not None else []


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

    @property
    def most(self) -> tuple[str, int]:
        """The kind of guard that failed most, and how often."""
        return next(iter(self.guards.most_common(1)), ("", 0))

    def describe(self, compiled: tuple[str, int] | None, changed: list[tuple[str, int]]) -> Recompiles:
        kind, repeated = self.most
        guard, place = self.example.get(kind, ("", None))
        path, line = place or self.where
        return Recompiles(
            name=self.name, path=_as_written(path), line=line, compiles=self.compiles, seconds=self.seconds,
            given_up=self.given_up, guard=guard, repeated=repeated, compiled=compiled, changed=changed,
        )  # fmt: skip


def _changing(job: Job, frame: _Frame) -> list[tuple[str, int]]:
    """The lines, in the file of FRAME, that change what the guard that failed most holds: that set an attribute of its
    name outside of a constructor; or that call the function, for one of its arguments.
    """
    kind, _ = frame.most
    found = _NAME.match(frame.example[kind][0]) if kind else None
    path, tree = job.path_of(frame.where[0]), job.written.file_at(frame.where[0])
    if found is None or path is None or tree is None:
        return []
    name = found[2].rpartition(".")[2]
    lines = _setting(tree, name) if name else _calling(tree, frame.name)
    return [(path, line) for line in lines[:_CHANGING]]


def _setting(tree: ast.AST, name: str) -> list[int]:
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    made = {id(inner) for each in functions for inner in ast.walk(each)}
    return [
        each.lineno
        for each in ast.walk(tree)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and each.attr == name
        if id(each) not in made
    ]


def _calling(tree: ast.AST, name: str) -> list[int]:
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    return [each.lineno for each in calls if name == getattr(each.func, "id", getattr(each.func, "attr", ""))]


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
