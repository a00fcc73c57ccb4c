"""The batch of this step, and what in it is not finite."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_NAMED = 3  # samples and tensors told by their number


class Delivered:
    """Holds the tensors that the DataLoader delivered last, until their step ends."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.tensors: dict[str, Any] = {}
        self.index = 0
        self.loader: dict[str, Any] = {}
        self.counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.lines: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()

    def batch(self, loader: Any, batch: Any) -> None:
        if loader not in self.lines:
            self.lines[loader] = self.job.caller()
        number = self.counts.get(loader, 0)
        self.counts[loader] = number + 1
        path, line = self.lines[loader]
        self.index, self.loader = number, {"path": path, "line": line, "dataset": type(loader.dataset).__name__}
        self.tensors = _leaves(batch, "batch", 3)

    def iterated(self, _step: int) -> None:
        self.tensors = {}

    def facts(self, calls: Any) -> dict[str, Any]:
        """What is not finite in the batch, or, where no loader delivered one, in what was given to a root module."""
        if self.counts:
            bad = _bad(self.tensors)
            return {"batch": {"index": self.index, "tensors": bad, **self.loader}} if bad else {}
        given = {}
        for call in calls:
            given.update(_leaves([*call.args, *call.kwargs.values()], "input", 3))
        bad = _bad(given)
        return {"batch": {"index": None, "tensors": bad}} if bad else {}


def _leaves(value: Any, name: str, depth: int) -> dict[str, Any]:
    """The floating-point tensors in a batch, by the way to them."""
    import torch

    if isinstance(value, torch.Tensor):
        return {name: value} if value.is_floating_point() and type(value) in (torch.Tensor, torch.nn.Parameter) else {}
    if not depth or not isinstance(value, (dict, tuple, list)):
        return {}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found: dict[str, Any] = {}
    for key, each in list(items)[:16]:
        found.update(_leaves(each, f"{name}[{key!r}]"[:60], depth - 1))
    return found


def _bad(tensors: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each tensor that holds NaN or infinity: how many of its values, and in which samples; -inf alone is a mask."""
    import torch

    found = []
    for name, tensor in tensors.items():
        if tensor.is_cuda or tensor.layout is not torch.strided:
            continue
        values = tensor.detach()
        wrong = torch.isnan(values) | (values == float("inf"))
        if bool(wrong.any()):
            rows = wrong.reshape(len(wrong), -1).any(1) if wrong.dim() else wrong.reshape(1)
            kind = "NaN" if bool(torch.isnan(values).any()) else "infinity"
            count = {
                "bad": int(wrong.sum()),
                "of": wrong.numel(),
                "samples": rows.nonzero().flatten()[:_NAMED].tolist(),
                "shape": list(values.shape),
            }
            found.append({"name": name, "value": kind, **count})
    return found[:_NAMED]
