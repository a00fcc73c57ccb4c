"""Gradient scalers, as far as they are known."""

from __future__ import annotations

from typing import Any


class Scaling:
    """What is known about gradient scalers: the loss before scaling, and whether a scaled step reached its update."""

    def __init__(self) -> None:
        self.reached = False
        self.scaler: Any = None
        self._scaled: Any = None
        self._loss: Any = None

    def scaled(self, tensor: Any, loss: Any) -> None:
        """Remembers that TENSOR is LOSS times the scale."""
        if hasattr(loss, "detach") and hasattr(tensor, "detach"):
            self._scaled, self._loss = tensor, loss.detach()

    def unscaled(self, tensor: Any) -> Any:
        """The loss behind TENSOR, which is TENSOR itself when nobody scaled it."""
        found = self._loss if tensor is self._scaled else tensor
        self._scaled = self._loss = None
        return found

    def behind(self, tensor: Any) -> Any:
        """The same, for one who only looks."""
        return self._loss if tensor is self._scaled else tensor

    def forget(self) -> None:
        self._scaled = self._loss = None

    def held_back(self, optimizer: Any) -> bool:
        """Whether a fused optimizer is about to skip its update; on a device that cannot be known yet."""
        found = getattr(optimizer, "found_inf", None) if self.scaler is not None else None
        return found is not None and found.device.type == "cpu" and bool(found.item())
