from __future__ import annotations

import pytest

from torchtriage.examine.source.steps import training_steps

LOOP = """
import torch

class Loop:
    def __init__(self, net, batches):
        self.net, self.batches = net, batches
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def hook(self):
        {}

    def run(self):
        for batch in self.batches:
            self.net(batch).sum().backward()
            self.hook()
            self.opt.step()

class Noisy(Loop):
    def hook(self):
        self.net.shake()
"""
QUIET = """
class Quiet(Loop):
    def hook(self):
        self.net.rest()
"""


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        (LOOP.format("pass"), True),
        (LOOP.format("raise NotImplementedError('write me')"), True),
        (LOOP.format("self.net.rest()"), False),
        (LOOP.format("pass") + QUIET, False),
    ],
)
def test_an_empty_hook_runs_the_one_method_that_overrides_it(reads, code: str, runs: bool) -> None:
    (step,) = training_steps(reads(code))
    assert any(True for _ in step.calls("shake")) is runs
