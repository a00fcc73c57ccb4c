"""A timer that is a context manager takes the time of what stands under it."""

from __future__ import annotations

from torchtriage.examine.source.script import Script
from torchtriage.examine.source.spans import spans

_TIMER = b"""
import time
from contextlib import contextmanager


@contextmanager
def timed(what):
    start = time.time()
    yield
    print(what, time.time() - start)


def use(model, x):
    with timed("forward"):
        model(x)
    model.reset()
"""


def test_a_span_of_the_timer_holds_the_calls_under_its_with_statement() -> None:
    calls = [{call.tail for call in span.calls()} for span in spans(Script("timer.py", _TIMER))]
    assert ["model" in each for each in calls] == [False, True]
    assert all("reset" not in each for each in calls)
