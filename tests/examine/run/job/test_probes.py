from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job import Job
from torchtriage.examine.run.job.inventory import ledger
from torchtriage.examine.run.job.watch import clock, phases, session

Watch = Callable[..., Job]
Events = Callable[..., list[dict[str, Any]]]


def probes(folder: Path, source: str, room: str = "some_room") -> Path:
    """The room's folder of probes, with one module of that SOURCE."""
    path = folder / room / "probes"
    path.mkdir(parents=True, exist_ok=True)
    (path / "__init__.py").touch()
    (path / "theme.py").write_text(source)
    return path


def train(steps: int = 4) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(steps):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


def test_every_public_function_that_takes_a_job_alone_is_a_probe(watch: Watch, events: Events, tmp_path: Path) -> None:
    source = """
from math import floor  # not ours: no probe
from torchtriage.examine.run.job.events import Event
class First(Event): optimizer: str
class Second(Event): of: int
def first(job): job.on("stepped", lambda optimizer: job.record(First(optimizer=type(optimizer).__name__)))
def second(job): job.on("iterated", lambda step: job.record(Second(of=step)))
def _third(job): raise AssertionError("not a probe")
def fourth(tensor): raise AssertionError("not a probe")
"""
    watch(probes(tmp_path, source))
    train()

    assert [(each["step"], each["optimizer"]) for each in events("first")] == [(step, "SGD") for step in range(4)]
    assert [(each["step"], each["of"]) for each in events("second")] == [(step, step) for step in range(4)]
    assert not events("probe-off")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("job.on('stepped', lambda optimizer: 1 / 0)", "ZeroDivisionError"),
        ("job.on('stepped', lambda: None)", "TypeError"),
        ("job.on('stepped', lambda optimizer: job.record(Bad(value=object())))", "TypeError"),
        ("job.on('no such event', print)", "KeyError"),
        ("import math; job.wrap(math, 'no_such_function', lambda original: original)", "AttributeError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_probe_that_fails_is_switched_off_once_and_the_others_go_on(
    watch: Watch, events: Events, tmp_path: Path, body: str, why: str
) -> None:
    source = f"""
from torchtriage.examine.run.job.events import Event
class Bad(Event): ...
class Good(Event): ...
def bad(job):
    job.on("iterated", lambda step: job.record(Bad()))
    {body}
def good(job): job.on("iterated", lambda step: job.record(Good()))
"""
    job = watch(probes(tmp_path, source))
    train()
    job.leave("exit")

    (off,) = events("probe-off")
    assert off["probe"] == "some_room/bad"
    assert why in off["why"]
    assert events("bad") == []
    assert len(events("good")) == 4


@pytest.mark.parametrize("source", ["def broken(", "import no_such_module_of_anybody", "raise ValueError"])
def test_a_probes_file_that_cannot_be_loaded_is_recorded(
    watch: Watch, events: Events, tmp_path: Path, source: str
) -> None:
    watch(probes(tmp_path, source))
    train()

    assert [each["probe"] for each in events("probe-off")] == ["some_room/theme"]


def test_listeners_may_run_the_model_without_being_heard(watch: Watch, events: Events) -> None:
    job = watch()
    calls: list[Any] = []

    def forwarded(module: Any, output: Any) -> None:
        calls.append(module)
        module(torch.ones(1, 2))

    job.on("forwarded", forwarded)
    train(3)

    assert len(calls) == 3
    assert [row["forwards"] for row in events("step")] == [1, 1, 1]


