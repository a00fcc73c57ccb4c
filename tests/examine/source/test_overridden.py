from __future__ import annotations

import pytest

from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.flow import reaches, surely
from torchtriage.examine.source.steps import training_steps

FIT = "    def fit(self):\n        self.before()\n        self.apply()\n"


def written(script, name: str):
    scope = next(each for each in script.facts.scopes if each.name == name)
    return script.written.events(Ring(scope.body, scope))


@pytest.mark.parametrize(
    ("code", "runs"),
    [
        (f"class A:\n    def apply(self): ...\n{FIT}class B(A):\n    def apply(self):\n        b()", ["b"]),
        (f"class A:\n    def apply(self):\n        raise NotImplementedError\n{FIT}"
         "class B(A):\n    pass\nclass C(B):\n    def apply(self):\n        c()", ["c"]),
        (f"class A:\n    def apply(self):\n        a()\n{FIT}class B(A):\n    def apply(self):\n        b()", ["a", "b"]),
        (f"class A:\n{FIT}class B(A):\n    def apply(self):\n        b()", ["b"]),
        (f"class A:\n    def apply(self):\n        a()\n{FIT}class B:\n    def apply(self):\n        b()", ["a"]),
    ],
)  # fmt: skip
def test_a_call_on_self_runs_what_classes_below_put_in_its_place(reads, code: str, runs: list[str]) -> None:
    calls = [event.call.tail for event in written(reads(code), "fit") if event.call is not None]
    assert [tail for tail in calls if len(tail) == 1] == runs


def test_one_form_excludes_the_other(reads) -> None:
    code = f"class A:\n    def apply(self):\n        a()\n{FIT}class B(A):\n    def apply(self):\n        b()"
    events = {event.call.tail: event for event in written(reads(code), "fit") if event.call is not None}
    assert not reaches(events["a"], events["b"])
    assert reaches(events["before"], events["b"])
    assert not surely(events["a"], events["apply"])


def test_a_form_knows_the_calls_of_its_base_as_its_own(reads) -> None:
    script = reads(f"class A:\n    def apply(self): ...\n{FIT}class B(A):\n    def apply(self):\n        b()")
    below = next(each for each in script.facts.scopes if each.name == "apply" and each.host.name == "B")
    assert [call.node.lineno for call in script.trace.sites(below)] == [5]


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
        (LOOP.format("pass").replace("(Loop)", ""), False),
        (LOOP.format("self.net.rest()"), True),
        (LOOP.format("pass") + QUIET, True),
    ],
)
def test_a_hook_of_a_step_runs_what_overrides_it(reads, code: str, runs: bool) -> None:
    (step,) = training_steps(reads(code))
    assert any(True for _ in step.calls("shake")) is runs
