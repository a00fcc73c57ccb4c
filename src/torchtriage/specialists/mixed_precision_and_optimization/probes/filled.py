"""What backward passes have put into the gradients of an optimizer since its last turn."""

from __future__ import annotations

from ctypes import string_at
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchtriage.examine.run.job.job import Job

_BYTES = 64  # of a gradient that are looked at
_TRIES = 20  # parameters that are looked at to find one with a gradient
_CLIPS = ("_clip_grads_with_norm_", "clip_grads_with_norm_", "clip_grad_norm_", "clip_grad_value_")


class Book:
    """What is known of the gradients of every optimizer; clips and unscale_ are edits that everyone knows.

    on: whether anything is looked at.
    """

    def __init__(self, job: Job) -> None:
        import weakref

        import torch
        from torch.nn import utils
        from torch.nn.utils import clip_grad

        self.on = True
        self._of: weakref.WeakKeyDictionary[Any, Filled] = weakref.WeakKeyDictionary()
        job.listen(self.built)
        job.wrap(torch.amp.GradScaler, "unscale_", self._edit)
        for owner in (clip_grad, utils):
            for name in _CLIPS:
                if hasattr(owner, name):
                    job.wrap(owner, name, self._edit)

    def built(self, optimizer: Any) -> None:
        self.of(optimizer)

    def of(self, optimizer: Any) -> Filled:
        return self._of.setdefault(optimizer, Filled(optimizer))

    def __iter__(self) -> Iterator[Filled]:
        return iter(list(self._of.values()))

    def check(self) -> None:
        for filled in self:
            filled.check()

    def forget(self) -> None:
        for filled in self:
            filled.forget()

    def _edit(self, original: Any) -> Any:
        def editing(*args: Any, **kwargs: Any) -> Any:
            if not self.on:
                return original(*args, **kwargs)
            self.check()
            result = original(*args, **kwargs)
            for filled in self:
                filled.accept()
            return result

        return editing


class Filled:
    """The backward passes that filled an optimizer's gradients, seen at two of its parameters.

    parts: what was said of each of those passes. edited: the gradients were changed by something unknown.
    unscaled: how many of the parts a scaler's unscale_ has divided, called by the script itself.
    """

    def __init__(self, optimizer: Any) -> None:
        import weakref

        self._optimizer = weakref.ref(optimizer)
        self._owners: list[Any] = []
        self._noted: list[Any] | None = None
        self.clear()

    def clear(self) -> None:
        """As after a turn, or after the gradients were cleared."""
        self.parts: list[Any] = []
        self.edited = False
        self.unscaled = 0

    def forget(self) -> None:
        """Nothing is known of what happened since the last look."""
        self._noted = None
        self.clear()

    def check(self) -> None:
        """Whether someone has changed the gradients since the last look: cleared them, or edited them."""
        now = self._state()
        if now == self._noted:
            return
        if self._noted is not None:
            if self._all_zero():
                self.clear()
            else:
                self.edited = bool(self.parts)
        self._noted = now

    def backwarded(self, part: Callable[[], Any]) -> bool:
        """Notes PART of a pass that has just ended; False when the pass did not reach this optimizer's gradients."""
        now = self._state() or self._state_of(self._with_gradient())
        if now is None or now == self._noted:
            return False
        self._noted = now
        self.parts.append(part())
        return True

    def accept(self) -> None:
        """Notes the gradients as they are now: who changed them is known."""
        self._noted = self._state()

    def _state(self) -> list[Any] | None:
        """Identity, version and some values of the watched gradients; None while there are none."""
        return self._state_of([owner for kept in self._owners if (owner := kept()) is not None])

    @staticmethod
    def _state_of(owners: list[Any]) -> list[Any] | None:
        grads = [owner.grad for owner in owners]
        return [(id(grad), grad._version, sample(grad)) for grad in grads if grad is not None] or None

    def _with_gradient(self) -> list[Any]:
        import weakref

        optimizer = self._optimizer()
        if optimizer is None:
            return []
        every = [p for group in optimizer.param_groups for p in group["params"]]
        ends = (every[:_TRIES], every[: -_TRIES - 1 : -1])
        found = [p for part in ends if (p := next((p for p in part if p.grad is not None), None)) is not None]
        self._owners = [weakref.ref(p) for p in found]
        return found

    def _all_zero(self) -> bool:
        """Whether the gradients are gone or zero; on a device a change without a wait means nothing sure."""
        grads = [owner.grad for kept in self._owners if (owner := kept()) is not None]
        here = [grad for grad in grads if grad is not None]
        return all(grad.device.type == "cpu" and not bool(grad.any()) for grad in here)


def sample(grad: Any) -> bytes:
    """The first bytes in one: what is written through grad.data or grad.numpy() leaves the version as it was."""
    import torch

    if type(grad) is not torch.Tensor or grad.device.type != "cpu" or not grad.is_contiguous():
        return b""
    return string_at(grad.data_ptr(), min(_BYTES, grad.nbytes)) if grad.nbytes else b""
