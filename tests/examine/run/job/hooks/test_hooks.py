from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import pytest
import torch
from torch.optim.optimizer import _global_optimizer_pre_hooks

from torchtriage.examine.run.job import Job
from torchtriage.examine.run.job.hooks import gradients, roots
from torchtriage.examine.run.job.watch import clock, phases

Watch = Callable[..., Job]
Events = Callable[..., list[dict[str, Any]]]


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(2))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        x = self.first(x) * scale
        for block in self.blocks:
            x = block(x)
        return x


def loader(batches: int = 6, **settings: Any) -> torch.utils.data.DataLoader[Any]:
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.ones(batches * 2, 4)), batch_size=2, **settings
    )


def train(model: torch.nn.Module, batches: int = 6, make: Any = torch.optim.SGD) -> torch.optim.Optimizer:
    optimizer: torch.optim.Optimizer = make(model.parameters(), lr=1e-3)
    for (x,) in loader(batches):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return optimizer


def heard(job: Job, *events: str) -> list[tuple[str, int]]:
    """What is told from now on: (event, step)."""
    told: list[tuple[str, int]] = []
    for event in events:
        job.on(event, lambda *_, event=event: told.append((event, job.step)))
    return told


def test_a_step_tells_its_events_in_order_and_with_its_number(watch: Watch) -> None:
    job = watch()
    told = heard(
        job, "batch", "forward", "forwarded", "backward", "backwarded", "stepping", "stepped", "iterated", "ending"
    )
    train(Net(), 3)
    job.leave("exit")

    one = ["batch", "forward", "forwarded", "backward", "backwarded", "stepping", "stepped", "iterated"]
    assert told == [(event, step) for step in range(3) for event in one] + [("ending", 3)]


def test_events_hand_over_what_they_are_about(watch: Watch) -> None:
    job, given = watch(), {}
    for event in ("batch", "forward", "forwarded", "backward", "stepped", "iterated"):
        job.on(event, lambda *things, event=event: given.setdefault(event, things))
    model, batches = Net(), loader(1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for (x,) in batches:
        output = model(x, scale=2.0)
        loss = output.sum()
        torch.autograd.backward(tensors=[loss])
        optimizer.step()
    job.leave("exit")

    assert given["batch"][0] is batches
    assert given["batch"][1][0] is x
    assert given["forward"] == (model, (x,), {"scale": 2.0})
    assert given["forwarded"][0] is model
    assert given["forwarded"][1] is output
    assert given["backward"] == ((loss,),)
    assert given["stepped"] == (optimizer,)
    assert given["iterated"] == (0,)


def test_the_step_line_tells_time_loss_and_memory(watch: Watch, events: Events) -> None:
    watch()
    train(Net(), 4)

    rows = events("step")
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    for row in rows:
        phases = [row[name] for name in ("data", "forward", "backward", "optimizer", "probes")]
        assert all(seconds > 0 for seconds in phases)
        assert sum(phases) <= row["seconds"] + 1e-6
        assert (row["batches"], row["forwards"], row["backwards"], row["transfer"]) == (1, 1, 1, 0)
        assert row["rss"] > 10**7
    assert [row["epochs"] for row in rows] == [1, 0, 0, 0]
    assert rows[0]["loss"] > rows[3]["loss"] > 0


def test_the_setup_is_written_once(watch: Watch, events: Events) -> None:
    watch()
    train(Net(), make=torch.optim.AdamW)

    (setup,) = events("setup")
    assert setup["models"][0]["parameters"] == {"float32": 60}
    assert setup["models"][0]["class"] == "Net"
    assert setup["optimizers"][0]["class"] == "AdamW"
    assert setup["loaders"][0]["batch_size"] == 2
    assert setup["batch"] == [{"shape": [2, 4], "dtype": "torch.float32", "device": "cpu"}]
    (start,) = events("start")
    assert start["versions"]["torch"] == torch.__version__


def test_only_outermost_modules_with_parameters_are_roots(watch: Watch) -> None:
    job = watch()
    called: list[str] = []
    job.on("forward", lambda module, args, kwargs: called.append(type(module).__name__))
    encoder, decoder, criterion = Net(), torch.nn.Linear(4, 1), torch.nn.MSELoss()
    for _ in range(5):
        criterion(decoder(encoder(torch.ones(2, 4))), torch.zeros(2, 1)).backward()

    assert called == ["Net", "Linear"] * 5


def test_a_model_that_appears_late_is_found(watch: Watch) -> None:
    job = watch()
    train(Net())
    called: list[Any] = []
    job.on("forward", lambda module, args, kwargs: called.append(module))
    late = torch.nn.Sequential(torch.nn.Linear(4, 4))
    train(late, 5)

    assert called[-1] is late
    assert len(called) >= 3


def test_a_root_is_saved_and_copied_as_if_nobody_watched(watch: Watch) -> None:
    job = watch()
    model = Net()
    train(model)
    twin = copy.deepcopy(model)
    torch.save(model, io.BytesIO())

    assert not twin._forward_pre_hooks
    assert not twin._forward_hooks
    assert b"torchtriage" not in pickle.dumps(model.state_dict())
    assert model.__dict__.keys() == Net().__dict__.keys()
    assert twin not in job.roots


def test_everything_is_put_back_when_the_probes_leave(watch: Watch) -> None:
    places = [
        (torch.nn.Module, "__call__"),
        (torch.autograd, "backward"),
        (torch.utils.data.DataLoader, "__iter__"),
        (torch.utils.data.dataloader._BaseDataLoaderIter, "__next__"),
        (torch.amp.GradScaler, "step"),
        (torch, "compile"),
    ]
    before = [vars(owner)[name] for owner, name in places]
    hooks = len(_global_optimizer_pre_hooks)
    job = watch(steps=4)
    train(Net(), 8)

    assert job.left
    assert [vars(owner)[name] for owner, name in places] == before
    assert len(_global_optimizer_pre_hooks) == hooks
    assert "__call__" not in vars(Net)


def test_steps_that_a_scaler_skips_are_told_with_the_loss_before_scaling(watch: Watch, events: Events) -> None:
    job = watch()
    skipped: list[tuple[int, Any, Any]] = []
    job.on("skipped", lambda optimizer, scaler: skipped.append((job.step, optimizer, scaler)))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for index in range(5):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4)).square().mean() * (float("inf") if index == 2 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    job.leave("exit")

    assert skipped == [(2, optimizer, scaler)]
    rows = events("step")
    assert [row["skipped"] for row in rows] == [0, 0, 1, 0, 0]
    assert rows[0]["loss"] < 100
    assert [row["scale"] for row in rows[1:]] == [1024.0, 1024.0, 512.0, 512.0]


def test_steps_that_a_fused_optimizer_skips_are_told(watch: Watch) -> None:
    job = watch()
    told = heard(job, "stepped", "skipped")
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for index in range(4):
        loss = model(torch.ones(2, 4)).sum() * (float("inf") if index == 1 else 1.0)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    assert told == [("stepped", 0), ("skipped", 1), ("stepped", 2), ("stepped", 3)]


def test_an_optimizer_inside_another_ones_step_is_no_step_of_its_own(watch: Watch) -> None:
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner: torch.optim.Optimizer) -> None:
            super().__init__(inner.param_groups, {})
            self.inner = inner

        def step(self, closure: Any = None) -> None:
            self.inner.step(closure)

    job = watch()
    told = heard(job, "stepped")
    train(Net(), 3, lambda parameters, lr: Wrapper(torch.optim.SGD(parameters, lr)))

    assert told == [("stepped", 0), ("stepped", 1), ("stepped", 2)]


