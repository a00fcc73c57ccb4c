"""What a property gives is what it returns, and what is unpacked keeps the name that it gets."""

from __future__ import annotations

import ast

from torchtriage.examine.source.script import Script

TEXT = """
import functools
import torch

class Parts:
    def __init__(self):
        self._net, self.width = torch.nn.Linear(1, 1), 3

    @property
    def net(self):
        return self._net

    @functools.cached_property
    def optimizer(self):
        return torch.optim.SGD(self.net.parameters())

    def scheduler(self):
        return None

parts = Parts()
parts.net.eval()
parts.optimizer.step()
parts.scheduler.clear()
"""


def made(tail: str) -> list[tuple[str, str]]:
    script = Script("parts.py", TEXT.encode())
    (call,) = script.calls(tail)
    origins = script.trace.origins(call.receiver, call.scope)
    return [(ast.unparse(each.node), each.store.name if each.store else "") for each in origins if each.node]


def test_a_property_is_followed_to_what_it_returns() -> None:
    assert made("eval") == [("torch.nn.Linear(1, 1)", "self._net")]
    assert made("step") == [("torch.optim.SGD(self.net.parameters())", "")]


def test_a_method_that_is_not_called_gives_nothing() -> None:
    assert made("clear") == [("parts.scheduler", "")]
