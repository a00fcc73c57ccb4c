"""One batch, again and again: does the loop move the weights, do gradients arrive, does the loss fall?

Put your own model, batch and step in place of the small ones. Prints the loss along the way, what a guess costs, how
far the weights went, the gradient norm of each parameter at the first step, and which link is broken.
"""

from __future__ import annotations

import argparse
import math

import torch
from torch import nn
from torch.nn import functional

CLASSES = 10
PLANTS = ("none", "no-step", "zeroed-late", "detached", "softmax")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plant", choices=PLANTS, default="none", help="a fault to plant (default none)")
    parser.add_argument("--steps", type=int, default=200, help="steps on the one batch (default 200)")
    return parser.parse_args()


def loss_of(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, plant: str) -> torch.Tensor:
    outputs = model(inputs)
    if plant == "softmax":
        outputs = outputs.softmax(1)
    loss = functional.cross_entropy(outputs, labels)
    return loss.detach().requires_grad_() if plant == "detached" else loss


def train(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], steps: int, plant: str) -> list[float]:
    """The loss of each step; the gradients of the first are printed."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, *batch, plant)
        loss.backward()
        if step == 0:
            report_gradients(model)
        if plant == "zeroed-late":
            optimizer.zero_grad()
        if plant != "no-step":
            optimizer.step()
        losses.append(loss.item())
    return losses


def report_gradients(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        told = "none" if parameter.grad is None else f"{parameter.grad.norm().item():.3g}"
        print(f"gradient of {name}: {told}")


def verdict(losses: list[float], moved: float, arrived: bool) -> str:
    if not arrived:
        return "no gradient arrives: the loss has lost its graph (loss-detached)"
    if moved == 0:
        return "the weights do not move: step() is missing, or gradients are cleared before it (step-missing)"
    if losses[-1] > 0.1:
        return "it learns, and stops early: what does the loss get? (softmax-before-cross-entropy, loss-broadcast)"
    return "the loop learns this batch by heart: look at the data, the rate, the size"


def main() -> None:
    given = options()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    batch = torch.randn(8, 20), torch.randint(CLASSES, (8,))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    losses = train(model, batch, given.steps, given.plant)
    pairs = zip(before, model.parameters(), strict=True)
    moved = math.hypot(*((new.detach() - old).norm().item() for old, new in pairs))
    with torch.enable_grad():
        arrived = loss_of(model, *batch, given.plant).grad_fn is not None
    print(f"a guess costs ln({CLASSES}) = {math.log(CLASSES):.3f}")
    print("loss:", ", ".join(f"{losses[at]:.3f}" for at in range(0, len(losses), max(1, len(losses) // 8))))
    print(f"at the end {losses[-1]:.4f}; the weights moved by {moved:.3g}")
    print(verdict(losses, moved, arrived))


if __name__ == "__main__":
    main()
