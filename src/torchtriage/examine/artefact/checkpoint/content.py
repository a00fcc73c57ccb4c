"""What was made of one file: its tree, what it would run, where its numbers lie, and what does not hold."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from torchtriage.examine.artefact.checkpoint.builders import BUILDERS
from torchtriage.examine.artefact.checkpoint.names import Foreign, foreign
from torchtriage.examine.artefact.checkpoint.tensors import DEEP, is_deep, persistent
from torchtriage.examine.artefact.checkpoint.zips import Entry
from torchtriage.examine.artefact.pickle.machine import Machine
from torchtriage.examine.artefact.pickle.nodes import Broken


class Trouble(Struct, frozen=True):
    """What does not hold in a file. path: the file; at: the byte; rescue: what can still be had, "" for nothing."""

    path: str
    why: str
    at: int | None = None
    rescue: str = ""
    tensor: str = ""


class Content(Struct):
    """What is in the file at PATH.

    form: "torch", "torch before 1.6", "torchscript", "safetensors", "pickle" or "DCP". tree: containers, plain values,
    Tensors and Arrays, and nodes for what is none of these. taken: bytes read of it, size: all it has. steps: that the
    optimizer has made, where it says so beside the tensors. places: where the numbers of a storage lie, (start, bytes,
    checksum or 0), by its key; of safetensors by name.
    """

    path: str
    form: str
    size: int
    tree: Any = None
    foreign: Foreign = field(default_factory=Foreign)
    troubles: list[Trouble] = field(default_factory=list)
    places: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    taken: int = 0
    steps: float | None = None

    def wrong(self, why: str, at: int | None = None, rescue: str = "") -> None:
        self.troubles.append(Trouble(self.path, why, at, rescue))


def run(made: Content, data: bytes, at: int = 0) -> Machine:
    """The tree of a pickle. What it names before it breaks has been run by any loader that runs such things."""
    machine = Machine(data, BUILDERS, persistent, at)
    try:
        made.tree = machine.run()
    except Broken as broken:
        made.wrong(f"its pickle: {broken.why}", broken.at)
    made.foreign = foreign(machine.names, machine.called)
    if is_deep(made.tree):
        made.wrong(f"containers stand within each other more than {DEEP} times: no training writes that")
    return machine
