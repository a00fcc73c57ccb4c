"""Where the watched thread stands: the user's innermost line, and the phase that runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from torchtriage.examine.run.job.events import Stacks
from torchtriage.examine.run.job.watch import stacks
from torchtriage.examine.run.job.watch.stacks import SAMPLES, Sampler


@pytest.fixture
def sampler() -> Sampler:
    watched = SimpleNamespace(thread=stacks._thread.get_ident())
    job: Any = SimpleNamespace(
        left=False, lost={}, watched=watched, step=7, learning=True, phases=SimpleNamespace(row=0)
    )
    return Sampler(job)


def hook(name: str) -> Callable[[Callable[[], None]], None]:
    """A function of the machinery that calls what it is given."""
    names: dict[str, Any] = {}
    exec(compile(f"def {name}(call): call()", stacks.HOOKS[name][0], "exec"), names)
    return names[name]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["ask", "_run", "backward", "wrapper"])
def test_a_line_that_a_phase_calls_belongs_to_it(sampler: Sampler, name: str) -> None:
    def made() -> None:
        sampler._look(sys._getframe())

    hook(name)(made)
    ((phase, path, line, function, within, count),) = sampler.summary(Stacks).lines
    assert (phase, function, within, count) == (stacks.HOOKS[name][1], "made", True, 1)
    assert (path.endswith("test_stacks.py"), line) == (True, made.__code__.co_firstlineno + 1)


def test_a_line_outside_of_all_phases_is_other_and_a_probe_is_nobodys(sampler: Sampler) -> None:
    sampler._look(sys._getframe())
    hook("fire")(lambda: sampler._look(sys._getframe()))
    seen = sampler.summary(Stacks)
    assert seen.parts == {"other": 1}
    assert seen.lines[0][3:] == ("test_a_line_outside_of_all_phases_is_other_and_a_probe_is_nobodys", False, 1)


def test_whole_stacks_are_told_with_the_step_its_part_and_the_time_they_stand_for(sampler: Sampler) -> None:
    def made() -> None:
        sampler._look(sys._getframe(), 5_000_000)

    hook("_run")(made)
    sampler.job.learning = False
    hook("_run")(made)
    sampler.job.phases.row = 1
    made()
    made()
    seen = sampler.summary(Stacks)
    parts = [(step, part, inside, within, looks, nanoseconds)
             for step, part, inside, _, within, _, looks, nanoseconds in seen.stacks]  # fmt: skip
    assert parts[:2] == [(7, "forward", "", 1, 1, 5_000_000), (7, "evaluation", "", 1, 1, 5_000_000)]
    assert [each[1] for each in parts[2:]] == ["loss", "loss"]
    path, line, function = seen.frames[seen.stacks[0][5][0]]
    assert (path.endswith("test_stacks.py"), line) == (True, made.__code__.co_firstlineno + 1)
    assert function.endswith("<locals>.made")


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/lib/site-packages/torch/nn/modules/linear.py", "torch"),
        ("/lib/site-packages/torch/nn/utils/clip_grad.py", "training"),
        ("/lib/site-packages/torch/optim/sgd.py", "training"),
        ("/lib/site-packages/torch/utils/data/_utils/collate.py", ""),
        ("/lib/site-packages/numpy/_core/fromnumeric.py", ""),
        ("/tmp/torchinductor_me/ab/cab.py", "training"),
    ],
)
def test_a_library_is_torch_a_part_of_every_training_or_neither(file: str, library: str) -> None:
    assert stacks._library(file) == library


def test_a_function_of_the_user_with_the_name_of_a_hook_is_none(sampler: Sampler) -> None:
    def backward() -> None:
        sampler._look(sys._getframe())

    backward()
    assert sampler.summary(Stacks).parts == {"other": 1}


def test_the_thread_ends_when_it_is_told_and_leaves_the_switch_interval_as_it_was(sampler: Sampler) -> None:
    before = sys.getswitchinterval()
    assert sampler.start(3600.0)
    assert not sampler.start(3600.0)
    sampler.end()
    assert not sampler.running
    assert sys.getswitchinterval() == before
    assert sampler.summary(Stacks).samples == 0


def test_the_thread_ends_by_itself(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "EVERY", 0.0)
    sampler.start(0.0)
    while sampler.running:
        pass
    assert 0 < sampler.summary(Stacks).samples <= SAMPLES
