"""The gradients of an optimizer, and the ledger of its backward passes and steps."""

from __future__ import annotations

from itertools import count
from typing import Any

BEFORE = "before the watch"
FEW = 1 << 16  # numbers that may be copied to look at them together
_numbers = count()  # of optimizers: several may be built in one line


def with_gradient(optimizer: Any) -> list[Any]:
    """The optimizer's parameters whose gradients one fused call can take: dense, on one device, no subclass."""
    import torch

    plain, strided = (torch.Tensor, torch.nn.Parameter), torch.strided
    pairs = [(p, g) for group in optimizer.param_groups for p in group["params"] if (g := p.grad) is not None]
    pairs = [(p, g) for p, g in pairs if type(g) in plain and g.layout is strided]
    where = pairs[0][1].get_device() if pairs else -1
    return [p for p, g in pairs if g.get_device() == where and (g.is_floating_point() or g.is_complex())]


def norms(optimizer: Any, *, apart: bool) -> Any:
    """Norms, not yet waited for, whose root of the sum of squares is the norm of all gradients that one fused call can
    take: that of each, or, unless they are wanted APART, of all where a copy is nothing; None without any.
    """
    import torch

    gradients = [p.grad for p in with_gradient(optimizer)]
    if not gradients:
        return None
    few = not apart and gradients[0].is_cpu and sum(each.numel() for each in gradients) <= FEW
    if few and all(each.dtype is torch.float32 for each in gradients):  # a third of the time
        from torch._utils import _flatten_dense_tensors

        flat = _flatten_dense_tensors(gradients)
        return torch.linalg.vector_norm(flat, dtype=torch.float64).reshape(1)
    found = torch._foreach_norm(gradients)  # pyright: ignore  # public in all but its name
    is_even = all(each.dtype is found[0].dtype for each in found)
    return torch.stack(found).float() if is_even else torch.stack([each.float() for each in found])


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
        """Whether this backward left a gradient that is not zero; looked at closely ten times, where the host has it,
        then believed.
        """
        optimizer = self.optimizer()
        if optimizer is None:
            return False
        if not self.watched:
            self.watched = [p for p in with_gradient(optimizer) if p.numel()][:4]
            self.first = [p.detach().flatten()[:64].clone() for p in self.watched]
        full = [p for p in self.watched if p.grad is not None]
        if not full or (self.backwards < 10 and not any(not p.grad.is_cpu or bool(p.grad.any()) for p in full)):
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

    def moved(self) -> bool:
        """Whether a parameter is not what it was before the first backward pass that was seen."""
        pairs = zip(self.watched, self.first, strict=True)
        return any(bool((p.detach().flatten()[:64] != was).any()) for p, was in pairs)

    def further(self) -> list[tuple[str, str, int]]:
        """The lines that would step it, and the one that has built it."""
        found = [(f"a step of {self.name} stands here, and was never reached", *each) for each in self.unreached]
        return found if self.built[0] == BEFORE else [*found, (f"{self.name} is built here", *self.built)]
