from __future__ import annotations

import pytest

from torchtriage.examine.source.steps import training_steps

HEAD = "import torch\nmodel = torch.nn.Linear(1, 1)\noptimizer = torch.optim.SGD(model.parameters())\n"


def lines(ring) -> int:
    return ring.block.owner.lineno


@pytest.mark.parametrize(
    ("code", "step", "around"),
    [
        ("for x in d:\n    model(x).backward()\n    optimizer.step()", 4, []),
        ("for e in range(9):\n    for x in d:\n        model(x).backward()\n        optimizer.step()", 5, [4]),
        ("for x in d:\n    for part in x:\n        model(part).backward()\n    optimizer.step()", 4, []),
        ("def f(x):\n    model(x).backward()\n    optimizer.step()\nfor x in d:\n    f(x)", 7, []),
        ("def f(d):\n    for x in d:\n        model(x).backward()\n        optimizer.step()\n"
         "for e in range(9):\n    f(d)", 5, [8]),
        ("while True:\n    model(d).backward()\n    optimizer.step()", 4, []),
        ("def f(x):\n    model(x).backward()\n    optimizer.step()", 4, []),
        ("def f(x):\n    def closure():\n        model(x).backward()\n    for x in d:\n        optimizer.step(closure)",
         7, []),
        ("class T:\n    def a(self):\n        model(1).backward()\n        optimizer.step()\n"
         "    def b(self):\n        for x in d:\n            self.a()", 9, []),
        ("def f():\n    f()\n    model(1).backward()\n    optimizer.step()", 4, []),
    ],
)  # fmt: skip
def test_a_step_is_the_innermost_loop_that_propagates_and_steps(reads, code: str, step: int, around: list[int]) -> None:
    steps = training_steps(reads(HEAD + code))
    assert [(lines(each.ring), [lines(ring) for ring in each.around]) for each in steps] == [(step, around)]


@pytest.mark.parametrize(
    "code",
    [
        "for x in d:\n    model(x)",
        "class F(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, g):\n        return G.backward(g)",
        "def backward(self, x):\n    super().backward(x)",
        "for x in d:\n    F.backward(ctx, g)",
    ],
)
def test_what_propagates_nothing_is_no_step(reads, code: str) -> None:
    assert training_steps(reads(HEAD + code)) == ()


def test_the_events_of_a_step_are_in_the_order_in_which_they_run(reads) -> None:
    (step,) = training_steps(reads(HEAD + """
def update(loss):
    loss.backward()
    clip(optimizer)
def clip(optimizer):
    limit()
for x in d:
    optimizer.zero_grad()
    update(model(x))
    optimizer.step()
"""))  # fmt: skip
    assert [e.call.tail for e in step.events if e.call] == [
        "zero_grad", "model", "backward", "limit", "clip", "update", "step",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("epochs", "repeats"), [("range(9)", True), ("range(1)", False), ("itertools.count()", True), ("range(n)", True)]
)
def test_a_loop_of_one_epoch_does_not_repeat(reads, epochs: str, repeats: bool) -> None:
    code = f"for e in {epochs}:\n    for x in d:\n        model(x).backward()\n        optimizer.step()"
    (step,) = training_steps(reads(HEAD + code))
    assert (step.epochs is not None) == repeats


@pytest.mark.parametrize(
    ("line", "scaled"),
    [
        ("scaler.scale(loss).backward()", True),
        ("s = scaler.scale(loss)\n    s.backward()", True),
        ("loss.backward()", False),
        ("torch.autograd.backward(loss)", False),
    ],
)
def test_a_scaled_backward_is_told_from_a_plain_one(reads, line: str, scaled: bool) -> None:
    code = f"scaler = torch.amp.GradScaler()\nfor x in d:\n    loss = model(x)\n    {line}\n    scaler.step(optimizer)"
    (step,) = training_steps(reads(HEAD + code))
    (backward,) = step.backwards
    assert (backward.scaler is not None) == scaled
    assert backward.root is not None


def test_two_callers_make_two_steps_with_their_own_loaders(reads) -> None:
    steps = training_steps(reads(HEAD + """
from torch.utils.data import DataLoader
def go(d):
    for x in d:
        model(x).backward()
        optimizer.step()
def many():
    loader = DataLoader(a)
    for e in range(9):
        go(loader)
def once():
    go(DataLoader(b))
"""))  # fmt: skip
    told = {(step.epochs is not None, *(part.made.args[0].id for part in step.loaders())) for step in steps}
    assert told == {(True, "a"), (False, "b")}


def test_a_long_chain_of_calls_ends(reads) -> None:
    chain = "".join(f"def f{n}():\n    f{n + 1}()\n    f{n + 1}()\n" for n in range(30))
    code = HEAD + chain + "def f30():\n    model(1).backward()\n    optimizer.step()\nfor x in d:\n    f0()\n"
    assert len(training_steps(reads(code))) >= 1


@pytest.mark.parametrize("loop", ["tqdm(loader)", "enumerate(tqdm(loader))"])
def test_a_name_for_a_wrapped_loader_is_the_loader(reads, loop: str) -> None:
    code = f"loader = torch.utils.data.DataLoader(d)\nbar = {loop}\nfor x in bar:\n    model(x).backward()\n    optimizer.step()"
    [step] = training_steps(reads(HEAD + code))
    assert [part.name for part in step.loaders()] == ["torch.utils.data.DataLoader"]
