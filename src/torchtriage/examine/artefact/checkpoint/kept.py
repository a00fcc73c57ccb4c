"""A step that toolkit.TrainingState has saved: a manifest of hashes, and for each rank its tensors and state as JSON.

The format is read here by itself: what runs beside a training is no part of what examines files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from torchtriage.examine.artefact.checkpoint.content import Trouble
from torchtriage.examine.artefact.checkpoint.folders import Folder
from torchtriage.examine.artefact.checkpoint.tensors import DEEP, Array, Tensor

NAME = "manifest.json"
_FORM = re.compile(rb'\{"xxh3_128":"([0-9a-f]{32})","body":(.*)\}\n', re.DOTALL)


_NOT_WHOLE = "it is not complete: the save ended before its end, or a byte of it changed"


class Shard(Struct, frozen=True):
    """Of one rank: hashes of its JSON, of the header of its tensors, and of each of them."""

    state: str
    head: str
    tensors: dict[str, str]
    bytes: int


class Whole(Struct, frozen=True):
    """A tensor of which each rank has a part."""

    shape: tuple[int, ...]
    dtype: str


class Manifest(Struct, frozen=True):
    """save: the id that stands in every file of one save."""

    save: str
    step: int
    shards: tuple[Shard, ...]
    sharded: dict[str, Whole] = {}
    written: dict[str, Any] = {}


class Hash(Struct, frozen=True):
    """SIZE bytes of the file at PATH from START on, and the xxh3 that they should have. tensor: "" for none."""

    path: str
    start: int
    size: int
    xxh3: str
    tensor: str = ""


def read(made: Folder) -> Manifest | None:
    """The manifest of the step in MADE, whose tree becomes what was saved; what does not fit together is a trouble."""
    path = f"{made.path}/{NAME}"
    try:
        found = _FORM.fullmatch(Path(path).read_bytes())
        manifest = msgspec.json.decode(found[2], type=Manifest) if found else None
    except (OSError, ValueError):
        manifest = None
    if manifest is None:
        made.troubles = [*(each for each in made.troubles if each.path != path), Trouble(path, _NOT_WHOLE)]
        return None
    made.troubles += _fitting(made, manifest)
    trees = [_state(made, manifest, rank) for rank in range(len(manifest.shards))]
    made.whole = trees[0] if len(trees) == 1 else {f"rank{rank}": tree for rank, tree in enumerate(trees)}
    made.metadata = {"save": manifest.save, "step": manifest.step, "ranks": len(trees), "written": manifest.written}
    return manifest


def _fitting(made: Folder, manifest: Manifest) -> Iterator[Trouble]:
    """Every rank's files: there, of this save, and with the tensors that the manifest names."""
    for rank, shard in enumerate(manifest.shards):
        for name in (f"rank{rank}.safetensors", f"rank{rank}.json"):
            if Path(made.path, name).is_symlink():
                yield Trouble(f"{made.path}/{name}", "it is a link, which could lead anywhere: no save writes one")
            if name not in made.names:
                yield Trouble(f"{made.path}/{name}", "it is not there, and the manifest names it")
        content, told = made.contents.get(f"rank{rank}.safetensors"), made.plain.get(f"rank{rank}.json")
        saves = {"safetensors": content.metadata.get("save") if content is not None else None,
                 "json": told.get("save") if isinstance(told, dict) else None}  # fmt: skip
        for end, save in saves.items():
            if save is not None and save != manifest.save:
                why = (
                    f"it is of save {str(save)[:32]}, and the manifest is of save {manifest.save}: two saves are mixed"
                )
                yield Trouble(f"{made.path}/rank{rank}.{end}", why)
        if content is not None and not content.troubles and content.tree.keys() != shard.tensors.keys():
            yield Trouble(content.path, "it holds other tensors than the manifest names")


def _state(made: Folder, manifest: Manifest, rank: int) -> Any:
    content, told = made.contents.get(f"rank{rank}.safetensors"), made.plain.get(f"rank{rank}.json")
    tensors = content.tree if content is not None and isinstance(content.tree, dict) else {}
    return _decoded(told.get("state"), tensors, manifest.sharded) if isinstance(told, dict) else tensors


def _decoded(value: Any, tensors: dict[str, Tensor], sharded: dict[str, Whole], depth: int = 0) -> Any:
    """What stood there before it was written as JSON; what has no word in it is {"$": word, …}."""
    if depth > 2 * DEEP:
        return None
    if isinstance(value, list):
        return [_decoded(each, tensors, sharded, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    if "$" not in value:
        return {key: _decoded(each, tensors, sharded, depth + 1) for key, each in value.items()}
    return _worded(value, tensors, sharded, depth)


def _worded(value: dict[str, Any], tensors: dict[str, Tensor], sharded: dict[str, Whole], depth: int) -> Any:
    word = value["$"]
    if word == "tensor":
        return _tensor(value, tensors, sharded)
    if word in ("array", "number"):
        made = Array()
        made.dtype, made.shape = str(value.get("dtype")).lstrip("<>|=")[:20], tuple(value.get("shape", ()))
        return made
    inner = _decoded(value.get("is"), tensors, sharded, depth + 1)
    return tuple(inner) if word == "tuple" and isinstance(inner, list) else inner


def _tensor(said: dict[str, Any], tensors: dict[str, Tensor], sharded: dict[str, Whole]) -> Any:
    if whole := sharded.get(str(said.get("whole"))):
        return Tensor(whole.dtype, whole.shape)
    return tensors.get(str(said.get("name")))


def hashes(made: Folder, manifest: Manifest) -> Iterator[Hash]:
    """All that the manifest has a hash of, itself among it."""
    data = Path(made.path, NAME).read_bytes()
    if found := _FORM.fullmatch(data):
        yield Hash(f"{made.path}/{NAME}", found.start(2), found.end(2) - found.start(2), found[1].decode())
    for rank, shard in enumerate(manifest.shards):
        state, content = Path(made.path, f"rank{rank}.json"), made.contents.get(f"rank{rank}.safetensors")
        if state.is_file():
            yield Hash(str(state), 0, state.stat().st_size, shard.state)
        if content is None or content.troubles:
            continue
        first = min((start for start, _, _ in content.places.values()), default=content.size)
        yield Hash(content.path, 0, first, shard.head)
        for name, (start, size, _) in content.places.items():
            if name in shard.tensors:
                yield Hash(content.path, start, size, shard.tensors[name], name)
