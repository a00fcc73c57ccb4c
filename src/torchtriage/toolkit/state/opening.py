"""A saved step, opened: every byte of it is as it was written, or it is not opened at all."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from torchtriage.toolkit.state import hashing, manifest, plain, shards
from torchtriage.toolkit.state.beside import Beside
from torchtriage.toolkit.state.manifest import Damaged, Manifest, Piece
from torchtriage.toolkit.state.shards import Reader

NOT_OURS = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)  # in a file made by others
NAMED = 5  # damaged tensors that are named; the others are counted
THREADS = 4


class Opened:
    """A step whose manifest is whole. `verify` says whether its shards are; after that its state can be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            regular = stat.S_ISDIR(path.lstat().st_mode)
        except OSError as error:
            raise Damaged(f"{path.name} cannot be read: {error.strerror}") from error
        if not regular:
            raise Damaged(f"{path.name} is {'a link, which could lead anywhere' if path.is_symlink() else 'no folder'}")
        self.manifest: Manifest = manifest.unpacked(shards.content(path / manifest.NAME, manifest.LARGEST))
        if not re.fullmatch(rf"step-{self.manifest.step:09d}(-\d+)?", path.name):
            raise Damaged(f"{manifest.NAME} is of step {self.manifest.step}, and not of {path.name}")
        if not self.manifest.shards:
            raise Damaged(f"{manifest.NAME} names no shard")
        self._states: dict[int, Any] = {}
        self._readers: dict[int, Reader] = {}

    @property
    def ranks(self) -> int:
        return len(self.manifest.shards)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.manifest.shards)

    def verify(self, ranks: Iterable[int] | None = None) -> None:
        """Raises Damaged where a bit of the files of RANKS, or of all, is not as it was written; names the tensors."""
        chosen = list(range(self.ranks) if ranks is None else ranks)
        for rank in chosen:
            self.state(rank)
        work = [(rank, name) for rank in chosen for name in self._reader(rank).names()]
        work.sort(key=lambda each: -self._reader(each[0]).size(each[1]))
        with Beside(min(THREADS, os.cpu_count() or 1), "verifying") as threads:
            said = [(each, threads.submit(self._damaged, each)) for each in work]
        bad = [each for each, is_bad in said if is_bad.result()]
        if bad:
            shown = ", ".join(f"{name} in rank{rank}.safetensors" for rank, name in bad[:NAMED])
            more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
            raise Damaged(f"{'tensors' if len(bad) > 1 else 'tensor'} {shown}{more}: not the bytes that were written")

    def state(self, rank: int) -> Any:
        """What RANK said of itself, as JSON that refers to tensors."""
        if rank not in self._states:
            name = f"rank{rank}.json"
            data = shards.content(self.path / name, manifest.LARGEST)
            if hashing.of(data) != self.manifest.shards[rank].state:
                other = _save_of(data)
                of_other = f"is of save {other}, and the manifest is of save {self.manifest.save}"
                told = (
                    of_other if other not in ("", self.manifest.save) else "does not have the bytes that were written"
                )
                raise Damaged(f"{name} {told}")
            found = plain.parsed(data)
            if found["save"] != self.manifest.save or found["rank"] != rank:
                raise Damaged(f"{name} is of save {found['save']}, rank {found['rank']}")
            self._states[rank] = found["state"]
        return self._states[rank]

    def read(self, rank: int) -> Any:
        """The state of RANK, with `Stored` in the place of each tensor."""
        try:
            return plain.decoded(self.state(rank), lambda said: self._stored(rank, said))
        except NOT_OURS as error:
            raise Damaged(f"rank{rank}.json is not a state that torchtriage writes: {error!r}") from error

    def piece(self, piece: Piece, dtype: str) -> Any:
        return self._reader(piece.rank).tensor(piece.name, dtype, piece.lengths)

    def _stored(self, rank: int, said: dict[str, Any]) -> Stored:
        if "whole" in said:
            whole = self.manifest.sharded[said["whole"]]
            return Stored(self, whole.pieces, whole.shape, whole.dtype)
        name = said["name"]
        home = rank if name in self.manifest.shards[rank].tensors else 0
        view = self._reader(home).tensor(name, said.get("dtype"), said.get("shape"))
        lengths = tuple(view.shape)
        piece = Piece(home, name, (0,) * len(lengths), lengths)
        return Stored(self, (piece,), lengths, str(view.dtype).removeprefix("torch."))

    def _reader(self, rank: int) -> Reader:
        if rank not in self._readers:
            path = self.path / f"rank{rank}.safetensors"
            self._readers[rank] = Reader(path, self.manifest.shards[rank], self.manifest.save)
        return self._readers[rank]

    def _damaged(self, each: tuple[int, str]) -> bool:
        return self._readers[each[0]].damaged(each[1])


class Stored:
    """A tensor as it lies in the files: whole, or in the parts of several ranks."""

    def __init__(self, home: Opened, pieces: tuple[Piece, ...], shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = tuple(shape), dtype
        self._home, self._pieces = home, pieces

    def view(self) -> Any:
        """All of it; a view of the file where that is possible, so to be copied."""
        return self.box((0,) * len(self.shape), self.shape)

    def tensor(self) -> Any:
        """All of it, in memory of its own."""
        return self.view().clone()

    def box(self, offsets: tuple[int, ...], lengths: tuple[int, ...]) -> Any:
        """The part that begins at OFFSETS and has LENGTHS, from whichever ranks wrote it; raises Damaged for a gap."""
        import torch

        for piece in self._pieces:
            if all(a <= b and b + n <= a + m for a, m, b, n in _sides(piece, offsets, lengths)):
                inside = tuple(slice(b - a, b - a + n) for a, _, b, n in _sides(piece, offsets, lengths))
                return self._home.piece(piece, self.dtype)[inside]
        made = torch.empty(lengths, dtype=getattr(torch, self.dtype))
        filled = 0
        for piece in self._pieces:
            overlap = [(max(a, b), min(a + m, b + n)) for a, m, b, n in _sides(piece, offsets, lengths)]
            if all(begin < end for begin, end in overlap):
                there = tuple(slice(x - a, y - a) for (x, y), a in zip(overlap, piece.offsets, strict=True))
                here = tuple(slice(x - b, y - b) for (x, y), b in zip(overlap, offsets, strict=True))
                made[here] = self._home.piece(piece, self.dtype)[there]
                filled += made[here].numel()
        if filled != made.numel():
            raise Damaged(f"of tensor {self._pieces[0].name} {made.numel() - filled} values are in no rank's file")
        return made


def _sides(piece: Piece, offsets: tuple[int, ...], lengths: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """For each dimension where PIECE begins, its length, and the same of the part that is asked for."""
    return list(zip(piece.offsets, piece.lengths, offsets, lengths, strict=True))


def _save_of(data: bytes) -> str:
    """The save that a state says it is of, as far as it says any."""
    with suppress(Damaged, KeyError, TypeError):
        return str(plain.parsed(data)["save"])[:32]
    return ""
