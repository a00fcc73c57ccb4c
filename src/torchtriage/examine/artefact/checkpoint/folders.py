"""Checkpoints that are folders: what the files of one layout are, and which of them are missing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.checkpoint import sharded
from torchtriage.examine.artefact.checkpoint.content import Content, Trouble
from torchtriage.examine.artefact.checkpoint.files import opened
from torchtriage.examine.artefact.checkpoint.sources import inside, reading
from torchtriage.examine.artefact.opened import Unreadable

FILES = 4096
"""Files of a folder that are read."""
JSON = 2**26
"""Bytes of a JSON file that are read."""
_TENSORS = (".safetensors", ".bin", ".pt", ".pth", ".pkl", ".ckpt", ".tar")
_INDEX = ".index.json"
_NOT = re.compile(r"(?:tokenizer|vocab|added_tokens|special_tokens_map|preprocessor_config|chat_template)")
_SHARDED = re.compile(r"(?:pytorch_model_fsdp|optimizer)_\d+\Z|(?:fsdp|global_step)\d*\Z|(?:model|optim|optimizer)\Z")


class Folder(Struct):
    """layout: one of layouts.LAYOUTS. contents: by the names of the files; plain: of JSON files; names: all of them.

    whole: what was saved, where the files together tell it. metadata: what the folder says of itself.
    """

    path: str
    layout: str
    contents: dict[str, Content] = field(default_factory=dict)
    plain: dict[str, Any] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    unsure: list[Inconclusive] = field(default_factory=list)
    names: frozenset[str] = frozenset()
    whole: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def tree(self) -> Any:
        if self.whole is not None:
            return self.whole
        return {**{name: each.tree for name, each in self.contents.items()}, **self.plain}


def read(path: str, layout: str) -> Folder:
    """The checkpoint in the folder at PATH."""
    names = sorted(os.listdir(path))  # noqa: PTH208 - names alone
    made = Folder(path, layout, names=frozenset(names))
    if layout == "DCP":
        _shards(made, "", path)
    for name in names[:FILES]:
        _entry(made, name)
    if len(names) > FILES:
        why = f"{path}: of {len(names):,} files {FILES:,} were read"
        made.unsure.append(Inconclusive("checkpoint/read", why, "Name the others by themselves."))
    for name, told in tuple(made.plain.items()):
        if name.endswith(_INDEX):
            _indexed(made, name, told)
    return made


def _shards(made: Folder, name: str, path: str) -> None:
    shards = sharded.read(path)
    made.contents[name or sharded.NAME] = shards
    made.unsure += shards.unsure


def _entry(made: Folder, name: str) -> None:
    path = os.path.join(made.path, name)  # noqa: PTH118 - the folder as it was named
    if os.path.isdir(path):  # noqa: PTH112
        _inner(made, name, path)
    elif name.endswith(".json") and not _NOT.match(name):
        _json(made, name, path)
    elif name.endswith(_TENSORS):
        try:
            with reading(path) as source:
                made.contents[name] = opened(path, source)
        except Unreadable as error:
            made.troubles.append(Trouble(path, error.why))


def _inner(made: Folder, name: str, path: str) -> None:
    """Folders that belong to it: sharded models and optimizers, DeepSpeed's."""
    if not _SHARDED.match(name) or os.path.islink(path):  # noqa: PTH114
        return
    names = os.listdir(path)  # noqa: PTH208
    if any(each == sharded.NAME or sharded.DATA.search(each) for each in names):
        _shards(made, name, path)
        return
    for each in sorted(names)[:FILES]:
        if each.endswith(_TENSORS):
            with reading(os.path.join(path, each)) as source:  # noqa: PTH118
                made.contents[f"{name}/{each}"] = opened(os.path.join(path, each), source)  # noqa: PTH118


def _json(made: Folder, name: str, path: str) -> None:
    if (size := Path(path).stat().st_size) > JSON:
        why = f"{path}: {size:,} bytes of JSON, more than the {JSON:,} that are read"
        made.unsure.append(Inconclusive("checkpoint/read", why, "Nothing: the tensors are elsewhere."))
        return
    try:
        with reading(path) as source:
            told = msgspec.json.decode(source.at(0, source.size))
    except Unreadable as error:
        made.unsure.append(Inconclusive("checkpoint/read", f"{path}: {error.why}", error.do))
        return
    except (ValueError, RecursionError) as error:
        said = "the file is empty: 0 bytes" if size == 0 else f"it is no JSON: {error}"[:300]
        made.troubles.append(Trouble(path, said))
        return
    if isinstance(told, dict):
        told.pop("log_history", None)
    made.plain[name] = told


def _indexed(made: Folder, name: str, told: Any) -> None:
    """The shards that an index names: all there, and in each the tensors that should be."""
    by_shard: dict[str, list[str]] = {}
    for key, shard in _weights(told):
        by_shard.setdefault(shard, []).append(key)
    for shard, keys in by_shard.items():
        path = inside(made.path, shard)
        content = made.contents.get(shard)
        if not path:
            why = f"{name} refers to {shard[:200]!r}, which leads out of the folder: not read"
        elif shard not in made.names:
            why = f"{shard} is not there: {name} looks for {len(keys):,} tensors in it, as {keys[0]}"
        elif content is not None and not content.troubles and (lost := _lost(content.tree, keys)):
            why = f"{shard} lacks {len(lost):,} of the tensors that {name} looks for in it, as {lost[0]}"
        else:
            continue
        made.troubles.append(Trouble(made.path, why))


def _weights(told: Any) -> Iterator[tuple[str, str]]:
    table = told.get("weight_map") if isinstance(told, dict) else None
    for key, shard in table.items() if isinstance(table, dict) else ():
        if isinstance(shard, str):
            yield str(key), shard


def _lost(tree: Any, keys: Sequence[str]) -> list[str]:
    return [key for key in keys if key not in tree] if isinstance(tree, dict) else []
