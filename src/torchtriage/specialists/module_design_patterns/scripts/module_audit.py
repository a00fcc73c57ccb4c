"""What a module would do wrong when it is trained, moved, saved or copied: checks on a CPU, one line for each.

Builds the module that --model names (default: one with faults planted) and prints for each check "ok", or the parts
that fail it: not registered, without a gradient (from its first output), not finite, shared (right where weights are
tied on purpose), random in evaluation, not restored by its state dict, not copied by deepcopy.

    python module_audit.py --model mypackage.models:build --shape 4,3,32,32
"""

from __future__ import annotations

import argparse
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module

import torch
from torch import nn

Build = Callable[[], nn.Module]


class Planted(nn.Module):  # type: ignore[misc]
    """A stand-in for your model, with faults to be found."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(8, 8)]
        self.shift = torch.randn(8)
        self.unused = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(nn.functional.dropout(self.layers[0](x) + self.shift, 0.5))


def unregistered(build: Build, _inputs: torch.Tensor) -> Iterator[str]:
    """Attributes that to(), state_dict() and the optimizer do not see."""
    for name, part in build().named_modules():
        for attribute, value in vars(part).items():
            inner = list(value.values()) if isinstance(value, dict) else value
            held = inner if isinstance(inner, (list, tuple)) else [inner]
            if attribute[0] != "_" and any(isinstance(each, (torch.Tensor, nn.Module)) for each in held):
                yield f"{name}.{attribute}".lstrip(".")


def first(output: object) -> torch.Tensor:
    """The first tensor of what a model gives: itself, or within tuples, lists, dicts and dataclasses."""
    while not isinstance(output, torch.Tensor):
        parts = output if isinstance(output, (dict, list, tuple)) else vars(output)
        output = next(iter(parts.values() if isinstance(parts, dict) else parts))
    return output


def without_gradient(build: Build, inputs: torch.Tensor) -> Iterator[str]:
    model = build()
    output = first(model(inputs))
    if output.requires_grad:
        output.square().sum().backward()
    yield from (name for name, each in model.named_parameters() if each.requires_grad and each.grad is None)


def not_finite(build: Build, _inputs: torch.Tensor) -> Iterator[str]:
    """Parameters that hold NaN, infinity, or sizes that no initialisation gives."""
    for name, each in build().named_parameters():
        if not torch.isfinite(each).all() or each.abs().max() > 1e6:
            yield name


def shared(build: Build, _inputs: torch.Tensor) -> Iterator[str]:
    every = list(build().named_parameters(remove_duplicate=False))
    times = Counter(id(each) for _, each in every)
    yield from (name for name, each in every if times[id(each)] > 1)


def random_in_evaluation(build: Build, inputs: torch.Tensor) -> Iterator[str]:
    model = build()
    yield from differing(model, model, inputs, seeds=(1, 2))


def not_restored(build: Build, inputs: torch.Tensor) -> Iterator[str]:
    """Whether a second model with the first one's state dict gives the first one's outputs."""
    model, other = build(), build()
    other.load_state_dict(model.state_dict())
    yield from differing(model, other, inputs, seeds=(1, 1))


def not_copied(build: Build, inputs: torch.Tensor) -> Iterator[str]:
    model = build()
    yield from differing(model, copy.deepcopy(model), inputs, seeds=(1, 1))


def differing(one: nn.Module, other: nn.Module, inputs: torch.Tensor, seeds: tuple[int, int]) -> Iterator[str]:
    outputs = []
    for model, seed in zip((one, other), seeds, strict=True):
        torch.manual_seed(seed)
        with torch.no_grad():
            outputs.append(first(model.eval()(inputs)))
    if not torch.equal(*outputs):
        yield f"outputs differ by up to {(outputs[0] - outputs[1]).abs().max():.2g}"


CHECKS: dict[str, Callable[[Build, torch.Tensor], Iterator[str]]] = {
    "not registered": unregistered,
    "without a gradient": without_gradient,
    "not finite": not_finite,
    "shared": shared,
    "random in evaluation": random_in_evaluation,
    "not restored": not_restored,
    "not copied": not_copied,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="MODULE:CALLABLE that builds the model")
    parser.add_argument("--shape", default="4,8", help="shape of a batch, such as 4,3,32,32")
    parser.add_argument("--vocabulary", type=int, default=0, help="the input is token ids below this number")
    given = parser.parse_args()
    name, _, attribute = given.model.partition(":")
    build = getattr(import_module(name), attribute) if given.model else Planted
    shape = [int(each) for each in given.shape.split(",")]
    inputs = torch.randint(given.vocabulary, shape) if given.vocabulary else torch.randn(shape)
    for title, check in CHECKS.items():
        print(f"{title:21} {', '.join(check(build, inputs)) or 'ok'}")


if __name__ == "__main__":
    main()