def test_a_closure_is_part_of_its_step(watch: Watch, events: Events) -> None:
    job = watch()
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), 1e-3, max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(torch.ones(2, 4)).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    job.leave("exit")

    rows = events("step")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(row["backwards"] >= 2 for row in rows)


def test_the_loss_of_a_loop_without_a_scaler_is_the_root_of_its_backward_pass(watch: Watch, events: Events) -> None:
    job = watch()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    for value in (1.5, float("nan"), 2.5):
        (model(torch.zeros(1)).sum() * 0 + value).backward()
        optimizer.step()
    job.leave("exit")

    assert [str(row["loss"]) for row in events("step")] == ["1.5", "nan", "2.5"]


def test_a_forward_pass_that_raises_leaves_the_clock_intact(watch: Watch, events: Events) -> None:
    job = watch()
    model = Net()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.ones(2, 5))
        train(model, 2)
    job.leave("exit")

    assert len(events("step")) == 6
    assert not events("probe-off")


@pytest.mark.filterwarnings("error")
def test_a_compiled_model_is_watched_without_a_warning_or_a_graph_break(watch: Watch) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    job = watch()
    told = heard(job, "forward")
    model = torch.compile(Net(), backend=backend, fullgraph=True)
    train(model)

    assert [step for _, step in told] == list(range(6))
    assert len(graphs) == 1
    assert {type(root).__name__ for root in job.roots} == {"OptimizedModule"}


def test_a_compiled_function_that_calls_the_model_is_one_graph(watch: Watch) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    model = Net()
    watch()
    train(model, 2)
    step = torch.compile(lambda x: model(x).sum(), backend=backend, fullgraph=True)
    for _ in range(6):
        step(torch.ones(2, 4)).backward()

    assert len(graphs) <= 2  # once more at most, when the search for roots ends


