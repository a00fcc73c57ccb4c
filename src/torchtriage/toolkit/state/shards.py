"""One rank's tensors as a safetensors file: written with its hashes in one pass, read by parts through a mapping."""

from __future__ import annotations

import json
import math
import mmap
import os
import stat
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from torchtriage.toolkit.state import disk, hashing
from torchtriage.toolkit.state.beside import Beside
from torchtriage.toolkit.state.manifest import Damaged, Shard
from torchtriage.toolkit.state.tensors import CODES, data, in_place, type_of

ALIGNED = 64  # bytes: where the data begins
AHEAD = 256 << 20  # bytes of copies that may wait for their hash
LONGEST = 512 << 20  # bytes of a header that is still read
SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2}
SIZES |= {"I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8}
TYPES = {code: name for name, code in CODES.items()}


def written(
    path: Path, tensors: Mapping[str, Any], about: Mapping[str, str], meanwhile: Callable[[], None]
) -> tuple[str, dict[str, str], int]:
    """Writes TENSORS to PATH, on the disk when this returns: the hash of the header, of each tensor, and the bytes.

    MEANWHILE is done while the disk is waited for.
    """
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    head = _header([(name, tensors[name]) for name in names], about)
    file = disk.create(path)
    try:
        disk.write(file, path, [memoryview(head)])
        with Beside(1, "hashing") as beside:
            said = _streamed(file, path, names, tensors, beside)
            with disk.synced(file, path):
                meanwhile()
        hashes = {name: each.result() for name, each in said}
    finally:
        os.close(file)
    size = len(head) + sum(tensors[name].nbytes for name in names)
    return hashing.of(head), hashes, size


def _streamed(
    file: int, path: Path, names: list[str], tensors: Mapping[str, Any], beside: Beside
) -> list[tuple[str, Future[str]]]:
    """Each tensor to FILE, in writes of many small ones or of parts of a large one, while another thread hashes it."""
    said: list[tuple[str, Future[str]]] = []
    batch: list[memoryview] = []
    waiting: deque[tuple[Future[str], int]] = deque()
    size = ahead = 0
    for name in names:
        view = data(tensors[name])
        said.append((name, beside.submit(hashing.of, view)))
        if not in_place(tensors[name]):
            waiting.append((said[-1][1], len(view)))
            ahead += len(view)
        for start in range(0, len(view), disk.LARGEST):
            part = view[start : start + disk.LARGEST]
            batch.append(part)
            size += len(part)
            if size >= disk.LARGEST or len(batch) >= disk.MOST:
                disk.write(file, path, batch)
                batch, size = [], 0
        while ahead > AHEAD and waiting:  # a tensor that had to be copied is held until it is hashed
            first, length = waiting.popleft()
            first.result()
            ahead -= length
    if batch:
        disk.write(file, path, batch)
    return said


def _header(tensors: list[tuple[str, Any]], about: Mapping[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"format": "pt", **about}}
    place = 0
    for name, tensor in tensors:
        code = CODES.get(type_of(tensor))
        entry = {"dtype": code or "U8", "shape": list(tensor.shape) if code else [tensor.nbytes]}
        entries[name] = {**entry, "data_offsets": [place, place + tensor.nbytes]}
        place += tensor.nbytes
    text = json.dumps(entries, separators=(",", ":")).encode("utf-8")
    text += b" " * (-(8 + len(text)) % ALIGNED)
    return len(text).to_bytes(8, "little") + text


def opened(path: Path) -> int:
    """PATH as a file to read; raises Damaged where it is none, be it a link or a pipe."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError as error:
        raise Damaged(f"{path.name} is not there") from error
    except OSError as error:
        why = "is a link, which could lead anywhere" if path.is_symlink() else f"cannot be read: {error.strerror}"
        raise Damaged(f"{path.name} {why}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Damaged(f"{path.name} is no regular file")
    return file


def content(path: Path, most: int) -> bytes:
    """All bytes of a small file; raises Damaged where it has more than MOST."""
    with os.fdopen(opened(path), "rb") as file:
        held = file.read(most + 1)
    if len(held) > most:
        raise Damaged(f"{path.name} has more than {most:,} bytes")
    return held


def _readable(file: int, size: int) -> None:
    """Raises OSError where the disk cannot give all bytes of FILE: met in a mapping, that would end the process."""
    if not hasattr(os, "sendfile"):
        return
    nowhere, place = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 0
    try:
        while place < size and (done := os.sendfile(nowhere, file, place, size - place)):
            place += done
    finally:
        os.close(nowhere)


class Reader:
    """The tensors of a file that `written` made; raises Damaged where its size or header is not as it was written."""

    def __init__(self, path: Path, shard: Shard, save: str) -> None:
        self.path, self._hashes = path, shard.tensors
        file = opened(path)
        try:
            size = os.fstat(file).st_size
            if size != shard.bytes:
                raise Damaged(f"{path.name} has {size:,} bytes, and {shard.bytes:,} were written")
            _readable(file, size)
            flags = mmap.MAP_PRIVATE | getattr(mmap, "MAP_NORESERVE", 0)
            self._bytes = mmap.mmap(file, size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except OSError as error:
            raise Damaged(f"{path.name} cannot be read: {error.strerror}") from error
        finally:
            os.close(file)
        self.data = memoryview(self._bytes)
        try:
            self._entries, self._start = self._header(shard, save)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise Damaged(f"{path.name} has a header that torchtriage does not write: {error!r}") from error

    def damaged(self, name: str) -> bool:
        """Whether one bit of NAME is not as it was written."""
        begin, end = self._entries[name]["data_offsets"]
        return hashing.of(self.data[self._start + begin : self._start + end]) != self._hashes[name]

    def names(self) -> list[str]:
        return list(self._entries)

    def size(self, name: str) -> int:
        begin, end = self._entries[name]["data_offsets"]
        return int(end - begin)

    def tensor(self, name: str, dtype: str | None = None, shape: tuple[int, ...] | None = None) -> Any:
        """NAME as a view of the file, to be copied before it is used. DTYPE and SHAPE: its own, where need be."""
        import torch

        entry = self._entries[name]
        begin, end = entry["data_offsets"]
        kind = getattr(torch, dtype or TYPES[entry["dtype"]])
        shape = tuple(entry["shape"]) if shape is None else shape
        if begin == end:
            return torch.empty(shape, dtype=kind)
        flat = torch.frombuffer(self._bytes, dtype=torch.uint8, count=end - begin, offset=self._start + begin)
        if (self._start + begin) % kind.itemsize:
            flat = flat.clone()
        return flat.view(kind).reshape(shape)

    def _header(self, shard: Shard, save: str) -> tuple[dict[str, Any], int]:
        length = int.from_bytes(self.data[:8], "little")
        if length > min(len(self.data) - 8, LONGEST) or hashing.of(self.data[: 8 + length]) != shard.head:
            other = self._save(length)
            why = f"is of save {other}, and the manifest is of save {save}" if other not in ("", save) else ""
            raise Damaged(f"{self.path.name} {why or 'has another header than was written'}")
        entries = json.loads(bytes(self.data[8 : 8 + length]))
        about = entries.pop("__metadata__")
        if about["save"] != save or entries.keys() != shard.tensors.keys():
            raise Damaged(f"{self.path.name} is not the file that the manifest names")
        place = 0
        for name, entry in entries.items():
            begin, end = entry["data_offsets"]
            if begin != place or end - begin != math.prod(entry["shape"]) * SIZES[entry["dtype"]]:
                raise Damaged(f"{self.path.name}: tensor {name} does not have the bytes of its shape")
            place = end
        if 8 + length + place != len(self.data):
            raise Damaged(f"{self.path.name} has other bytes than its tensors")
        return entries, 8 + length

    def _save(self, length: int) -> str:
        """The save that the file says it is of, as far as it says any."""
        try:
            return str(json.loads(bytes(self.data[8 : 8 + length]))["__metadata__"]["save"])[:32]
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""