def test_time_spent_in_listeners_is_booked_as_the_probes_own(
    watch: Watch, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(step=1_000)  # a clock that goes by a microsecond each time it is read

    def an_hour(_roots: object) -> None:
        nonlocal ticks
        ticks = itertools.count(next(ticks) + 3_600 * 10**9, 1_000)

    for module in (clock, phases, session):
        monkeypatch.setattr(module, "now", lambda: next(ticks))
    watch().on("backward", an_hour)
    train(6)

    row = events("step")[-1]
    assert row["probes"] >= 3600
    assert row["backward"] < 1


class Owner:
    def method(self, value: int) -> int:
        if value < 0:
            raise ValueError("negative")
        return value * 2

    @staticmethod
    def static(value: int) -> int:
        return value * 3


def wrapped(job: Job, owner: Any, name: str, make: Any) -> None:
    job.place("room/probe", lambda placed: placed.wrap(owner, name, make))


def test_a_wrap_sees_calls_and_is_undone(watch: Watch) -> None:
    job, seen = watch(), []
    wrapped(job, Owner, "method", lambda original: lambda self, value: (seen.append(value), original(self, value))[1])
    wrapped(job, Owner, "static", lambda original: lambda value: (seen.append(value), original(value))[1])

    assert (Owner().method(2), Owner.static(2), Owner().static(3)) == (4, 6, 9)
    assert seen == [2, 2, 3]
    job.leave("exit")
    job.tidy()
    assert (Owner().method(2), Owner.static(2)) == (4, 6)
    assert seen == [2, 2, 3]


def test_an_inherited_attribute_is_left_as_it_was(watch: Watch) -> None:
    class Heir(Owner):
        pass

    job = watch()
    wrapped(job, Heir, "method", lambda original: lambda self, value: original(self, value) + 1)

    assert (Heir().method(1), Owner().method(1)) == (3, 2)
    job.leave("exit")
    job.tidy()
    assert "method" not in vars(Heir)


@pytest.mark.parametrize(
    "make",
    [
        lambda original: lambda self, value: 1 / 0,
        lambda original: lambda self, value: (original(self, value), 1 / 0)[1],
        lambda original: lambda self: None,
    ],
    ids=["before the call", "after the call", "with other arguments"],
)
def test_a_wrap_that_fails_gives_the_job_what_it_would_have_got(watch: Watch, events: Events, make: Any) -> None:
    job, calls = watch(), []
    owner = SimpleNamespace(double=lambda self, value: (calls.append(value), value * 2)[1])
    wrapped(job, owner, "double", make)

    assert [owner.double(None, value) for value in (1, 2)] == [2, 4]
    assert calls == [1, 2]
    job.matters()
    assert [each["probe"] for each in events("probe-off")] == ["room/probe"]


def test_a_wrap_under_another_ones_is_silent_once_its_probe_has_left(watch: Watch) -> None:
    job, seen = watch(), []

    def seeing(mark: str) -> Any:
        return lambda original: lambda self, value: (seen.append(mark), original(self, value))[1]

    for mark in ("lower", "upper"):
        job.place(f"room/{mark}", lambda placed, mark=mark: placed.wrap(Owner, "method", seeing(mark)))
    job.withdraw("room/lower")
    assert Owner().method(2) == 4
    assert seen == ["upper"]


def test_an_error_of_the_wrapped_function_stays_the_jobs_own(watch: Watch, events: Events) -> None:
    job = watch()
    wrapped(job, Owner, "method", lambda original: lambda *values: original(*values) + 1)

    with pytest.raises(ValueError, match="negative"):
        Owner().method(-1)
    job.matters()
    assert events("probe-off") == []


def test_the_caller_is_the_nearest_line_of_the_users_own_code(watch: Watch) -> None:
    job, places = watch(), []
    job.on("stepped", lambda optimizer: places.append(job.caller()))
    train(1)
    source = Path(__file__).read_text().splitlines()

    ((path, line),) = places
    assert Path(path).name == Path(__file__).name
    assert "job.caller()" in source[line - 1]


def test_the_callers_are_the_users_own_frames_from_the_inside_out(watch: Watch) -> None:
    job = watch()

    def inner() -> list[tuple[str, int]]:
        return job.callers(2)

    (_, first), (_, second) = inner()
    assert first < second
    assert job.callers(1) == [job.caller()]


def test_modules_and_parameters_are_named_by_their_path(watch: Watch) -> None:
    job = watch()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 2)))
    assert job.module_name(model[0]) is None
    model(torch.ones(1, 2))

    assert job.module_name(model[1][0]) == "1.0"
    assert job.module_name(model[1][0].weight) == "1.0.weight"
    assert job.module_name(model) == "Sequential"
    assert job.module_name(torch.nn.Linear(2, 2)) is None


def test_a_fault_of_the_machinery_ends_the_watching_and_not_the_job(
    watch: Watch, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = watch()
    job.matters()
    monkeypatch.setattr(job.clock, "turned", lambda optimizer: 1 / 0)
    train(4)

    assert job.left
    assert [each["probe"] for each in events("probe-off")] == ["machinery"]


def test_a_wrap_inside_a_compiled_function_breaks_no_graph(watch: Watch) -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    job = watch()
    wrapped(job, torch.nn.functional, "relu", lambda original: lambda *args, **kwargs: original(*args, **kwargs) * 1)
    compiled = torch.compile(lambda x: torch.nn.functional.relu(x) + 1, backend=backend, fullgraph=True)
    job.on("stepped", lambda optimizer: compiled(torch.ones(2)))
    compiled(torch.ones(2))
    train(3)

    assert len(graphs) == 1


def test_norms_are_computed_once_for_all_who_ask_in_a_turn_and_anew_in_the_next(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, asked = watch(), []
    compute = ledger.norms
    monkeypatch.setattr(ledger, "norms", lambda *args, **settings: asked.append(1) or compute(*args, **settings))
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for turn in range(2):
        model(torch.ones(1, 2)).sum().backward()
        apart = job.norms(optimizer, apart=True)
        assert job.norms(optimizer) is apart
        assert len(asked) == turn + 1
        optimizer.step()
        optimizer.zero_grad()
