"""What makes data of the calls in a checkpoint's pickle: each gets the machine and the arguments, and calls nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from torchtriage.examine.artefact.checkpoint.tensors import Array, Storage, Tensor, dtype_of, sizes
from torchtriage.examine.artefact.pickle.machine import Machine
from torchtriage.examine.artefact.pickle.nodes import Named, Unmade

_HIGHEST = 2**62


def _dense(m: Machine, storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> Tensor:
    if not isinstance(storage, Storage) or type(offset) is not int or not 0 <= offset < _HIGHEST:
        raise Unmade
    return Tensor(storage.dtype, sizes(shape), sizes(stride), offset, storage)


def _typed(m: Machine, *given: Any) -> Tensor:
    """_rebuild_tensor_v3: the storage has no dtype of its own."""
    made = _dense(m, *given[:4])
    made.dtype = dtype_of(given[6])
    return made


def _quantized(m: Machine, *given: Any) -> Tensor:
    made = _dense(m, *given[:4])
    made.kind = "quantized"
    return made


def _parameter(m: Machine, tensor: Any, *_: Any) -> Any:
    if not isinstance(tensor, Tensor):
        raise Unmade
    return tensor


def _subclass(m: Machine, function: Any, kind: Any, args: Any, state: Any) -> Any:
    """_rebuild_from_type_v2: the parts of a tensor, and a class that they become."""
    if not isinstance(function, Named) or not isinstance(kind, Named):
        raise Unmade
    made = m.call(function, args)
    if isinstance(made, Tensor) and kind.name not in ("torch._tensor.Tensor", "torch.Tensor"):
        made.kind = kind.name.rpartition(".")[2]
    return made


def _sparse(m: Machine, layout: Any, parts: Any) -> Tensor:
    """COO: indices, values, size, is_coalesced; CSR and its kin: two of indices, values, size."""
    shape = next(sizes(each) for each in parts if isinstance(each, tuple | list))
    values = [each for each in parts if isinstance(each, Tensor)]
    made = Tensor(values[-1].dtype, shape, kind="sparse")
    made.stride = ()
    return made


def _meta(m: Machine, dtype: Any, shape: Any, stride: Any, *_: Any) -> Tensor:
    return Tensor(dtype_of(dtype), sizes(shape), sizes(stride), kind="meta")


def _from_array(m: Machine, array: Any, dtype: Any, *_: Any) -> Tensor:
    """Of a device whose numbers are written as an array of numpy."""
    return Tensor(dtype_of(dtype), array.shape, kind="array")


def _wrapped(m: Machine, kind: Any, dtype: Any, shape: Any, *_: Any) -> Tensor:
    """A subclass whose numbers are elsewhere: in its state, or on another rank."""
    return Tensor(dtype_of(dtype), sizes(shape), kind=kind.name.rpartition(".")[2])


def _nested(m: Machine, buffer: Any, *_: Any) -> Tensor:
    if not isinstance(buffer, Tensor):
        raise Unmade
    return Tensor(buffer.dtype, buffer.shape, kind="nested")


def _array(m: Machine, *_: Any) -> Array:
    return Array()


def _scalar(m: Machine, dtype: Any, data: Any) -> Any:
    """numpy.float64(0.5) as a plain number."""
    form = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "u8": "Q", "u4": "I", "b1": "?"}
    if not isinstance(data, bytes):
        raise Unmade
    return struct.unpack("<" + form[dtype_of(dtype)], data)[0]


def _ordered(m: Machine, given: Any = (), *_: Any) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    m.copy(len(given))
    if isinstance(given, dict):
        made.update(given)
    else:
        for pair in given:
            m.put(made, list(pair)[:2])
    return made


def _default(m: Machine, *_: Any) -> dict[Any, Any]:
    return {}


def _shape(m: Machine, given: Any = ()) -> Any:
    if not isinstance(given, tuple | list):
        raise Unmade
    return given if isinstance(given, tuple) else sizes(given)


def _encoded(m: Machine, text: Any, encoding: Any = "utf-8") -> bytes:
    """How protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise Unmade
    m.copy(len(text))
    return text.encode(encoding)


def _bytes(m: Machine, given: Any = b"", *_: Any) -> bytes:
    if not isinstance(given, bytes):
        raise Unmade
    return given


def _first(m: Machine, given: Any, *_: Any) -> Any:
    return given


def _text(m: Machine, given: Any = "", *_: Any) -> str:
    if not isinstance(given, str):
        raise Unmade
    return given


_U = "torch._utils."
_NUMPY = ("numpy.core.", "numpy._core.")
BUILDERS: dict[str, Callable[..., Any]] = {
    f"{_U}_rebuild_tensor": _dense, f"{_U}_rebuild_tensor_v2": _dense, f"{_U}_rebuild_tensor_v3": _typed,
    f"{_U}_rebuild_qtensor": _quantized, f"{_U}_rebuild_parameter": _parameter,
    f"{_U}_rebuild_parameter_with_state": _parameter, "torch.nn.parameter.Parameter": _parameter,
    f"{_U}_rebuild_sparse_tensor": _sparse, f"{_U}_rebuild_meta_tensor_no_storage": _meta,
    f"{_U}_rebuild_device_tensor_from_numpy": _from_array, f"{_U}_rebuild_wrapper_subclass": _wrapped,
    f"{_U}_rebuild_device_tensor_from_cpu_tensor": _parameter, f"{_U}_rebuild_nested_tensor": _nested,
    "torch._tensor._rebuild_from_type_v2": _subclass,
    "collections.OrderedDict": _ordered, "collections.Counter": _ordered, "collections.defaultdict": _default,
    "torch.Size": _shape, "torch.torch_version.TorchVersion": _text,
    "_codecs.encode": _encoded, "builtins.bytearray": _bytes, "__builtin__.bytearray": _bytes,
    "torch.jit._pickle.restore_type_tag": _first, "torch.jit._pickle.build_intlist": _first,
    "torch.jit._pickle.build_doublelist": _first, "torch.jit._pickle.build_boollist": _first,
    "torch.jit._pickle.build_tensorlist": _first,
    **{f"{home}multiarray._reconstruct": _array for home in _NUMPY},
    **{f"{home}multiarray.scalar": _scalar for home in _NUMPY},
}  # fmt: skip
