"""What the source alone shows about custom autograd functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.classes import FunctionClass

# Decorators that leave the signature of forward and backward as it is.
_HARMLESS = frozenset(
    {"builtins.staticmethod", "builtins.classmethod", "torch.amp.custom_fwd", "torch.amp.custom_bwd", "torch.no_grad"}
    | {"torch.autograd.once_differentiable", "torch.compiler.disable", "typing.override", "torch.jit.ignore"}
)


@detector("source/gradient-count")
def gradient_count(function: FunctionClass) -> Iterator[Sighting]:
    """The backward method returns another number of gradients than forward has inputs."""
    if function.is_open or not function.decorators <= _HARMLESS:
        return
    most = len(function.inputs)
    least = most - function.optional
    for returned, gradients in function.gradients():
        real = gradients[:most] + [each for each in gradients[most:] if not _is_none(each)]
        if len(gradients) < least or len(real) > most:
            yield function.script.seen(
                returned.node,
                f"backward returns {len(gradients)} {_noun(len(gradients), 'gradient')}, forward takes "
                f"{most} {_noun(most, 'input')}: torch raises RuntimeError here",
            )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
