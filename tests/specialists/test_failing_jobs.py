"""Jobs that end with an error of torch: the fault behind it is found, and where it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.examine.run.launcher.launch import Launch

GIVEN = """
import torch
from torch import nn

model = nn.GRU(4, 8)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
hidden = None
for _ in range(5):
    optimizer.zero_grad()
    outputs, hidden = model(torch.randn(3, 2, 4), hidden)
    outputs.pow(2).mean().backward()
    optimizer.step()
"""
HELD = """
import torch
from torch import nn

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head, self.state = nn.LSTM(4, 8), nn.Linear(8, 1), None

    def forward(self, x):
        seen, self.state = self.cell(x, self.state)
        return self.head(seen)

model = Reader()
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(5):
    optimizer.zero_grad()
    model(torch.randn(3, 2, 4)).pow(2).mean().backward(retain_graph=True)
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        pytest.param(GIVEN, 10, "argument number 2", id="a state that is given"),
        pytest.param(HELD, 11, "Reader.state", id="a state that the model keeps, and the flag"),
    ],
)
def test_a_state_with_the_graph_of_the_last_step_is_named(source: str, line: int, words: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(source)
    case, ended = triage.run(Launch((sys.executable, str(tmp_path / "job.py")), tmp_path / "run"))
    assert ended.code == 1
    (finding,) = case.findings
    assert finding.fault.slug == "hidden-state-not-detached"
    assert (finding.evidence[0].place.line, finding.evidence[0].place.step) == (line, 1)
    assert words in finding.evidence[0].fact
