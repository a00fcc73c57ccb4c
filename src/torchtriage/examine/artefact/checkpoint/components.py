"""The parts of a training's state in a tree, told by their structure; names decide only where structure cannot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from torchtriage.catalog.component import Component
from torchtriage.examine.artefact.checkpoint.tensors import DEEP, Array, Tensor, joined, parts
from torchtriage.examine.artefact.pickle.nodes import Called, Named

_PLACES = 200_000
"""Places that are looked at: of an optimizer or a model none inside, so that a checkpoint has some hundred."""
_CPU, _DEVICE = 5056, (16, 44)  # bytes of the state of torch's CPU generator, and of CUDA's and MPS's
_RNG_KEYS = ("rng-python", "rng-numpy", "rng-torch", "rng-device")
_MOMENTS = frozenset(
    {
        "exp_avg",
        "exp_avg_sq",
        "momentum_buffer",
        "square_avg",
        "max_exp_avg_sq",
        "exp_avg_sq_row",
        "acc_delta",
        "state1",
    }
)
_AVERAGED = re.compile(r"(?<![a-z])(?:ema|swa|shadow|averaged)(?![a-z])[^/]*\Z")
_FLAT = frozenset({"optimizer_state_dict", "base_optimizer_state", "single_partition_of_fp32_groups", "loss_scaler"})


class Found(Struct):
    """paths: by component where it lies, in the order of the tree; values: what lies there."""

    paths: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, slug: str, path: str, value: Any) -> None:
        self.paths.setdefault(slug, []).append(path)
        self.values.setdefault(slug, []).append(value)

    def has(self, slug: str) -> bool:
        return slug in self.paths

    def plain(self, slug: str) -> int | float | None:
        """The first plain number of a component such as the epoch."""
        numbers = (each for each in self.values.get(slug, ()) if isinstance(each, int | float))
        return next((each for each in numbers if not isinstance(each, bool)), None)


def components(root: Any, known: Mapping[str, Component]) -> Found:
    """What of KNOWN the tree ROOT holds."""
    found, looking = Found(), _Looking(known)
    todo: list[tuple[int, str, Any]] = [(0, "", root)]
    seen: set[int] = set()
    for _ in range(_PLACES):
        if not todo:
            break
        depth, path, value = todo.pop()
        if isinstance(value, dict | list | tuple | Called):
            if id(value) in seen:
                continue
            seen.add(id(value))
        slug = looking.slug(path, value)
        if slug:
            found.add(slug, path or "/", value)
        else:
            below = _below(value) if depth < DEEP else ()
            todo.extend((depth + 1, joined(path, key), each) for key, each in reversed(list(below)))
    return found


def _below(value: Any) -> Iterator[tuple[Any, Any]]:
    """What may hold parts of a state: a long list of numbers does not."""
    if isinstance(value, list | tuple) and len(value) > 2000:
        return
    yield from parts(value)


class _Looking:
    def __init__(self, known: Mapping[str, Component]) -> None:
        self._marks = [(slug, frozenset(mark)) for slug, each in known.items() for mark in each.marks]
        self._keys = {key: slug for slug, each in known.items() for key in each.keys}

    def slug(self, path: str, value: Any) -> str:
        """The component that VALUE is; "" where it is none by itself."""
        leaf = path.rpartition("/")[2].lower().partition(".")[0]
        for tell in _TELLS:
            if slug := tell(value, path.lower()):
                return slug
        if isinstance(value, dict):
            keys = {key for key in value if isinstance(key, str)}
            for slug, mark in self._marks:
                if mark <= keys:
                    return slug
        return self._by_name(leaf, value)

    def _by_name(self, leaf: str, value: Any) -> str:
        slug = self._keys.get(leaf, "")
        if not slug and "best" in leaf:
            slug = "best"
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_one = is_number or (isinstance(value, Tensor) and value.numel == 1) or isinstance(value, Array)
        is_so = {
            "epoch": is_one, "step": is_one, "best": is_one,
            "config": isinstance(value, dict | Called),
            "versions": isinstance(value, str | dict) and bool(value),
            "optimizer": isinstance(value, Called) or _has_moments(value),  # of a scheme of its own
            "flags": isinstance(value, dict) and bool(value),
        }  # fmt: skip
        return slug if is_so.get(slug, False) else ""


def _weights(value: Any, path: str) -> str:
    """A state_dict: names of parameters with their tensors, and little else."""
    if isinstance(value, Called) and isinstance(value.state, dict) and "_parameters" in value.state:
        return "ema" if _AVERAGED.search(path) else "model"
    rows = value if isinstance(value, dict) else {}
    tensors = [key for key, each in rows.items() if isinstance(each, Tensor)]
    if not tensors or len(tensors) < 0.8 * len(rows) or not all(isinstance(key, str) for key in tensors):
        return ""
    leaf = path.rpartition("/")[2]
    dotted = any("." in key or key in ("weight", "bias") for key in tensors)
    named = any(
        word in leaf for word in ("model", "state_dict", "module", "net", "weights", "ema", "encoder", "decoder")
    )
    if not dotted and not (named and len(tensors) > 1) and (path or len(tensors) < 2):
        return ""
    if _MOMENTS & {key.rpartition(".")[2] for key in tensors}:
        return "optimizer"
    if leaf in ("gradients", "grads", "accumulated_gradients"):
        return "gradients"
    return "ema" if "n_averaged" in rows or _AVERAGED.search(path) else "model"


def _optimizer(value: Any, _: str) -> str:
    if not isinstance(value, dict):
        return ""
    if isinstance(value.get("state"), dict) and isinstance(_groups(value), list | dict):
        return "optimizer"
    return "optimizer" if len(_FLAT & value.keys()) > 1 else ""


def _groups(value: dict[Any, Any]) -> Any:
    """TrainingState calls them groups, beside the type of the optimizer."""
    return value.get("param_groups", value.get("groups") if "type" in value else None)


def _has_moments(value: Any) -> bool:
    todo: list[Any] = [value]
    for _ in range(200):
        if not todo:
            break
        each = todo.pop()
        if isinstance(each, dict):
            if _MOMENTS & {key.rpartition(".")[2] for key in each if isinstance(key, str)}:
                return True
            todo.extend(list(each.values())[:20])
        elif isinstance(each, list):
            todo.extend(each[:20])
    return False


def _generator(value: Any, path: str) -> str:
    """States of generators have forms of their own."""
    match value:
        case Tensor(dtype="uint8" | "int8", shape=(size,)):
            return _of_bytes(size, path)
        case Array(dtype="u1", shape=(size,)):
            return "rng-torch" if size == _CPU else ""
        case tuple() | list():
            return _of_tuple(value)
        case {"bit_generator": _, "state": _}:
            return "rng-numpy"
        case Called() if value.name.startswith("numpy.random."):
            return "rng-numpy"
    return ""


def _of_bytes(size: int, path: str) -> str:
    """16 bytes may be anything: of a device they are where they are called so, or stand in a list by device."""
    if size == _CPU:
        return "rng-torch"
    near = "rng" in path or "cuda" in path or path.rpartition("/")[2].isdigit()
    return "rng-device" if size in _DEVICE and near else ""


def _of_tuple(value: tuple[Any, ...] | list[Any]) -> str:
    if len(value) == 3 and value[0] in (2, 3) and isinstance(value[1], tuple | list) and len(value[1]) == 625:
        return "rng-python"
    is_numpy = len(value) == 5 and value[0] in ("MT19937", "PCG64", "Philox", "SFC64")
    return "rng-numpy" if is_numpy else ""


_TELLS: tuple[Callable[[Any, str], str], ...] = (_generator, _optimizer, _weights)


def groups(optimizer: Any) -> list[dict[Any, Any]]:
    """The param_groups of the state of an optimizer."""
    told = _groups(optimizer) if isinstance(optimizer, dict) else None
    rows = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    return [each for each in rows if isinstance(each, dict)]


def is_hollow(optimizer: Any) -> bool:
    """Whether the state of an optimizer that keeps one (Adam and its kin, momentum) is empty."""
    if not isinstance(optimizer, dict) or optimizer.get("state") != {} or not groups(optimizer):
        return False
    return any("betas" in each or _positive(each.get("momentum")) for each in groups(optimizer))


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def scheduled(optimizer: Any) -> bool:
    """Whether a scheduler was attached: it leaves initial_lr in every group."""
    return any("initial_lr" in each for each in groups(optimizer))


def classes(root: Any) -> tuple[str, ...]:
    """The class of the root, where the root is an object that is not made."""
    return (root.name,) if isinstance(root, Called | Named) else ()
