"""What the Flight Recorder of torch.distributed still holds: the last collectives that this process has begun."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

from . import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DUMPS = ("_dump_fr_trace", "_dump_nccl_trace")  # of gloo and its like; of NCCL, which keeps a recorder of its own


def entries(last: int, *, lines: bool = False) -> list[dict[str, Any]]:
    """The LAST collectives of all groups, the oldest first; none where this torch records none.

    Each is {"group": its name, "ranks": those in it, "seq": its number within the group, from 1, "p2p": whether that
    counts sends and receives, "op": "all_reduce", "created", "started", "ended": nanoseconds since 1970 or None, where
    the backend does not tell, "sizes": [[4, 4]], "dtypes": ["Float"] of what goes in, "pending": whether it has not
    ended as far as this process knows}, and with LINES also "path", "line" of the user's code that asked for it ("", 0
    where inductor is not loaded, see _symbolizes).

    The recorder keeps 2000 (TORCH_FR_BUFFER_SIZE). To read that many takes about ten milliseconds, with LINES longer.
    """
    ranks = _groups()
    found = sorted(
        (entry for dump in _dumps() for entry in _read(dump, lines)), key=lambda entry: entry["time_created_ns"]
    )
    return [_told(entry, ranks, lines) for entry in found[-last:]]


def _dumps() -> Iterator[Callable[..., bytes]]:
    from torch._C import _distributed_c10d as c10d

    return (getattr(c10d, name) for name in DUMPS if hasattr(c10d, name))


def _read(dump: Callable[..., bytes], lines: bool) -> Iterable[dict[str, Any]]:
    """Made by torch in this very process, so there is nothing foreign in it."""
    found: Iterable[dict[str, Any]] = pickle.loads(dump(True, lines and _symbolizes(), False)).get("entries", ())  # noqa: S301
    return found


def _symbolizes() -> bool:
    """Whether torch can name lines without an import: its symbolizer wants to know what inductor has generated, and
    imports that, which takes seconds, and fails the job when that imports parts of it itself just then.
    """
    module = sys.modules.get("torch._inductor.codecache")
    return module is not None and not getattr(module.__spec__, "_initializing", False)


def _groups() -> dict[str, list[int]]:
    """The ranks of each group that this process is in, by the group's name."""
    from torch.distributed.distributed_c10d import _world

    return {name: sorted(_world.pg_group_ranks.get(group) or ()) for group, name in _world.pg_names.items()}


def _told(entry: dict[str, Any], ranks: dict[str, list[int]], lines: bool) -> dict[str, Any]:
    group, p2p = str(entry["process_group"][0]), bool(entry["is_p2p"])
    told = {
        "group": group,
        "ranks": ranks.get(group, []),
        "seq": entry["p2p_seq_id" if p2p else "collective_seq_id"],
        "p2p": p2p,
        "op": str(entry["profiling_name"]).partition(":")[2],
        "created": entry["time_created_ns"],
        "started": entry.get("time_discovered_started_ns"),
        "ended": entry.get("time_discovered_completed_ns"),
        "sizes": entry["input_sizes"],
        "dtypes": entry["input_dtypes"],
        "pending": not entry["retired"],
    }
    if lines:
        told["path"], told["line"] = _line(entry.get("frames") or ())
    return told


def _line(frames: Iterable[dict[str, Any]]) -> tuple[str, int]:
    """File and line of the innermost frame of the user's code; ("", 0) when there is none."""
    users = ((places.path_of(frame["filename"]), frame["line"]) for frame in frames)
    return next(((path, line) for path, line in users if path is not None), ("", 0))
