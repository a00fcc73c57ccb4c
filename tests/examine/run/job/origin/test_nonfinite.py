"""What a replay refuses, keeps and follows."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job import Job
from torchtriage.examine.run.job.events import NonFinite

Watch = Callable[..., Job]


class Log(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)
        self.sizes = [1, 2]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sizes.append(3)
        sys.stdout.write(f"called {len(self.sizes)}\n")
        return torch.log(-self.inner(x).abs() - 1)


def why(job: Job, module: Any, passes: int = 1) -> NonFinite:
    calls = job.calls()
    x = torch.ones(3, 2)
    losses = [module(x).mean() for _ in range(passes)]
    for _ in range(passes):
        calls.keep(module, (x,), {})
    return job.why_forward(calls, losses[-1:])


def test_a_replay_prints_nothing_and_leaves_lists_as_they_were(
    watch: Watch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Log()
    assert why(watch(), model).stage == "forward"
    assert capsys.readouterr().out == "called 3\n"
    assert model.sizes == [1, 2, 3]


@pytest.mark.parametrize(
    "state",
    [torch.Generator(), random.Random(0), [torch.ones(1)], iter([1]), torch.ones(1, requires_grad=True)],
    ids=["a generator", "random numbers", "tensors in a list", "an iterator", "a tensor that learns"],
)
def test_a_forward_that_may_change_its_own_state_is_not_repeated(watch: Watch, state: Any) -> None:
    model = Log()
    model.state = state
    assert "its own state: state of Log" in str(why(watch(), model).why)


def test_a_module_with_hooks_is_not_repeated(watch: Watch) -> None:
    model = Log()
    model.inner.register_forward_hook(lambda *_: None)
    assert "its own state: forward_hooks" in str(why(watch(), model).why)


def test_a_recurrent_module_is_repeated(watch: Watch) -> None:
    model = torch.nn.Sequential(torch.nn.LSTM(2, 2))
    calls = watch().calls()
    calls.keep(model, (torch.ones(3, 2),), {})
    assert calls[0].repeatable() == (model, "")


def test_a_loss_is_not_blamed_when_calls_were_missed_or_a_module_was_never_watched(watch: Watch) -> None:
    job = watch()
    assert "1 more calls" in str(why(job, torch.nn.Linear(2, 2), passes=17).why)
    known, late = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    calls, x = job.calls(), torch.ones(3, 2)
    calls.keep(known, (x,), {})
    assert "no module that was watched" in str(job.why_forward(calls, [late(known(x)).mean()]).why)
    assert job.why_forward(calls, [known(x).mean()]).stage == "loss"


class Written(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = torch.empty(3, 2)
        kept[:1] = torch.sqrt(self.inner(x[:1]) - 50)
        kept[1:] = 0
        return kept.sum()


def test_a_value_written_through_a_view_is_followed(watch: Watch) -> None:
    assert why(watch(), Written()).op == "sqrt"


class Refusing(torch.optim.SGD):
    def step(self, closure: Any = None) -> Any:
        raise RuntimeError("not supported here")


def test_an_optimizer_whose_step_raised_does_not_hide_the_others(watch: Watch) -> None:
    job, model = watch(), torch.nn.Linear(2, 2)
    stepped: list[Any] = []
    job.on("stepped", stepped.append)
    refusing, other = Refusing(model.parameters(), lr=0.1), torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(3, 2)).mean().backward()
    with pytest.raises(RuntimeError, match="not supported"):
        refusing.step()
    other.step()
    assert stepped == [other]


def test_a_ledger_sees_gradients_of_an_input_and_complex_gradients(watch: Watch) -> None:
    job, model = watch(), torch.nn.Linear(2, 2)
    ledger = job.ledger(torch.optim.SGD(model.parameters(), lr=0.1))
    x, weight = torch.ones(3, 2, requires_grad=True), torch.nn.Parameter(torch.ones(2, dtype=torch.cfloat))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    weight.grad = torch.full((2,), float("nan"), dtype=torch.cfloat)
    assert not torch.isfinite(job.norms(optimizer)).all()
    ledger.look_beside(job.leaves([model(x.detach()).mean()]), [])
    assert not ledger.beside
    ledger.look_beside(job.leaves([model(x).mean()]), [])
    assert ledger.beside
