"""One save, from the tensors in memory to a step that counts: in two phases, so that all ranks' parts count or none."""

from __future__ import annotations

import errno
import secrets
import shutil
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import disk, hashing, manifest, plain, shards
from torchtriage.toolkit.state.folder import Folder
from torchtriage.toolkit.state.manifest import Damaged, Manifest, Piece, Shard, Sharded
from torchtriage.toolkit.state.opening import Opened
from torchtriage.toolkit.state.ranks import Ranks
from torchtriage.toolkit.state.tensors import Part, Tensors, data


class Snapshot(NamedTuple):
    """What a rank has to save: its state, and the tensors to which it refers. again: the step may be there already."""

    step: int
    state: Any
    tensors: Tensors
    again: bool = False


def saved(folder: Folder, ranks: Ranks, snapshot: Snapshot, damaged: Collection[Path] = ()) -> Path:
    """Writes SNAPSHOT as a step of FOLDER, on the disk when this returns; raises TriageError, and leaves the others be.

    DAMAGED: steps that are known to be; they leave their names to new ones.
    """
    place: Path | None = None
    try:
        begun = ranks.together(lambda: _begun(folder, snapshot, damaged) if ranks.index == 0 else None)
        place = Path(begun[0] or "")
        save = place.name.rpartition("-")[2]
        _without_what_rank_0_has(ranks, snapshot.tensors)
        wrote = ranks.together(lambda: _shard(place, ranks, save, snapshot))
        told = ranks.together(
            lambda: _committed(folder, place, snapshot.step, save, wrote) if ranks.index == 0 else None
        )
        return Path(told[0] or "")
    except BaseException as error:
        if place is not None and ranks.index == 0:
            folder.give_up(place)
        if isinstance(error, OSError):
            raise _in_words(error, folder, snapshot, place) from error
        raise


def _begun(folder: Folder, snapshot: Snapshot, damaged: Collection[Path]) -> str:
    step = snapshot.step
    for number, path in folder.steps():
        if snapshot.again and number == step:
            continue
        if path not in damaged and number >= step and _whole(path):
            what = f"step {step} cannot be saved where step {number} is, for no step is ever overwritten"
            raise TriageError(what, str(folder.root), "Move the newer steps away, or save into another folder.")
        if number == step:
            folder.set_aside(path)
    return str(folder.begin(step, secrets.token_hex(8)))


def _whole(path: Path) -> bool:
    try:
        Opened(path).verify()
    except Damaged:
        return False
    return True


def _without_what_rank_0_has(ranks: Ranks, tensors: Tensors) -> None:
    """Replicas are written once: what has the name and the bytes of a tensor of rank 0 is left to it."""
    if ranks.count == 1:
        return
    ours = ranks.together(lambda: {name: hashing.of(data(each)) for name, each in tensors.held.items()})
    for name in [name for name, said in ours[ranks.index].items() if ranks.index and ours[0].get(name) == said]:
        tensors.held.pop(name)


def _shard(place: Path, ranks: Ranks, save: str, snapshot: Snapshot) -> dict[str, Any]:
    """This rank's two files, on the disk; what the manifest says of them."""
    if not place.is_dir():
        do = "Give all ranks one folder that they share."
        raise TriageError(f"rank {ranks.index} does not see what rank 0 has made", str(place.parent), do)
    about = {"save": save, "step": str(snapshot.step), "rank": str(ranks.index)}
    tensors = snapshot.tensors.held
    state = plain.text({"save": save, "rank": ranks.index, "state": snapshot.state})
    beside = place / f"rank{ranks.index}.json"
    head, hashes, size = shards.written(
        place / f"rank{ranks.index}.safetensors", tensors, about, lambda: disk.whole_file(beside, state)
    )
    if ranks.index:  # rank 0 does so before the step counts, and may be another host
        disk.settle(place)
    shard = Shard(hashing.of(state), head, hashes, size)
    parts = {name: part._asdict() | {"here": name in tensors} for name, part in snapshot.tensors.parts.items()}
    return {"shard": msgspec.to_builtins(shard), "parts": parts}


def _committed(folder: Folder, place: Path, step: int, save: str, wrote: list[dict[str, Any]]) -> str:
    made = Manifest(
        format="training state of torchtriage",
        version=1,
        save=save,
        step=step,
        shards=tuple(msgspec.convert(each["shard"], Shard) for each in wrote),
        sharded=_joined([each["parts"] for each in wrote]),
        written=_versions(),
    )
    disk.whole_file(place / manifest.NAME, manifest.packed(made), lambda: disk.settle(place))
    return str(folder.commit(place, step))


def _joined(parts: list[dict[str, dict[str, Any]]]) -> dict[str, Sharded]:
    """The tensors that several ranks hold parts of, with each part once."""
    found: dict[str, Sharded] = {}
    for rank, each in enumerate(parts):
        for name, said in each.items():
            part = Part(*(said[key] for key in Part._fields))
            before = found.get(name)
            box = (tuple(part.offsets), tuple(part.lengths))
            pieces = before.pieces if before else ()
            if box not in {(piece.offsets, piece.lengths) for piece in pieces}:
                pieces = (*pieces, Piece(rank if said["here"] else 0, name, *box))
            found[name] = Sharded(tuple(part.shape), part.dtype, pieces)
    return found


def _of(path: Path, place: Path) -> bool:
    """Whether PATH is the save that was written in PLACE."""
    try:
        return place.name.endswith(Opened(path).manifest.save)
    except Damaged:
        return False


def _versions() -> dict[str, str]:
    from torchtriage import __version__

    torch = sys.modules["torch"]
    return {"torchtriage": __version__, "torch": str(torch.__version__), "python": sys.version.split()[0]}


def _in_words(error: OSError, folder: Folder, snapshot: Snapshot, place: Path | None) -> TriageError:
    """A disk that failed, as what to do about it; the steps before stay as they are. PLACE: where it was written."""
    there = folder.steps()
    if place is not None and snapshot.step in [number for number, path in there if _of(path, place)]:
        what = f"step {snapshot.step} is there, but the disk did not confirm it: {error.strerror or error}"
        return TriageError(what, str(folder.root), "Save again at a later step, and look at the disk.")
    kept = f"Step {there[0][0]} is there as before" if there else "No step was there before"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        need = sum(each.nbytes for each in snapshot.tensors.held.values()) / 1e6
        free = shutil.disk_usage(folder.root).free / 1e6
        what = f"the disk is full: step {snapshot.step} needs {need:,.1f} MB, and {free:,.1f} MB are free"
        return TriageError(what, str(folder.root), f"{kept}. Free some room, or keep fewer steps: keep=1.")
    what = f"step {snapshot.step} could not be saved: {error.strerror or error}"
    return TriageError(what, str(error.filename or folder.root), f"{kept}. Name a folder that can be written.")
