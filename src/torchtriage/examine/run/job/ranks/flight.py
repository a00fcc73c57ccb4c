"""What the Flight Recorder of torch.distributed still holds: the last collectives that this process has begun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..events import Collective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Of gloo and its like, and of NCCL, which keeps a recorder of its own. Not the dumps with stacks: to name lines, torch
# imports inductor, which takes seconds, and fails the job when that imports parts of it itself just then.
DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")


class Entry(Collective):
    """ranks: of the group. started, ended: nanoseconds since 1970, None where the backend does not tell."""

    ranks: list[int]
    started: int | None
    ended: int | None


def entries(last: int) -> list[Entry]:
    """The LAST collectives of all groups, the oldest first; none where this torch records none.

    The recorder keeps 2000 (TORCH_FR_BUFFER_SIZE). To read that many takes about ten milliseconds.
    """
    ranks = _groups()
    every = (entry for dump in _dumps() for entry in json.loads(dump(True, False)).get("entries") or ())
    found = sorted(every, key=lambda entry: entry["time_created_ns"])
    return [_told(entry, ranks) for entry in found[-last:]]


def _dumps() -> Iterator[Callable[..., bytes]]:
    from torch._C import _distributed_c10d as c10d

    return (getattr(c10d, name) for name in DUMPS if hasattr(c10d, name))


def _groups() -> dict[str, list[int]]:
    """The ranks of each group that this process is in, by the group's name."""
    from torch.distributed.distributed_c10d import _world

    return {name: sorted(_world.pg_group_ranks.get(group) or ()) for group, name in _world.pg_names.items()}


def _told(entry: dict[str, Any], ranks: dict[str, list[int]]) -> Entry:
    group, p2p = str(entry["process_group"][0]), bool(entry["is_p2p"])
    return {
        "group": group,
        "ranks": ranks.get(group, []),
        "seq": entry["p2p_seq_id" if p2p else "collective_seq_id"],
        "p2p": p2p,
        "op": str(entry["profiling_name"]).partition(":")[2],
        "created": entry["time_created_ns"],
        "started": entry.get("time_discovered_started_ns") or None,
        "ended": entry.get("time_discovered_completed_ns") or None,
        "sizes": entry["input_sizes"],
        "dtypes": entry["input_dtypes"],
        "pending": not entry["retired"],
    }