def test_a_tensor_subclass_and_a_generator_of_losses_pass_through(watch: Watch, events: Events) -> None:
    job = watch()
    model = Net()
    roots: list[tuple[Any, ...]] = []
    job.on("backward", roots.append)
    torch.autograd.backward(model(torch.ones(2, 4)).sum() for _ in range(2))

    assert roots == [()]
    assert model.first.weight.grad is not None
    assert not events("probe-off")


@pytest.mark.parametrize(
    ("training", "gradients", "passes", "told"),
    [(True, True, 4, 0), (True, True, 6, 2), (False, True, 1, 1), (True, False, 2, 2), (False, False, 2, 2)],
)
def test_passes_as_few_steps_of_a_training_have_them_are_told_aside(
    watch: Watch, training: bool, gradients: bool, passes: int, told: int
) -> None:
    job = watch()
    events, model = heard(job, "aside", "asided"), Net().train(training)
    with torch.set_grad_enabled(gradients):
        for _ in range(passes):
            model(torch.ones(2, 4))
    assert [event for event, _ in events] == ["aside", "asided"] * told


def test_a_backward_or_an_optimizers_turn_ends_a_row_of_passes(watch: Watch) -> None:
    job = watch()
    events, model = heard(job, "aside"), Net()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(3):
        for _ in range(3):
            loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        for _ in range(3):
            model(torch.ones(2, 4))
        optimizer.step()
    assert not events


def test_a_pass_over_a_loader_is_told_with_what_it_has_given_so_far(watch: Watch) -> None:
    job, given = watch(), []
    job.on("begun", lambda loader, number: given.append((loader, number)))
    batches = loader(3)
    next(iter(batches))
    for _ in range(2):
        list(batches)
    assert given == [(batches, 0), (batches, 1), (batches, 4)]


def test_a_pass_with_gradients_is_told_from_others_while_it_runs(watch: Watch) -> None:
    job, seen = watch(), []

    class Looks(Net):
        def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            seen.append(job.learning)
            return super().forward(x, scale)

    model = Looks()
    model(torch.ones(2, 4))
    with torch.no_grad():
        model(torch.ones(2, 4))
    assert [*seen, job.learning] == [True, False, False]


def test_things_are_counted_over_all_steps(watch: Watch) -> None:
    job = watch()
    train(Net(), 5)
    assert {what: job.clock.count(what) for what in ("batches", "forwards", "backwards", "skipped")} == {
        "batches": 5,
        "forwards": 5,
        "backwards": 5,
        "skipped": 0,
    }
    assert job.clock.turns == 5


def test_the_loss_of_a_backward_pass_is_known_while_it_runs_where_it_is_a_number_on_the_cpu(watch: Watch) -> None:
    job, seen = watch(), []
    job.on("backward", lambda roots: seen.append(job.loss))
    weight = torch.ones(2, requires_grad=True)
    (weight * 2).sum().backward()
    torch.autograd.backward(weight * 2, torch.ones(2))
    assert seen == [4.0, None]


def test_a_batch_of_another_size_is_told_aside(watch: Watch) -> None:
    job = watch()
    events, model = heard(job, "aside"), Net()
    for size in (4, 4, 2, 4, 4):
        model(torch.ones(size, 4)).sum().backward()
    assert len(events) == 2


def test_what_a_closure_does_before_its_backward_has_ended_is_no_update(
    watch: Callable[..., Job], events: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = [0]

    class Slow(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            closure()
            ticks[0] += 1_000_000

    for module in (clock, phases):
        monkeypatch.setattr(module, "now", lambda: ticks[0])
    watch()
    model = torch.nn.Linear(2, 1)
    optimizer = Slow(model.parameters(), 1e-2)

    def closure() -> None:
        ticks[0] += 5_000_000
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()

    for _ in range(4):
        optimizer.step(closure)

    assert [row["optimizer"] for row in events("step")] == pytest.approx([0.001] * 4, rel=0.1)  # less what probes took
    assert sum(row["seconds"] for row in events("step")) == pytest.approx(0.024, rel=0.1)


def busy(*_: object) -> bool:
    """Three milliseconds of the watch's own work, by the clock that it is booked by."""
    began = perf_counter_ns()
    while perf_counter_ns() - began < 3_000_000:
        pass
    return False


def test_what_the_watch_does_around_a_pass_is_booked_as_the_probes_and_not_as_the_jobs(
    watch: Watch, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roots.Watch, "_resized", busy)  # before a forward pass
    monkeypatch.setattr(gradients, "_retains", busy)  # before a backward pass
    watch()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
    for row in events("step")[1:]:
        assert row["probes"] > 6e-3
        assert row["seconds"] - row["probes"] >= row["forward"] + row["backward"] + row["optimizer"]
