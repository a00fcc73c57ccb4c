"""The first module to make NaN or Inf, and the gradient norms of the steps before.

Copy `Watch` into your code: it wraps a model, looks at each module's outputs and each parameter's gradient, and keeps a
short history. Here it watches a small training with a fault planted. Prints the step, the module, whether what went
into it was finite, the norm of all gradients in the last steps, and the norm of each in this one.
"""

from __future__ import annotations

import argparse
import math
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

PLANTS = ("root", "rate", "batch", "none")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--plant", choices=PLANTS, default="root", help="the fault: a root at 0, a rate, a NaN in a batch"
    )
    parser.add_argument("--steps", type=int, default=60, help="steps to train (default 60)")
    return parser.parse_args()


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The floating-point tensors in VALUE, however nested."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors(each)


def finite(value: Any) -> bool:
    return all(bool(each.isfinite().all()) for each in tensors(value))


class Watch:
    """Looks at a model from forward to backward; `first` says what was not finite first in this step.

    Each look waits for the device: put it in for the steps around the failure.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.first: str | None = None
        self.norms: deque[float] = deque(maxlen=8)
        self.by_parameter: dict[str, float] = {}
        for name, module in model.named_modules():
            module.register_forward_hook(self._hook(name or "the model"))

    def _hook(self, name: str) -> Any:
        def look(_module: nn.Module, inputs: Any, output: Any) -> None:
            if self.first is None and not finite(output):
                came = "finite" if finite(inputs) else "not finite themselves"
                self.first = f"the output of {name}, whose inputs were {came}"

        return look

    def after_backward(self) -> None:
        """Call it between backward() and step()."""
        named = [(name, each.grad) for name, each in self.model.named_parameters() if each.grad is not None]
        self.by_parameter = {name: grad.norm().item() for name, grad in named}
        self.norms.append(math.hypot(*self.by_parameter.values()))
        bad = [name for name, grad in named if not finite(grad)]
        if self.first is None and bad:
            self.first = f"the gradient of {bad[-1]}, after a forward pass that was finite"


class Root(nn.Module):  # type: ignore[misc]
    """A square root whose slope at 0 is infinite."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * (x > 0)).sqrt()


def main() -> None:
    given = options()
    torch.manual_seed(0)
    middle = Root() if given.plant == "root" else nn.Identity()
    model = nn.Sequential(nn.Linear(8, 16), middle, nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3 if given.plant == "rate" else 0.01)
    watch = Watch(model)
    for step in range(given.steps):
        inputs = torch.randn(32, 8)
        if given.plant == "batch" and step == 20:
            inputs[3, 5] = math.nan
        optimizer.zero_grad()
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        watch.after_backward()
        if watch.first or not finite(loss):
            print(f"step {step}: {watch.first or 'the loss, of a finite output'}")
            print("gradient norms up to it:", ", ".join(f"{norm:.3g}" for norm in watch.norms))
            by_parameter = (f"{name} {norm:.3g}" for name, norm in watch.by_parameter.items())
            print("by parameter, in this step:", ", ".join(by_parameter))
            return
        optimizer.step()
    print(f"{given.steps} steps, all finite; gradient norm {watch.norms[-1]:.3g}")


if __name__ == "__main__":
    main()
