"""One whole state: an index of JSON lines, and the numbers of all tensors in one file beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _draws, _raw

if TYPE_CHECKING:
    from ._walk import Walk

KEPT = 4 << 20  # bytes of a tensor that no optimizer, model or average holds, up to which its numbers are kept
PLAIN = (bool, int, float, str)


class Dump:
    """Rows of one state: [kind, holder, key, value or tensor], written by `write`."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._data: list[bytes] = []
        self._size = 0

    def add(self, kind: str, holder: str, key: str, value: Any, most: int | None = None) -> None:
        """VALUE, a tensor or plain; of a tensor larger than MOST only the mark."""
        row: dict[str, Any] = {"kind": kind, "holder": holder, "key": key}
        if isinstance(value, bytes):
            row["mark"] = _raw.mark(value)
        elif hasattr(value, "detach"):
            each = _raw.plain(value)
            data = _raw.raw(each)
            row |= {"mark": _raw.mark(data), "dtype": str(each.dtype).removeprefix("torch."), "shape": list(each.shape)}
            if most is None or len(data) <= most:
                row |= {"at": self._size, "bytes": len(data)}
                self._data.append(data)
                self._size += len(data)
        else:
            row["value"] = value if value is None or isinstance(value, PLAIN) else repr(value)[:200]
        self.rows.append(row)

    def module(self, kind: str, holder: str, module: Any) -> None:
        for key, each in module.named_parameters():
            self.add(kind, holder, key, each)
        for key, each in module.named_buffers():
            self.add("buffers" if kind == "model" else kind, holder, key, each)

    def optimizer(self, holder: str, optimizer: Any, names: dict[int, str]) -> None:
        for number, group in enumerate(optimizer.param_groups):
            for key, each in group.items():
                if key not in ("params", "param_names"):
                    self.add("groups", holder, f"param_groups[{number}][{key!r}]", each)
            for place, parameter in enumerate(group["params"]):
                name = names.get(id(parameter), f"param_groups[{number}]['params'][{place}]")
                found = optimizer.state.get(parameter, {})
                for key, each in found.items() if isinstance(found, dict) else ():
                    if each is not None:
                        self.add("optimizer", holder, f"{name}: {key}", each)

    def told(self, kind: str, holder: str, value: Any, key: str = "", depth: int = 6) -> None:
        """What a state_dict holds, as far as it is plain."""
        if isinstance(value, dict) and depth:
            for name, each in value.items():
                self.told(kind, holder, each, f"{key}.{name}" if key else str(name), depth - 1)
        elif isinstance(value, (list, tuple)) and depth and not all(isinstance(each, PLAIN) for each in value):
            for number, each in enumerate(value):
                self.told(kind, holder, each, f"{key}[{number}]", depth - 1)
        elif value is None or isinstance(value, (*PLAIN, list, tuple)) or hasattr(value, "detach"):
            self.add(kind, holder, key, value)

    def found(self, walk: Walk, trained: set[int]) -> None:
        """All that WALK has found; modules with parameters that are TRAINED are models."""
        names = {
            id(each): f"{label}.{key}"
            for label, module in reversed(walk.parts.get("module", []))
            for key, each in module.named_parameters()
        }
        inner = {
            id(part) for _, module in walk.parts.get("module", []) for part in module.modules() if part is not module
        }
        for label, module in walk.parts.get("module", []):
            if id(module) not in inner:
                learns = any(id(each) in trained for each in module.parameters())
                self.module("model" if learns else "module", label, module)
        for label, optimizer in walk.parts.get("optimizer", []):
            self.optimizer(label, optimizer, names)
        for kind in ("scheduler", "scaler"):
            for label, each in walk.parts.get(kind, []):
                self.told(kind, label, each.state_dict())
        for label, each in walk.parts.get("generator", []):
            self.add("generator", label, "", _draws.state_of(each))
        for label, each in walk.parts.get("tensor", []):
            if id(each) not in names:
                self.add("tensor", label, "", each, KEPT)
        for label, value in walk.numbers.items():
            self.add("number", label, "", value)

    def write(self, path: str, **about: Any) -> None:
        """To PATH.bin and then PATH.json: whoever finds the latter finds both whole."""
        with open(f"{path}.bin", "wb") as file:  # noqa: PTH123
            file.writelines(self._data)
        with open(f"{path}.json", "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump({**about, "rows": self.rows}, file)
