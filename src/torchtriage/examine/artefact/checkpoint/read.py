"""Checkpoints read: one for each file, and for each folder that is one. Nothing that a file names is ever imported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from torchtriage.catalog.component import Component
from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.checkpoint.components import Found, components, is_hollow, scheduled
from torchtriage.examine.artefact.checkpoint.content import Content, Trouble
from torchtriage.examine.artefact.checkpoint.files import opened
from torchtriage.examine.artefact.checkpoint.looked import Verified
from torchtriage.examine.artefact.checkpoint.names import Foreign
from torchtriage.examine.artefact.checkpoint.numbers import number
from torchtriage.examine.artefact.checkpoint.sources import Source, reading
from torchtriage.examine.artefact.checkpoint.tensors import Tensor, parts, tensors
from torchtriage.examine.artefact.layouts import layout
from torchtriage.examine.artefact.opened import Unreadable
from torchtriage.examine.artefact.pickle.nodes import Called
from torchtriage.examine.detector import CannotSee, view

if TYPE_CHECKING:
    from torchtriage.examine.artefact.checkpoint.folders import Folder

_STEPS = 16
_NUMBERED = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.(?:safetensors|bin)\Z", re.DOTALL)
_FEW = 20  # below, a scheduler that counts epochs may say one less by chance


class Checkpoint(Struct, frozen=True, dict=True):
    """A file or folder. layout: "file", or one of layouts.LAYOUTS. contents: what its files hold, by their names in it.

    plain: its JSON files. tree: of all of it. found: the parts of a training's state. steps: that the optimizer has
    made, None where it does not say. verdict: of --verify, None where that was not asked for. names: in the folder.
    """

    path: str
    layout: str
    contents: Mapping[str, Content]
    plain: Mapping[str, Any]
    tree: Any
    found: Found
    troubles: tuple[Trouble, ...]
    steps: float | None = None
    verdict: Verified | None = None
    known: Mapping[str, Component] = field(default_factory=dict)
    names: frozenset[str] = frozenset()

    @cached_property
    def tensors(self) -> tuple[tuple[str, Tensor], ...]:
        return tuple(tensors(self.tree))

    @property
    def form(self) -> str:
        """Of a file its own, else the layout."""
        return next(iter(self.contents.values())).form if self.layout == "file" else self.layout

    @property
    def size(self) -> int:
        return sum(each.size for each in self.contents.values())

    @property
    def taken(self) -> int:
        return sum(each.taken for each in self.contents.values())

    @property
    def is_training(self) -> bool:
        """Whether a training is to go on from here: there is the state of an optimizer."""
        return self.found.has("optimizer")

    @property
    def is_hollow(self) -> bool:
        return self.is_training and all(is_hollow(each) for each in self.found.values["optimizer"])

    @property
    def was_scheduled(self) -> bool:
        return any(scheduled(each) for each in self.found.values.get("optimizer", ()))

    @property
    def lacking(self) -> tuple[Component, ...]:
        """The parts that a resume may need and that are not here."""
        return tuple(each for slug, each in self.known.items() if not each.beyond and not self.found.has(slug))

    @property
    def foreign(self) -> Foreign:
        """What its files would run: objects only of those that hold a part of the state, not of a file of options."""
        code: dict[str, int] = {}
        objects: dict[str, int] = {}
        for each in self.contents.values():
            code.update(each.foreign.code)
            if not self.is_options(each):
                objects.update(each.foreign.objects)
        return Foreign(tuple(code.items()), tuple(objects.items()))

    def is_options(self, content: Content) -> bool:
        """A file that is one object without any tensor: transformers' training_args.bin."""
        return isinstance(content.tree, Called) and next(tensors(content.tree), None) is None


class Checkpoints(Struct, frozen=True):
    """All that were read."""

    each: tuple[Checkpoint, ...]
    inconclusive: tuple[Inconclusive, ...] = ()


@view(Checkpoint, of=Checkpoints)
def _each(subject: Checkpoints) -> Iterator[Checkpoint]:
    if not subject.each:
        raise CannotSee("no checkpoint could be read", "Name a file or folder of one.")
    yield from subject.each


@view(Checkpoints, of=Checkpoints)
def _all(subject: Checkpoints) -> Iterator[Checkpoints]:
    yield subject


def read(paths: Sequence[str], verify: bool = False) -> Checkpoints:
    """The checkpoints at PATHS. VERIFY: all their numbers are read, too."""
    made: list[Checkpoint] = []
    unseen: list[Inconclusive] = []
    for path in paths:
        try:
            each, unsure = _folder(path, verify) if os.path.isdir(path) else _file(path, verify)  # noqa: PTH112
        except (Unreadable, OSError) as error:
            why, do = (error.why, error.do) if isinstance(error, Unreadable) else (str(error), "Make it readable.")
            unseen.append(Inconclusive("checkpoint/read", f"{path}: {why}", do))
            continue
        made.append(each)
        unseen += (*unsure, *_unsure(each))
    return Checkpoints(tuple(made), (*unseen, *_without(made)))


def _without(made: Sequence[Checkpoint]) -> Iterator[Inconclusive]:
    """Files that their names number, of which not all are there, and no index that would tell what is missing."""
    several: dict[tuple[str, int], set[int]] = {}
    for each in made:
        if each.layout == "file" and (told := _NUMBERED.match(each.path)):
            several.setdefault((told[1], int(told[3])), set()).add(int(told[2]))
    for (name, count), here in several.items():
        if lost := [number for number in range(1, count + 1) if number not in here]:
            why = (
                f"{name}: {len(here):,} of the {count:,} files that their names tell of were read; without {lost[0]:05}"
            )
            yield Inconclusive("checkpoint/read", why, "Fetch all of them, and their index (….index.json).")


