"""A folder of torch.distributed.checkpoint: .metadata tells what lies where in the .distcp files of the ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.checkpoint.content import Content, run
from torchtriage.examine.artefact.checkpoint.files import opened
from torchtriage.examine.artefact.checkpoint.names import Foreign
from torchtriage.examine.artefact.checkpoint.numbers import number
from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source, inside, reading
from torchtriage.examine.artefact.checkpoint.tensors import Tensor, dtype_of, sizes
from torchtriage.examine.artefact.opened import Unreadable
from torchtriage.examine.artefact.pickle.machine import plain_key
from torchtriage.examine.artefact.pickle.nodes import Called, Unmade

NAME = ".metadata"
DATA = re.compile(r"__\d+_\d+\.distcp\Z")
ITEMS = 400
"""Values beside tensors (numbers, strings) that are read from the data files, each a small pickle."""
_STEPS = 64
_SMALL = 2**16
_LATER = 2.0  # seconds by which a data file may be younger: of a save, .metadata is written last


class Item(Struct, frozen=True):
    """What the metadata say of one piece of one entry."""

    name: str
    file: str
    start: int
    size: int
    index: int | None


class Shards(Content):
    """items: the pieces in the data files. homes: by flattened name the dictionary that holds it, and its key there.
    unsure: what may be wrong, and what would tell.
    """

    items: tuple[Item, ...] = ()
    homes: dict[str, tuple[dict[Any, Any], Any]] = field(default_factory=dict)
    unsure: list[Inconclusive] = field(default_factory=list)


def read(folder: str) -> Shards:
    """The shards in FOLDER; what its data files should hold is held against their sizes."""
    path = os.path.join(folder, NAME)  # noqa: PTH118 - the folder as it was named
    made = Shards(folder, "DCP", 0)
    files = sorted(name for name in os.listdir(folder) if DATA.search(name))  # noqa: PTH208
    made.size = sum(_size(os.path.join(folder, name)) for name in files)  # noqa: PTH118
    try:
        with reading(path) as source:
            _metadata(made, source)
            made.taken += source.taken
    except (Unreadable, Damaged) as error:
        begun = any(name.startswith(f"{NAME}.") for name in os.listdir(folder))  # noqa: PTH208
        rest = " and a .metadata that was begun" if begun else ""
        made.wrong(f"{len(files):,} data files{rest}, and no whole {NAME}, which a save writes last: {error.why}")
        return made
    _files(made, folder, path)
    _values(made, folder)
    return made


def _size(path: str) -> int:
    return Path(path).stat().st_size


def _metadata(made: Shards, source: Source) -> None:
    if source.size == 0:
        raise Damaged("it has 0 bytes")
    if source.size > 2**28:
        raise Damaged(f"it has {source.size:,} bytes")
    run(made, source.at(0, source.size))
    if made.troubles:
        raise Damaged(made.troubles.pop().why)
    state = getattr(made.tree, "state", None)
    if not isinstance(state, dict) or not isinstance(state.get("state_dict_metadata"), dict):
        raise Damaged("it holds no state_dict_metadata")
    paths = state.get("planner_data")
    rows = {str(name): _row(each) for name, each in state["state_dict_metadata"].items()}
    _nest(made, rows, paths if isinstance(paths, dict) else {})
    made.items = tuple(_items(state.get("storage_data")))
    said = getattr(state.get("storage_meta"), "state", None)
    made.metadata = {"save_id": said.get("save_id")} if isinstance(said, dict) else {}


def _row(each: Any) -> Any:
    """A Tensor for what is one; for a value that lies in a data file, None for now."""
    state = each.state if isinstance(each, Called) else None
    if not isinstance(state, dict) or "size" not in state:
        return None
    told = getattr(state.get("properties"), "state", None)
    dtype = told[0] if isinstance(told, tuple) and told else told.get("dtype") if isinstance(told, dict) else None
    try:
        return Tensor(dtype_of(dtype), sizes(state["size"]))
    except Unmade:
        return None


def _nest(made: Shards, rows: dict[str, Any], paths: dict[Any, Any]) -> None:
    """The state as it was before it was flattened: DCP keeps for each name the keys that led to it."""
    made.tree = {}
    for name, value in rows.items():
        told = paths.get(name)
        keys = [plain_key(key) for key in told] if isinstance(told, tuple) and 0 < len(told) < 32 else [name]
        inner = made.tree
        for key in keys[:-1]:
            below = inner.setdefault(key, {})
            inner = below if isinstance(below, dict) else inner
        inner[keys[-1]] = value
        made.homes[name] = inner, keys[-1]


def _items(given: Any) -> Iterator[Item]:
    for index, place in given.items() if isinstance(given, dict) else ():
        key, where = getattr(index, "state", None), getattr(place, "state", None)
        if isinstance(key, dict) and isinstance(where, dict):
            start, size = where.get("offset"), where.get("length")
            if type(start) is int and type(size) is int and start >= 0 and size >= 0:
                yield Item(str(key.get("fqn")), str(where.get("relative_path")), start, size, key.get("index"))


def _files(made: Shards, folder: str, metadata: str) -> None:
    """Every file that is told of: there, inside of the folder, long enough, and not younger than the metadata."""
    ends: dict[str, int] = {}
    for item in made.items:
        ends[item.file] = max(ends.get(item.file, 0), item.start + item.size)
    younger = []
    for name, end in ends.items():
        path = inside(folder, name)
        if not path:
            made.wrong(f"it refers to {name[:200]!r}, which leads out of the folder: not read")
        elif not os.path.isfile(path):  # noqa: PTH113
            names = [item.name for item in made.items if item.file == name]
            made.wrong(f"{name} is not there: it holds {names[0]} and {len(names) - 1:,} more of {len(made.items):,}")
        else:
            _length(made, path, name, end)
            if (by := Path(path).stat().st_mtime - Path(metadata).stat().st_mtime) > _LATER:
                younger.append((by, name))
    if younger and not made.troubles:
        by, name = max(younger)
        why = (
            f"{folder}: {name} is {by:,.0f} s younger than {NAME}, which a save writes last: an overwrite that was "
            "interrupted leaves that, with two saves mixed, and so does a copy that keeps no times"
        )
        do = "Compare with the times where it was written; save each step into a folder of its own."
        made.unsure.append(Inconclusive("checkpoint/checkpoint-corrupt", why, do))


def _length(made: Shards, path: str, name: str, end: int) -> None:
    size = _size(path)
    if size < end:
        whole = sum(item.start + item.size <= size for item in made.items if item.file == name)
        rescue = f"{whole:,} of its pieces lie whole before the cut"
        made.wrong(f"{name} has {size:,} bytes, and {NAME} tells of {end:,}", size, rescue)
    elif size > end:
        more = f"{name} has {size - end:,} bytes more than {NAME} tells of: it is of another save"
        made.wrong(more, end)


def _values(made: Shards, folder: str) -> None:
    """The values that are no tensors, and how many steps the optimizer says to have made, file by file."""
    steps: dict[str, tuple[float, str]] = {}
    left = ITEMS
    for item in made.items:
        home, key = made.homes.get(item.name, ({}, ""))
        is_step = item.name.endswith(".step") and len(steps) < _STEPS
        path = inside(folder, item.file)
        if item.size > _SMALL or not (is_step or home.get(key, "") is None) or not os.path.isfile(path):  # noqa: PTH113
            continue
        if (left := left - 1) < 0:
            why = f"{folder}: of the values beside the tensors {ITEMS} were read"
            made.unsure.append(Inconclusive("checkpoint/read", why, "Nothing: the others are few bytes each."))
            break
        told = _value(made, path, item)
        if isinstance(told, float) and is_step:
            steps[item.name] = (told, item.file)
    made.steps = max((told for told, _ in steps.values()), default=None)
    _mixed(made, steps)


def _value(made: Shards, path: str, item: Item) -> Any:
    """The value of an entry, put in its place; of a tensor its one number."""
    with reading(path) as source:
        part = source.part(item.start, item.size)
        content = opened(f"{path} at byte {item.start:,}", part)
        told = number(content, part, content.tree) if isinstance(content.tree, Tensor) else None
    known = made.foreign
    made.foreign = Foreign(
        tuple({**dict(known.code), **dict(content.foreign.code)}.items()),
        tuple({**dict(known.objects), **dict(content.foreign.objects)}.items()),
    )
    made.troubles += content.troubles
    made.taken += part.taken
    home, key = made.homes.get(item.name, ({}, ""))
    if home.get(key, "") is None:
        home[key] = content.tree
    return told


def _mixed(made: Shards, steps: dict[str, tuple[float, str]]) -> None:
    """Two saves in one folder: the optimizer has made other numbers of steps in the one file than in the other."""
    by_file: dict[str, set[float]] = {}
    for told, file in steps.values():
        by_file.setdefault(file, set()).add(told)
    sure = {file: min(told) for file, told in by_file.items() if len(told) == 1}
    if len(set(sure.values())) > 1:
        low, high = min(sure, key=sure.__getitem__), max(sure, key=sure.__getitem__)
        made.wrong(
            f"two saves are mixed: by {low} the optimizer has made {sure[low]:,.0f} steps, by {high} {sure[high]:,.0f}"
        )
