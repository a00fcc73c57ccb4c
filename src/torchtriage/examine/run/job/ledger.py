"""The gradients of an optimizer, and the ledger of its backward passes and steps."""

from __future__ import annotations

from itertools import count
from typing import Any

BEFORE = "before the watch"
_numbers = count()  # of optimizers: several may be built in one line


def with_gradient(optimizer: Any) -> list[Any]:
    """The optimizer's parameters whose gradients one fused call can take: dense, on one device, no subclass."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    found = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    found = [p for p in found if type(p.grad) in plain and p.grad.layout is torch.strided]
    return [p for p in found if p.grad.device == found[0].grad.device and fractional(p.grad)]


def fractional(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() or tensor.is_complex())


def total_norm(optimizer: Any) -> Any:
    """The sum of the norms of all gradients that one fused call can take, not yet waited for; None without any."""
    import torch

    owners = with_gradient(optimizer)
    if not owners:
        return None
    norms = torch._foreach_norm([p.grad for p in owners])  # pyright: ignore  # public in all but its name
    return torch.stack([each.float() for each in norms]).sum()


class Ledger:
    """Of one optimizer: how often backward filled its gradients, and how often it stepped."""

    def __init__(self, optimizer: Any, built: tuple[str, int]) -> None:
        import weakref

        self.number = next(_numbers)
        self.optimizer, self.name, self.built = weakref.ref(optimizer), type(optimizer).__name__, built
        self.backwards = self.steps = 0
        self.beside = False
        self.where: tuple[str, int] | None = None
        self.unreached: list[tuple[str, int]] = []  # lines that would step it
        self.first: list[Any] = []
        self.watched: list[Any] = []

    def filled(self, caller: Any) -> bool:
        """Whether this backward left a gradient that is not zero; looked at closely ten times, then believed."""
        optimizer = self.optimizer()
        if optimizer is None:
            return False
        if not self.watched:
            self.watched = [p for p in with_gradient(optimizer) if p.numel()][:4]
            self.first = [p.detach().flatten()[:64].clone() for p in self.watched]
        full = [p for p in self.watched if p.grad is not None]
        if not full or (self.backwards < 10 and not any(bool(p.grad.any()) for p in full)):
            return False
        self.where = self.where or caller()
        self.backwards += 1
        return True

    def look_beside(self, leaves: list[Any], ledgers: list[Ledger]) -> None:
        """Notes whether a backward gave a gradient to a tensor that is no parameter and in no optimizer: an input."""
        import torch

        known = [each for ledger in ledgers if (each := ledger.optimizer()) is not None]
        owned = {id(p) for optimizer in known for group in optimizer.param_groups for p in group["params"]}
        self.beside = any(not isinstance(leaf, torch.nn.Parameter) and id(leaf) not in owned for leaf in leaves)

    def facts(self) -> dict[str, Any]:
        pairs = zip(self.watched, self.first, strict=True)
        moved = any(bool((p.detach().flatten()[:64] != was).any()) for p, was in pairs)
        path, line = self.where or ("", 0)
        built = f"{self.built[0]}:{self.built[1]}"
        counts = {"backwards": self.backwards, "steps": self.steps, "moved": moved, "beside": self.beside}
        named = {"optimizer": self.name, "number": self.number, "built": built}
        further = [(f"a step of {self.name} stands here, and was never reached", *each) for each in self.unreached]
        if self.built[0] != BEFORE:
            further.append((f"{self.name} is built here", *self.built))
        return {**named, **counts, "path": path, "line": line, "further": further}
