"""The segments of a device and what lies free in them. Part of the process that takes a pickle apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchtriage.examine.artefact.snapshot.columns import RELEASE, RESERVE, Column, History

ROUNDED = 512
"""Bytes to which the allocator rounds the size of a block (CUDACachingAllocator.cpp, kMinBlockSize)."""


class Layout:
    """The SEGMENTS of one device as the snapshot found them: columns of the blocks that are in use, and of segments."""

    def __init__(self, segments: list[dict[str, Any]]) -> None:
        self.segments = [(whole(each.get("address")), whole(each.get("total_size"))) for each in segments]
        self.frames: list[Any] = []
        used = list(self._used(segments))
        self.addr, self.size = (np.array([row[at] for row in used], np.int64) for at in (0, 1))

    def _used(self, segments: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
        """Address and asked-for size of each block in use; those that only wait for a stream are in use too."""
        for segment in segments:
            at = whole(segment.get("address"))
            for block in segment.get("blocks") or ():
                size = whole(block["size"])
                if str(block["state"]).startswith("active"):
                    first = (block.get("history") or [{}])[0]  # of torch before 2.1
                    self.frames.append(block.get("frames", first.get("frames")))
                    asked = block.get("requested_size", first.get("real_size"))
                    yield whole(block.get("address", at)), whole(asked) or size
                at += size

    @property
    def reserved(self) -> int:
        """Bytes in all segments."""
        return sum(size for _, size in self.segments)


def segments_at(layout: Layout, history: History, row: int) -> list[tuple[int, int]] | None:
    """The segments after ROW: those of the end without what came later. None where parts were mapped since."""
    known = dict(layout.segments)
    later = np.flatnonzero((history.action == RESERVE) | (history.action == RELEASE))
    for each in later[later > row][::-1].tolist():
        addr, size = int(history.addr[each]), int(history.size[each])
        if history.action[each] == RELEASE:
            known[addr] = size
        elif known.pop(addr, None) != size:
            return None
    return sorted(known.items())


def gaps(segments: list[tuple[int, int]], addr: Column, size: Column) -> tuple[int, int, int]:
    """Bytes that lie free in SEGMENTS between the blocks in use, in how many pieces, and the largest of them."""
    order = np.argsort(addr, kind="stable")
    starts = addr[order]
    ends = starts + (np.maximum(size[order], 1) + ROUNDED - 1) // ROUNDED * ROUNDED
    pieces: list[int] = []
    for begin, length in segments:
        low, high = np.searchsorted(starts, [begin, begin + length])
        edges = np.concatenate(([begin], ends[low:high], starts[low:high], [begin + length]))
        inner = np.concatenate((starts[low:high], [begin + length])) - edges[: high - low + 1]
        pieces += inner[inner >= ROUNDED].tolist()
    return sum(pieces), len(pieces), max(pieces, default=0)


def whole(value: Any) -> int:
    """VALUE as a size or an address; 0 for what is none."""
    return value if isinstance(value, int) and 0 <= value < 2**62 else 0
