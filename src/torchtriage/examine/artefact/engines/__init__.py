"""Files of one kind, summed up one by one: in this process, by the cores of this machine, or by those of a cluster.

Map: one file gives one summary, small whatever the file's size. Reduce: all summaries give one noun, in this process.
Which engine has mapped is not seen in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from msgspec import Struct

from torchtriage.core.errors import TriageError
from torchtriage.examine.artefact.opened import Unreadable, is_url

NAMES = ("auto", "one", "local", "ray")
PATIENCE = 1800.0
"""Seconds after which a file that gives nothing is given up: 1 GB of trace takes some 20 s of a core."""


class Work(Struct, frozen=True):
    """function: "module:name"; it takes a path and gives a SHAPE, a Struct with a field path. It raises Unreadable."""

    function: str
    shape: type[Any]


class Engine(Struct, frozen=True):
    """name: one of NAMES. address: of a Ray cluster. workers: how many files at once, None for as many as fit."""

    name: str = "auto"
    address: str | None = None
    workers: int | None = None
    patience: float = PATIENCE


@dataclass(frozen=True)
class Told:
    """What came of one file: a summary, or why not and the way out. lost: what was to read it ended, both times."""

    value: Any = None
    why: str = ""
    do: str = ""
    lost: bool = False


def ready(engine: Engine) -> Engine:
    """ENGINE, where it can be had; raises TriageError where it cannot."""
    if engine.name not in NAMES:
        raise TriageError(f"no engine is called {engine.name!r}", "engine", f"Give one of {', '.join(NAMES)}.")
    if engine.address is not None and engine.name != "ray":
        do = "Give --engine ray with it, or leave the address out."
        raise TriageError(f"an address is for the engine ray, and this one is {engine.name}", "--address", do)
    if engine.name == "ray":
        from torchtriage.examine.artefact.engines.cluster import installed

        installed()
    return engine


def mapped(
    work: Work, paths: Sequence[str], engine: Engine, kept: Callable[[Any], Any] = lambda value: value
) -> list[Told]:
    """One for each of PATHS, in their order. KEPT: what is to be kept of each summary, as soon as it is there.

    Raises TriageError where the engine cannot start.
    """
    from torchtriage.examine.artefact.engines import fitting

    workers = fitting.workers(paths, engine)
    elsewhere = [path for path in dict.fromkeys(paths) if not _only_here(path)] if workers else []
    told: dict[str, Told] = {}
    with suppress(TriageError) if engine.name == "auto" else nullcontext():  # nobody has asked for processes
        for path, each in _elsewhere(work, elsewhere, engine, workers) if elsewhere else ():
            told[path] = _kept(each, kept)
    return [told.get(path) or _kept(_here(resolved(work.function), path), kept) for path in paths]


def _kept(told: Told, kept: Callable[[Any], Any]) -> Told:
    return told if told.value is None else replace(told, value=kept(told.value))


def _elsewhere(work: Work, paths: Sequence[str], engine: Engine, workers: int) -> Iterator[tuple[str, Told]]:
    from torchtriage.examine.artefact.engines import turns

    pool: Any
    if engine.name == "ray":
        from torchtriage.examine.artefact.engines.cluster import Cluster

        pool = Cluster(work, engine.address, engine.workers)
    else:
        from torchtriage.examine.artefact.engines.local import Processes

        pool = Processes(work, workers)
    try:
        yield from turns.taken(paths, pool, engine.patience)
    finally:
        pool.close()


def _here(function: Callable[[str], Any], path: str) -> Told:
    try:
        return Told(function(path))
    except MemoryError:
        return Told(why="there is too little memory to read it", do=ALONE, lost=True)
    except Exception as error:  # noqa: BLE001 - told with its file: the others are read all the same
        return Told(why=said(error)[0], do=said(error)[1])


ALONE = "Read it by itself, where there is more memory, or record fewer steps."


def said(error: Exception) -> tuple[str, str]:
    """Why a file was not read, and the way out."""
    if isinstance(error, Unreadable):
        return error.why, error.do
    return f"reading failed: {error!r}"[:500], "Report it with the file; it is torchtriage's fault."


def resolved(function: str) -> Callable[[str], Any]:
    module, _, name = function.partition(":")
    found: Callable[[str], Any] = getattr(import_module(module), name)
    return found


def _only_here(path: str) -> bool:
    """Whether only this process has it."""
    return is_url(path) and path.startswith("memory:")
