"""What DDP's message on unfinished reductions works out to: which parameters got no gradient."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchtriage.core.query import Decoded
from torchtriage.routing.meaning import told

if TYPE_CHECKING:
    from torchtriage.examine.source.parameters.models import Model, Models

_INDICES = re.compile(r"Parameter indices which did not receive grad for rank (\d{1,6}): ((?:\d{1,7} ?)+)")
_NAMES = re.compile(r"Parameters which did not receive grad for rank (\d{1,6}): ((?:[\w.]{1,200},? ?)+)")
_NEAR = 20_000
_MOST = 8
_CLASSES = 3


def unfinished_reduction(message: Decoded, text: str) -> Decoded | None:
    """Names where TORCH_DISTRIBUTED_DEBUG gave them, else indices into list(model.named_parameters())."""
    near = text[message.start : message.start + _NEAR]
    if found := _NAMES.search(near):
        names = [name for name in re.split(r"[, ]+", found[2]) if name]
        said = f"{_unused(len(names), found[1])}: {_few(names)}"
        return told(message, said, rank=int(found[1]), names=", ".join(names))
    if found := _INDICES.search(near):
        indices = [int(index) for index in found[2].split()]
        least = "at least " if near.startswith("...", found.end()) else ""  # torch cuts long lists off
        said = (
            f"{least}{_unused(len(indices), found[1])}: numbers {_few(list(map(str, indices)))} of "
            "list(model.named_parameters()), counted from 0. TORCH_DISTRIBUTED_DEBUG=INFO prints their names"
        )
        return told(message, said, rank=int(found[1]), indices=indices)
    return None


def unfinished_reduction_in_source(message: Decoded, text: str, models: Models) -> Decoded | None:
    """The names of the numbers in the module classes of the source: at most three classes, each that fits."""
    indices, rank = message.fields.get("indices"), message.fields.get("rank")
    if not isinstance(indices, list) or not indices:
        return None
    fits = models.fitting(max(indices), text)[:_CLASSES]
    if not fits:
        numbers = _few(list(map(str, indices)))
        said = f"{_unused(len(indices), rank)}: numbers {numbers}, and no module class of the source has so many"
        return told(message, said)
    said = f"{_unused(len(indices), rank)}: {', or '.join(_named(model, indices) for model in fits)}"
    if models.frozen:
        said += (
            ". The numbers count only parameters that require a gradient, and the source sets requires_grad to False "
            f"({models.frozen}): the names may be off"
        )
    first, *others = fits
    if others or len(first.names) <= max(indices):
        return told(message, said)
    return told(message, said, names=", ".join(first.names[index] for index in indices), model=first.name)


def _named(model: Model, indices: list[int]) -> str:
    known = [f"{model.names[index]} ({index})" for index in indices if index < len(model.names)]
    beyond = [str(index) for index in indices if index >= len(model.names)]
    said = f"{_few(known)} in {model.name}" if known else f"in {model.name}"
    return f"{said}, whose numbers from {len(model.names)} on cannot be told ({model.unknown})" if beyond else said


def _unused(count: int, rank: object) -> str:
    return f"{count} parameter{'' if count == 1 else 's'} got no gradient on rank {rank}"


def _few(items: list[str]) -> str:
    return ", ".join(items[:_MOST]) + (f" and {len(items) - _MOST} more" if len(items) > _MOST else "")


def signal_received(message: Decoded, text: str) -> Decoded | None:
    """SIGINT comes from a person at the keyboard: nothing outside stopped the job."""
    return (
        replace(message, faults=()) if str(message.fields.get("signal")) in {"2", "SIGINT", "Signals.SIGINT"} else None
    )


def child_exit(message: Decoded, text: str) -> Decoded | None:
    """A process that a signal ended raised nothing: who sent it is told by the signal."""
    code = message.fields.get("exitcode")
    return replace(message, faults=()) if isinstance(code, int) and code < 0 else None


def watchdog_ended(message: Decoded, text: str) -> Decoded | None:
    """An error of the device that the watchdog quotes is this rank's own."""
    return replace(message, faults=()) if " error: " in str(message.fields.get("error")) else None


def child_process_ended(message: Decoded, text: str) -> Decoded | None:
    """As child_exit: a signal says by itself what it was."""
    return replace(message, faults=()) if "signal" in message.fields else None
