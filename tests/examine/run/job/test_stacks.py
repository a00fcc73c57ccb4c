"""Where the watched thread stands: the user's innermost line, and the phase that runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from torchtriage.examine.run.job import stacks
from torchtriage.examine.run.job.stacks import HERE, SAMPLES, Sampler


@pytest.fixture
def sampler() -> Sampler:
    job: Any = SimpleNamespace(left=False, lost={}, watched=SimpleNamespace(thread=stacks._thread.get_ident()))
    return Sampler(job)


def hook(name: str) -> Callable[[Callable[[], None]], None]:
    """A function of the machinery that calls what it is given."""
    names: dict[str, Any] = {}
    file = stacks.HOOKS[name][0]
    exec(compile(f"def {name}(call): call()", file if "/" in file else str(HERE / file), "exec"), names)
    return names[name]  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", ["ask", "_run", "backward", "wrapper"])
def test_a_line_that_a_phase_calls_belongs_to_it(sampler: Sampler, name: str) -> None:
    def made() -> None:
        sampler._look(sys._getframe())

    hook(name)(made)
    ((phase, path, line, function, within, count),) = sampler.facts()["lines"]
    assert (phase, function, within, count) == (stacks.HOOKS[name][1], "made", True, 1)
    assert (path.endswith("test_stacks.py"), line) == (True, made.__code__.co_firstlineno + 1)


def test_a_line_outside_of_all_phases_is_other_and_a_probe_is_nobodys(sampler: Sampler) -> None:
    sampler._look(sys._getframe())
    hook("fire")(lambda: sampler._look(sys._getframe()))
    facts = sampler.facts()
    assert facts["parts"] == {"other": 1}
    assert facts["lines"][0][3:] == ["test_a_line_outside_of_all_phases_is_other_and_a_probe_is_nobodys", False, 1]


def test_a_function_of_the_user_with_the_name_of_a_hook_is_none(sampler: Sampler) -> None:
    def backward() -> None:
        sampler._look(sys._getframe())

    backward()
    assert sampler.facts()["parts"] == {"other": 1}


def test_the_thread_ends_when_it_is_told_and_leaves_the_switch_interval_as_it_was(sampler: Sampler) -> None:
    before = sys.getswitchinterval()
    assert sampler.start(3600.0)
    assert not sampler.start(3600.0)
    sampler.end()
    assert not sampler.running
    assert sys.getswitchinterval() == before
    assert sampler.facts()["samples"] == 0


def test_the_thread_ends_by_itself(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "EVERY", 0.0)
    sampler.start(0.0)
    while sampler.running:
        pass
    assert 0 < sampler.facts()["samples"] <= SAMPLES