def _file(path: str, verify: bool) -> tuple[Checkpoint, list[Inconclusive]]:
    known = catalog().components
    with reading(path) as source:
        content = opened(path, source)
        found = components(content.tree, known)
        steps = _steps({path: content}, found)
        verdict = _verified(content, source) if verify and source.is_plain else None
        content.taken = source.taken
    unsure = []
    if verify and verdict is None:
        why = f"{path}: it is packed or elsewhere: its numbers were not read"
        unsure.append(Inconclusive("checkpoint/verify", why, "Fetch and unpack it, then read it with --verify."))
    troubles = (*content.troubles, *(verdict.troubles if verdict else ()))
    return Checkpoint(path, "file", {path: content}, {}, content.tree, found, troubles, steps, verdict, known), unsure


def _verified(content: Content, source: Source) -> Verified:
    from torchtriage.examine.artefact.checkpoint import verified  # threads, and later numpy: not to read a directory

    return verified.file(content, source)


def _folder(path: str, verify: bool) -> tuple[Checkpoint, list[Inconclusive]]:
    from torchtriage.examine.artefact.checkpoint import folders, kept, verified

    known = catalog().components
    names = os.listdir(path)  # noqa: PTH208 - names alone
    inner = [name for name in names if os.path.isdir(os.path.join(path, name))]  # noqa: PTH112, PTH118
    made = folders.read(path, layout(names, inner) or "model")
    manifest = kept.read(made) if made.layout == "TrainingState" else None
    tree = _tree(made)
    found = components(tree, known)
    troubles = [*made.troubles, *(trouble for each in made.contents.values() for trouble in each.troubles)]
    steps = _steps(made.contents, found)
    verdict = verified.folder(made, manifest) if verify else None
    troubles += verdict.troubles if verdict else ()
    return Checkpoint(
        path, made.layout, made.contents, made.plain, tree, found, tuple(troubles), steps, verdict, known, made.names
    ), made.unsure


def _tree(made: Folder) -> Any:
    """Of a folder that is one DCP save, what was saved; else by the names of the files."""
    whole = made.contents.get(".metadata")
    if made.whole is None and whole is not None and isinstance(whole.tree, dict):
        others = {name: tree for name, tree in made.tree.items() if name != ".metadata"}
        return {**whole.tree, **others}
    return made.tree


def _steps(contents: Mapping[str, Content], found: Found) -> float | None:
    """How many steps the optimizer has made: the largest of its parameters' counts, of which the first are read."""
    told = [each.steps for each in contents.values() if each.steps is not None]
    for optimizer in found.values.get("optimizer", ()):
        state = optimizer.get("state") if isinstance(optimizer, dict) else None
        rows = list(state.values())[:_STEPS] if isinstance(state, dict) else []
        for row in rows:
            count = row.get("step") if isinstance(row, dict) else None
            if isinstance(count, int | float):
                told.append(float(count))
            elif isinstance(count, Tensor) and (value := _told(contents, count)) is not None:
                told.append(value)
    return max(told, default=None)


def _told(contents: Mapping[str, Content], count: Tensor) -> float | None:
    """Its number is in the file that has its storage; of shards the numbers are not at hand."""
    for content in contents.values():
        name = (
            next((path for path, each in tensors(content.tree) if each is count), None)
            if content.form == "safetensors" or len(contents) > 1
            else ""
        )
        if name is not None and content.form != "DCP":
            with reading(content.path) as source:
                value = number(content, source, count, name)
                content.taken += source.taken
            return value
    return None


def _unsure(each: Checkpoint) -> Iterator[Inconclusive]:
    """What cannot be told of EACH: objects that only their own code can show."""
    options = [content for content in each.contents.values() if each.is_options(content) and content.foreign.objects]
    for content in options if each.layout == "file" else ():
        name = content.foreign.objects[0][0]
        why = f"{content.path}: a pickled {name}: loading it runs the code of that class"
        yield Inconclusive(
            "checkpoint/read", why, "Load it only if you trust who wrote it, with that package installed."
        )
    yield from _counted(each)
    if each.verdict is not None and each.verdict.unchecked:
        why = (
            f"{each.path}: {each.verdict.unchecked:,} bytes have no checksum: that a bit of them flipped cannot be seen"
        )
        yield Inconclusive(
            "checkpoint/verify", why, "Keep a hash beside the file (sha256sum), or save with torch.save."
        )
    if each.layout == "file" and not each.troubles and not each.tensors and not options:
        what = "holds no tensors" if any(True for _ in parts(each.tree)) else "holds nothing"
        yield Inconclusive("checkpoint/read", f"{each.path}: it {what}: no checkpoint", "Name the file of the weights.")


def _counted(each: Checkpoint) -> Iterator[Inconclusive]:
    """Counts of steps that do not agree: of two saves, or of a training that began anew with the old optimizer."""
    said = each.found.plain("step")
    if each.steps is not None and said and each.steps > said >= 1:
        why = f"{each.path}: the optimizer has made {each.steps:,.0f} steps, and the file says step {said:,}"
        yield Inconclusive(
            "checkpoint/counts", why, "See whether the optimizer is of an earlier training, or of another save."
        )
    last = [item.get("last_epoch") for item in each.found.values.get("scheduler", ()) if isinstance(item, dict)]
    if each.steps is not None and each.steps > _FEW and last == [each.steps - 1]:
        why = f"{each.path}: the scheduler has made {last[0]:,} steps and the optimizer {each.steps:,.0f}"
        yield Inconclusive(
            "checkpoint/counts", why, "Save after scheduler.step(), or the resumed schedule is one step late."
        )
