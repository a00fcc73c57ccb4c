"""State as JSON and back, value for value: what JSON has no word for is written as {"$": word, …}.

Exact are floats to the last bit, nan and infinities, ints of any size, tuples, keys that are no strings, arrays and
numbers of NumPy. Tensors go to a file of their own; what stands here is their name. No object of a class is written, so
none is built when a state is read.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state.manifest import Damaged

DEEPEST = 200  # levels of nesting; json itself ends at about 1,000
Keep = Callable[[Any, str], Any]  # a tensor and its path, to what stands for it
_AS_DICT = (dict, OrderedDict, defaultdict)


def encoded(value: Any, path: str, keep: Keep, depth: int = 0) -> Any:
    """VALUE as what json writes; KEEP takes each tensor. Raises TriageError for what cannot be, naming its path."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$": "float", "is": repr(value)}
    if depth > DEEPEST:
        raise _refused(path, f"is nested deeper than {DEEPEST} levels, or holds itself")
    if kind in _CONTAINERS:
        return _container(value, path, keep, depth + 1)
    if kind in _AS_DICT:
        return _mapping(value, path, keep, depth + 1)
    return _rare(value, path, keep)


def decoded(value: Any, tensor: Callable[[dict[str, Any]], Any]) -> Any:
    """What `encoded` was given; TENSOR finds a tensor again. Raises Damaged at a word that is not known here."""
    if isinstance(value, list):
        return [decoded(each, tensor) for each in value]
    if not isinstance(value, dict):
        return value
    word = value.get("$")
    if word is None:
        return {key: decoded(each, tensor) for key, each in value.items()}
    if word == "tensor":
        return tensor(value)
    if word not in _READ:
        raise Damaged(f"the state holds {word!r}, which this version of torchtriage does not know")
    return _READ[word]({**value, "is": decoded(value["is"], tensor)})


def text(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"the state is no JSON: {error}") from error


def same(one: Any, other: Any) -> bool:
    """Whether both are written alike; nan is nan, and 1 is not 1.0."""
    return text(encoded(one, "", _unkept)) == text(encoded(other, "", _unkept))


def _unkept(tensor: Any, _: str) -> Any:
    return [str(tensor.dtype), list(tensor.shape), str(tensor.tolist())]


def _container(value: Any, path: str, keep: Keep, depth: int) -> Any:
    kind = type(value)
    if kind is Counter:
        return {"$": "Counter", "is": encoded(dict(value), path, keep, depth)}
    items = sorted(value, key=repr) if kind in (set, frozenset) else value
    held = [encoded(each, f"{path}[{n}]", keep, depth) for n, each in enumerate(items)]
    if kind is list:
        return held
    return {"$": kind.__name__, "is": held} | ({"maxlen": value.maxlen} if kind is deque else {})


def _mapping(value: Mapping[Any, Any], path: str, keep: Keep, depth: int) -> Any:
    if all(type(key) is str for key in value) and "$" not in value:
        return {key: encoded(each, f"{path}.{key}", keep, depth) for key, each in value.items()}
    pairs = [
        [encoded(key, f"{path} key {key!r}", keep, depth), encoded(each, f"{path}.{key}", keep, depth)]
        for key, each in value.items()
    ]
    return {"$": "dict", "is": pairs}


def _rare(value: Any, path: str, keep: Keep) -> Any:
    """What only some states hold: tensors and their types, arrays, bytes, complex numbers."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return keep(value, path)
    if torch is not None and isinstance(value, torch.Size):
        return {"$": "Size", "is": list(value)}
    if torch is not None and isinstance(value, (torch.dtype, torch.device)):
        return {"$": type(value).__name__, "is": str(value).removeprefix("torch.")}
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufc":
        held = {"dtype": value.dtype.str, "is": base64.b64encode(value.tobytes()).decode()}
        return {"$": "array", "shape": list(value.shape), **held} if value.ndim else {"$": "number", **held}
    if type(value) is bytes:
        return {"$": "bytes", "is": base64.b64encode(value).decode()}
    if type(value) is complex:
        return {"$": "complex", "is": [repr(value.real), repr(value.imag)]}
    raise _refused(path, f"is {_called(value)}, which a checkpoint without pickle cannot hold")


def _called(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}".replace("a builtins.", "a ")


def _refused(path: str, why: str) -> TriageError:
    return TriageError(
        f"{path} {why}",
        "TrainingState",
        "Leave it out, write it as numbers, strings, lists and dicts, or give what holds it a state_dict and a "
        "load_state_dict that do.",
    )


def _array(value: dict[str, Any]) -> Any:
    import numpy as np

    return np.frombuffer(base64.b64decode(value["is"]), np.dtype(value["dtype"])).reshape(value["shape"]).copy()


def _number(value: dict[str, Any]) -> Any:
    import numpy as np

    return np.frombuffer(base64.b64decode(value["is"]), np.dtype(value["dtype"]))[0]


def _of_torch(value: dict[str, Any]) -> Any:
    import torch

    made = torch.device(value["is"]) if value["$"] == "device" else getattr(torch, value["is"])
    if not isinstance(made, (torch.dtype, torch.device)):
        raise Damaged(f"the state holds {value['is']!r} as a {value['$']}")
    return made


def _size(value: dict[str, Any]) -> Any:
    import torch

    return torch.Size(value["is"])


_CONTAINERS = (list, tuple, set, frozenset, deque, Counter)
_READ: dict[str, Callable[[dict[str, Any]], Any]] = {
    "float": lambda value: float(value["is"]),
    "tuple": lambda value: tuple(value["is"]),
    "set": lambda value: set(value["is"]),
    "frozenset": lambda value: frozenset(value["is"]),
    "deque": lambda value: deque(value["is"], value["maxlen"]),
    "Counter": lambda value: Counter(value["is"]),
    "dict": lambda value: {key: each for key, each in value["is"]},  # noqa: C416 - the pairs are lists
    "bytes": lambda value: base64.b64decode(value["is"]),
    "complex": lambda value: complex(*map(float, value["is"])),
    "array": _array,
    "number": _number,
    "dtype": _of_torch,
    "device": _of_torch,
    "Size": _size,
}
