"""Tensors as a file describes them: dtype, shape, and where their numbers lie. The numbers themselves stay there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.examine.artefact.pickle.nodes import Called, Named, Unmade

SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
    "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex32": 4, "complex64": 8, "complex128": 16,
    "qint8": 1, "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1, "bits8": 1, "float4_e2m1fn_x2": 1,
    **{f"float8_{each}": 1 for each in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")},
}  # fmt: skip
"""Bytes of a number. Of a dtype that is not here the bounds of a tensor are not judged."""
STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "QInt8Storage": "qint8", "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "", "TypedStorage": "",
}  # fmt: skip
DEEP = 100
_HOLDS = (dict, list, tuple, Called)
_DIMENSIONS = 64
_HIGHEST = 2**62


class Storage:
    """Numbers in the file. dtype: "" for bytes without one; key: its name there; numel: as the pickle says."""

    __slots__ = ("device", "dtype", "key", "numel")

    def __init__(self, dtype: str, key: str, device: str, numel: int) -> None:
        self.dtype, self.key, self.device, self.numel = dtype, key, device, numel

    @property
    def bytes(self) -> int:
        return self.numel * SIZES.get(self.dtype, 1)


class Tensor:
    """stride: in numbers, () where the data lie in a row. kind: "" for a plain one, else sparse, quantized, meta and
    the like. source: the file that holds the numbers, where it is another one.
    """

    __slots__ = ("dtype", "kind", "offset", "shape", "source", "storage", "stride")

    def __init__(
        self, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...] = (), offset: int = 0,
        storage: Storage | None = None, kind: str = "",
    ) -> None:  # fmt: skip
        self.dtype, self.shape, self.stride, self.offset, self.storage = dtype, shape, stride, offset, storage
        self.kind, self.source = kind, ""

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        return self.numel * SIZES.get(self.dtype, 1)

    @property
    def reach(self) -> int:
        """The bytes of its storage up to the last of its numbers."""
        if 0 in self.shape:
            return 0
        last = sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=False))
        return (self.offset + last + 1) * SIZES.get(self.dtype, 1)

    def filled(self, state: Any) -> None:
        """BUILD gives a tensor attributes of Python, which are no part of its numbers."""


class Array:
    """An array of numpy, whose numbers lie in the pickle itself. data: b"" where they are not to be had."""

    __slots__ = ("data", "dtype", "shape")

    def __init__(self) -> None:
        self.dtype, self.data = "", b""
        self.shape: tuple[int, ...] = ()

    def filled(self, state: Any) -> None:
        """BUILD: version, shape, dtype, order, numbers."""
        if isinstance(state, tuple) and len(state) == 5 and isinstance(state[4], bytes):
            self.shape, self.dtype, self.data = sizes(state[1]), dtype_of(state[2]), state[4]


def sizes(given: Any) -> tuple[int, ...]:
    """A shape or the like; raises Unmade for what is none."""
    found = tuple(given) if isinstance(given, tuple | list) and len(given) <= _DIMENSIONS else None
    if found is None or not all(type(each) is int and 0 <= each < _HIGHEST for each in found):
        raise Unmade
    return found


def dtype_of(given: Any) -> str:
    """torch.float32 and numpy's dtype("f4") by name; "" for what is none."""
    if isinstance(given, Named):
        name = given.name.rpartition(".")[2]
        return name if name in SIZES else ""
    if isinstance(given, Called) and given.name == "numpy.dtype" and given.args:
        return str(given.args[0])[:20]
    return ""


def persistent(pid: Any) -> Storage | None:
    """A storage, as the pickles of torch.save refer to it; None for any other persistent id."""
    if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage" and isinstance(pid[1], Named)):
        return None
    name = pid[1].name.rpartition(".")[2]
    numel = pid[4] if type(pid[4]) is int and 0 <= pid[4] < _HIGHEST else -1
    known = name in STORAGES and pid[1].name.startswith("torch.")
    return Storage(STORAGES[name], str(pid[2])[:80], str(pid[3])[:20], numel) if known and numel >= 0 else None


def tensors(root: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor below ROOT by its path ("model/fc.weight"), each path once; what stands in itself is left."""
    todo: list[tuple[int, str, Any]] = [(0, "", root)]
    seen: set[int] = set()
    while todo:
        depth, path, value = todo.pop()
        if isinstance(value, Tensor):
            yield path, value
            continue
        if id(value) in seen or depth == DEEP:
            continue
        inner = list(parts(value))
        if inner:
            seen.add(id(value))
        todo.extend((depth + 1, joined(path, key), each) for key, each in reversed(inner))


def joined(path: str, key: Any) -> str:
    """The path of an entry, of 1000 letters at most."""
    return (f"{path}/{key}" if path else str(key))[:1000]


def is_deep(root: Any) -> bool:
    """Whether containers stand within each other DEEP times: in no state, and no walk goes further down."""
    level, seen = [root], set[int]()
    for _ in range(DEEP):
        seen.update(map(id, level))
        below = (each for value in level for _, each in parts(value))
        level = list({id(each): each for each in below if isinstance(each, _HOLDS) and id(each) not in seen}.values())
        if not level:
            return False
    return True


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """What VALUE consists of, by key or number."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif isinstance(value, Called):
        if isinstance(value.state, dict):
            yield from value.state.items()
        elif value.state is not None:
            yield "state", value.state
        yield from enumerate(value.args)
        if value.items is not None:
            yield from parts(value.items)
