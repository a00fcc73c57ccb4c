"""Names that a comprehension binds: what they may be, and that they stay inside."""

from __future__ import annotations

import ast

from torchtriage.examine.source.script import Script

TEXT = """
import torch
nets = {"one": torch.nn.Linear(1, 1), "two": torch.nn.ReLU()}
part = torch.optim.SGD
states = {name: part.state_dict() for name, part in nets.items()}
all_of_them = [layer.bias() for pair in [(torch.nn.Linear(2, 2),)] for layer in pair]
after = part.step()
"""


def receivers(tail: str) -> list[str]:
    script = Script("nets.py", TEXT.encode())
    (call,) = script.calls(tail)
    origins = script.trace.origins(call.receiver, call.scope)
    return [ast.unparse(each.node) for each in origins if each.node is not None]


def test_what_runs_over_the_values_of_a_dictionary_is_each_of_them() -> None:
    assert receivers("state_dict") == ["torch.nn.Linear(1, 1)", "torch.nn.ReLU()"]


def test_the_same_name_outside_is_another() -> None:
    assert receivers("step") == ["torch.optim.SGD"]


def test_a_second_loop_runs_over_what_the_first_takes() -> None:
    assert receivers("bias") == ["torch.nn.Linear(2, 2)"]
