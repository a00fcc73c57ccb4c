"""Functions that nothing in sight calls: which of them are executed by themselves, and on what."""

from __future__ import annotations

import pytest

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.trainings import Trainings, note_unfinished, trainings
from torchtriage.examine.source.script import Script

STEP = "loss = model(x).mean()\n        loss.backward()\n        optimizer.step()\n"
EPOCH = f"import torch\ndef train(model, loader, optimizer):\n    for x in loader:\n        {STEP}"


def executed(source: str, path: str = "engine.py") -> tuple[Script, list[Trainings]]:
    script = Script(path, source.encode())
    return script, list(trainings(script))


def lines(source: str, path: str = "engine.py") -> set[int]:
    """The lines of all that happens in SOURCE."""
    return {event.spot.line for each in executed(source, path)[1] for run in each.runs for event in run.executor.events}


@pytest.mark.parametrize(
    ("source", "happens"),
    [
        (EPOCH, {3, 4, 5, 6}),
        (EPOCH + "def fit(model, loader, optimizer):\n    train(model, loader, optimizer)\n", {3, 4, 5, 6}),
        ("import torch\nclass Trainer:\n    def __init__(self, model, optimizer):\n        self.model, self.optimizer = model, optimizer\n    def step(self, x):\n        self.model(x).mean().backward()\n        self.optimizer.step()\n", {6, 7}),
        ("import torch\nclass Base:\n    def run(self, loader):\n        for x in loader:\n            self.step(x)\n    def step(self, x):\n        raise NotImplementedError\nclass Own(Base):\n    def __init__(self, model):\n        self.model = model\n    def step(self, x):\n        self.model(x).mean().backward()\n", {4, 12}),
        ("from torch import nn\nclass Net(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n        self.fc = nn.Linear(width, 2)\n    def forward(self, x):\n        return self.fc(x)\n", {2}),
        ("import torch\nclass F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.x = x\n        return x.clone()\n    @staticmethod\n    def backward(ctx, g):\n        return g\n", {5}),
        ("import torch\ndef build(width):\n    return make(width)\ndef make(width):\n    return torch.nn.Linear(width, 2)\n", set()),
    ],
    ids=["a function", "called in the file", "a class", "left to a subclass", "a module", "of autograd", "a factory"],
)  # fmt: skip
def test_what_nothing_in_sight_calls_is_executed(source: str, happens: set[int]) -> None:
    assert lines(source) >= happens
    assert bool(happens) is bool(lines(source))


def test_a_file_of_tests_is_no_training() -> None:
    assert lines(EPOCH, "test_engine.py") == set()


def test_the_optimizer_that_is_given_holds_the_parameters_of_the_model_that_is_given() -> None:
    *_, training = executed(EPOCH)[1]
    run = training.runs[0]
    step = run.of(events.OptimizerStep)[0]
    assert [parameter for parameter, _ in step.gradients] == run.executor.parameters(run.of(events.Forward)[0].model)
    assert run.of(events.Forward)[0].training is None


def test_of_two_optimizers_nobody_knows_what_they_hold() -> None:
    source = EPOCH.replace("model, loader, optimizer", "model, other, loader, optimizer, second_optimizer")
    *_, training = executed(f"{source}        second_optimizer.step()\n")[1]
    assert all(not each.gradients for each in training.runs[0].of(events.OptimizerStep))


def test_a_condition_comes_out_alike_wherever_it_stands() -> None:
    source = """import torch
def train(model, args):
    if args.fast:
        torch.save(1, "a")
    if not args.fast:
        torch.save(2, "a")
    if args.fast is False or not args.fast:
        torch.save(2, "b")
    if args.fast and args.other:
        torch.save(1, "c")
"""
    *_, training = executed(source)[1]
    seen = {run.executor.takes: [each.saved for each in run.of(events.Save)] for run in training.runs}
    assert seen["always"] == [1, 1]
    assert seen["never"] == [2, 2]


def test_what_is_not_followed_to_its_end_is_told_once() -> None:
    body = "".join(f"    for i in range(40):\n        x{n} = torch.zeros(i) + {n}\n" for n in range(400))
    script, found = executed(f"import torch\ndef f(x):\n{body}")
    script.taken[Trainings] = tuple(found)
    reason = note_unfinished(script)
    assert reason is not None
    assert reason.why.startswith("1 of 1 functions that nothing here calls were not followed to their end")


def test_nothing_is_told_where_all_was_followed() -> None:
    script, found = executed(EPOCH)
    script.taken[Trainings] = tuple(found)
    assert note_unfinished(script) is None
