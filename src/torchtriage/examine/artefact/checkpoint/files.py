"""One file of tensors: its form, its tree, and what does not hold in it. The numbers themselves are not read."""

from __future__ import annotations

from collections.abc import Callable

from torchtriage.examine.artefact.checkpoint import headers, pickles, zips
from torchtriage.examine.artefact.checkpoint.builders import BUILDERS
from torchtriage.examine.artefact.checkpoint.content import Content, Trouble, run
from torchtriage.examine.artefact.checkpoint.names import foreign
from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source
from torchtriage.examine.artefact.checkpoint.tensors import SIZES, Storage, Tensor, persistent, tensors
from torchtriage.examine.artefact.checkpoint.zips import Entry
from torchtriage.examine.artefact.pickle.machine import Machine
from torchtriage.examine.artefact.pickle.nodes import Broken


def opened(path: str, source: Source) -> Content:
    """What SOURCE, the file at PATH, holds."""
    head = source.at(0, 512)
    made = Content(path, _form(head), source.size)
    try:
        _READ[made.form](made, source)
    except Damaged as damaged:
        made.wrong(damaged.why, damaged.at, damaged.rescue)
    made.taken = source.taken
    return made


def _form(head: bytes) -> str:
    if head.startswith(b"PK\x03\x04"):
        return "torch"
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= headers.HEADER:
        return "safetensors"
    return "pickle"


# torch, since 1.6


def _zip(made: Content, source: Source) -> None:
    try:
        made.entries = zips.entries(source)
    except Damaged as damaged:
        _without_directory(made, source, damaged)
        return
    names = [entry.name for entry in made.entries]
    pickles = [entry for entry in made.entries if entry.name.endswith(".pkl")]
    main = next((entry for entry in pickles if entry.name.count("/") == 1 and entry.name.endswith("/data.pkl")), None)
    if main is None:
        raise Damaged(
            f"a zip file of {len(names):,} entries without a data.pkl in a folder: none that torch.save wrote"
        )
    root = main.name.removesuffix("data.pkl")
    made.form = "torchscript" if any(name.startswith(f"{root}code/") for name in names) else "torch"
    if len(set(names)) < len(names):
        made.wrong("two entries have one name: readers do not agree on which of them they take")
    _bounded(made, source)
    machine = run(made, zips.content(source, main))
    _others(made, source, [entry for entry in pickles if entry is not main], machine)
    made.places = {
        entry.name.removeprefix(f"{root}data/"): (entry.at, entry.size, entry.crc)
        for entry in made.entries
        if entry.name.startswith(f"{root}data/")
    }
    _held_against_places(made)


def _bounded(made: Content, source: Source) -> None:
    for entry in made.entries:
        if entry.at + 30 + entry.packed > source.size:
            made.wrong(f"{entry.name} has {entry.packed:,} bytes and the file ends before that", entry.at)


def _others(made: Content, source: Source, pickles: list[Entry], main: Machine) -> None:
    """Further pickles of the archive: some loader reads them, so their names count."""
    names, called = dict(main.names), dict(main.called)
    for entry in pickles[:16]:
        machine = Machine(zips.content(source, entry), BUILDERS, persistent)
        try:
            machine.run()
        except Broken as broken:
            made.wrong(f"{entry.name}: {broken.why}", entry.at)
        names, called = {**machine.names, **names}, {**machine.called, **called}
    made.foreign = foreign(names, called)


def _held_against_places(made: Content) -> None:
    """Storages against the entries that hold them: one for each, as large as the pickle says, views within bounds."""
    missing, told = [], set()
    for path, tensor in tensors(made.tree):
        storage = tensor.storage
        if storage is None or storage.device == "meta":
            continue
        place = made.places.get(storage.key)
        if place is None:
            missing.append(path)
        elif storage.key not in told and (said := _misfit(tensor, storage, place[1])):
            told.add(storage.key)
            made.troubles.append(Trouble(made.path, f"{path}: {said}", place[0], tensor=path))
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        why = f"the numbers of {missing[0]}{more} are not in the file"
        made.troubles.append(Trouble(made.path, why, tensor=missing[0]))


def _misfit(tensor: Tensor, storage: Storage, size: int) -> str:
    if storage.dtype in SIZES and storage.bytes != size:
        return f"the pickle says {storage.bytes:,} bytes of {storage.dtype}, and the file holds {size:,}"
    if tensor.dtype in SIZES and tensor.reach > size and not tensor.kind:
        return f"its shape {list(tensor.shape)} reaches {tensor.reach:,} bytes into a storage of {size:,}"
    return ""


def _without_directory(made: Content, source: Source, damaged: Damaged) -> None:
    """A file that was cut off: its pickle stands first, so keys can be told, and what lies whole before the cut."""
    name, begin = zips.first(source)
    if not name.endswith("/data.pkl"):
        raise damaged
    data = source.at(begin, min(pickles.PICKLE, source.size - begin))
    machine = Machine(data, BUILDERS, persistent)
    try:
        made.tree = machine.run()
    except Broken as broken:
        made.foreign = foreign(machine.names, machine.called)
        raise Damaged(f"{damaged.why}; and its pickle is not whole: {broken.why}", damaged.at) from None
    made.foreign = foreign(machine.names, machine.called)
    found = {path: tensor for path, tensor in tensors(made.tree) if tensor.storage is not None}
    sizes = {f"data/{each.storage.key}": each.storage.bytes for each in found.values() if each.storage is not None}
    whole = zips.rescued(source, 0, {"data.pkl": machine.at, **sizes})
    root = name.removesuffix("data.pkl")
    kept = [path for path, each in found.items() if each.storage and f"{root}data/{each.storage.key}" in whole]
    lost = next((path for path in found if path not in kept), "")
    rescue = f"{len(kept):,} of {len(found):,} tensors lie whole before the cut" + (f", up to {lost}" if lost else "")
    made.wrong(damaged.why, damaged.at, rescue)


_READ: dict[str, Callable[[Content, Source], None]] = {
    "torch": _zip, "safetensors": headers.read, "pickle": pickles.read,
}  # fmt: skip
