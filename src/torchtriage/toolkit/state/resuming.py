"""From which step a training goes on, what was skipped on the way there, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state.folder import Folder
from torchtriage.toolkit.state.loaders import Loader
from torchtriage.toolkit.state.manifest import Damaged
from torchtriage.toolkit.state.opening import Opened
from torchtriage.toolkit.state.ranks import Ranks
from torchtriage.toolkit.state.registered import Registered


class Skipped(NamedTuple):
    """A step that was not loaded, by the name of its folder."""

    name: str
    why: str


@dataclass
class Loaded:
    """What `load` did. step: None where there was nothing to load. notes: what is not as it was when it was saved."""

    step: int | None = None
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.step is not None


def found(folder: Folder, ranks: Ranks, step: int | None) -> tuple[Opened | None, Loaded]:
    """The newest step that is whole on all ranks, opened; with STEP that one or none."""
    listed, unfinished = ranks.together(lambda: _listed(folder) if ranks.index == 0 else ([], []))[0]
    ended = "a process ended while it wrote or removed step"
    loaded = Loaded(skipped=[Skipped(Path(path).name, f"{ended} {number}") for number, path in unfinished])
    wanted = [Path(path) for number, path in listed if step in (None, number)]
    if step is not None and not wanted:
        there = ", ".join(str(number) for number, _ in listed) or "none"
        raise TriageError(f"there is no step {step}", str(folder.root), f"Name one that is there: {there}.")
    for path in wanted:
        opened, why = _whole(ranks, path)
        if opened is not None:
            loaded.step = opened.manifest.step
            newer = [number for number, _ in listed if step is not None and number > step]
            if newer:
                said = ", ".join(map(str, newer))
                loaded.notes.append(f"newer steps are there ({said}): move them away before the next save")
            return opened, loaded
        loaded.skipped.append(Skipped(path.name, why))
    if wanted:
        said = "; ".join(f"{each.name}: {each.why}" for each in loaded.skipped)
        do = "Restore one from a backup, or name another folder to begin anew."
        raise TriageError(f"no step can be loaded. {said}", str(folder.root), do)
    return None, loaded


def newest(root: Path) -> Any:
    """What rank 0 said of itself in the newest step of ROOT that is whole; None where there is no step."""
    opened, _ = found(Folder(root), Ranks(), None)
    return None if opened is None else opened.read(0)


def fitted(opened: Opened, ranks: Ranks, registered: Registered, without: Sequence[str]) -> dict[str, Any]:
    """This rank's state in OPENED; raises TriageError with all that does not fit what is registered."""
    held: list[dict[str, Any]] = []

    def read() -> None:
        own = ranks.index if opened.ranks == ranks.count else 0
        held.append(opened.read(own))
        if opened.ranks != ranks.count:  # places begin anew
            for name in registered.of(Loader):
                held[0]["parts"].get(name, {})["midway"] = None
        _known(without, {*held[0]["parts"], *registered.parts, "random"}, opened.path)
        problems = _problems(held[0]["parts"], registered, without)
        if problems:
            do = "Build the training as it was, or name what may stay as it is: load(without=[…])."
            where = f"{opened.path}"
            raise TriageError("; ".join(problems), where, do)

    ranks.together(read)
    return held[0]


def _known(without: Sequence[str], names: set[str], path: Path) -> None:
    unknown = [each for each in without if each not in names]
    if unknown:
        do = f"Name some of these: {', '.join(sorted(names))}."
        raise TriageError(f"without={unknown} names no part that was saved or is registered", str(path), do)


def _problems(saved: dict[str, Any], registered: Registered, without: Sequence[str]) -> list[str]:
    here = {name: part for name, part in registered.parts.items() if name not in without}
    problems = [f"{name} is registered, and was not saved" for name in here if name not in saved]
    problems += [
        f"{name} was saved, and is not registered" for name in saved if name not in here and name not in without
    ]
    for name, part in here.items():
        if name in saved:
            problems += [f"{name} {why}" for why in part.misfits(saved[name])]
    return problems


def _listed(folder: Folder) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    return (
        [(number, str(path)) for number, path in folder.steps()],
        [(number, str(path)) for number, path in folder.unfinished()],
    )


def _whole(ranks: Ranks, path: Path) -> tuple[Opened | None, str]:
    """The step at PATH, where each rank finds its share of the files whole; else why not."""
    opened: list[Opened] = []

    def share() -> str:
        try:
            opened.append(Opened(path))
            opened[0].verify(range(ranks.index, opened[0].ranks, ranks.count))
        except Damaged as error:
            return str(error)
        return ""

    said = [why for why in ranks.together(share) if why]
    return (None, said[0]) if said else (opened[0], "")
