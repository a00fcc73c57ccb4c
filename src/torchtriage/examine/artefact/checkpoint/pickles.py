"""A pickle by itself, and what torch.save wrote before 1.6: five pickles, and then the numbers."""

from __future__ import annotations

from typing import Any

from torchtriage.examine.artefact.checkpoint.builders import BUILDERS
from torchtriage.examine.artefact.checkpoint.content import Content, run
from torchtriage.examine.artefact.checkpoint.names import foreign
from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source
from torchtriage.examine.artefact.checkpoint.tensors import persistent, tensors
from torchtriage.examine.artefact.pickle.machine import Machine
from torchtriage.examine.artefact.pickle.nodes import Broken

PICKLE = 2**28
"""Bytes of a pickle that are read."""
LEGACY = 0x1950A86A20F9469CFC6C


def read(made: Content, source: Source) -> None:
    """Fills MADE; raises Damaged."""
    if source.size == 0:
        raise Damaged("the file is empty: 0 bytes")
    if said := _other(source.at(0, 512)):
        raise Damaged(said)
    data = source.at(0, min(source.size, PICKLE))
    machine = run(made, data)
    if made.tree == LEGACY and not made.troubles:
        made.form, made.tree = "torch before 1.6", None
        _legacy(made, data, machine)
    elif made.size > PICKLE and made.troubles:
        made.wrong(f"of {made.size:,} bytes the first {PICKLE:,} were read")


def _other(head: bytes) -> str:
    """What stands where a checkpoint should; "" for what may be a pickle."""
    if head.startswith(b"\x80") or head[:1] in (b"(", b"c", b"i", b"]", b"}", b"l"):
        return ""
    found = f"it begins with {head[:16]!r}"
    if head.startswith(b"version https://git-lfs"):
        found = "it is the pointer of a Git LFS file: `git lfs pull` fetches the file itself"
    elif not head.strip(b"\0"):
        found = f"its first {len(head)} bytes are zeros: they never reached the disk"
    elif head.lstrip()[:1] == b"<":
        found = "it is a page of HTML or XML, as a download that was refused leaves"
    return f"expected a zip file of torch.save, a pickle or safetensors, but {found}"


def _legacy(made: Content, data: bytes, machine: Machine) -> None:
    """The magic number, the protocol, the machine, the object, the keys of its storages: five pickles; then these."""
    names, called, values = dict(machine.names), dict(machine.called), []
    at = machine.at
    for _ in range(4):
        each = Machine(data, BUILDERS, persistent, at)
        try:
            values.append(each.run())
        except Broken as broken:
            made.wrong(f"its pickle: {broken.why}", broken.at)
        at = each.at
        names, called = {**each.names, **names}, {**each.called, **called}
        if made.troubles:
            break
    made.foreign = foreign(names, called)
    made.tree = values[2] if len(values) > 2 else None
    if len(values) == 4:
        _after(made, values[3], at)


def _after(made: Content, keys: Any, at: int) -> None:
    """Storages one after the other: each the number of its elements in 8 bytes, then these."""
    kinds = {each.storage.key: each.storage for _, each in tensors(made.tree) if each.storage is not None}
    whole = 0
    for key in keys if isinstance(keys, list) else ():
        storage = kinds.get(str(key))
        if storage is None:
            return
        if at + 8 + storage.bytes > made.size:
            rescue = f"{whole:,} of {len(kinds):,} storages lie whole before the cut"
            made.wrong(f"storage {key} needs {storage.bytes:,} bytes and the file ends before", at, rescue)
            return
        made.places[str(key)] = (at + 8, storage.bytes, 0)
        at, whole = at + 8 + storage.bytes, whole + 1
