from __future__ import annotations

import pytest

from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.flow import reaches

UPDATE = "from contextlib import contextmanager\n@contextmanager\ndef update():\n    before()\n    yield\n    after()\n"
TIMED = (
    "class Timed:\n    def __enter__(self):\n        before()\n        return self\n"
    "    def __exit__(self, *error):\n        after()\n"
)


def calls(script, name: str = "run"):
    scope = next(each for each in script.facts.scopes if each.name == name)
    found = [event for event in script.written.events(Ring(scope.body, scope)) if event.call is not None]
    return {event.call.tail: event for event in found}


def order(script) -> list[str]:
    return [tail for tail in calls(script) if tail in ("before", "inside", "after", "later")]


@pytest.mark.parametrize(
    "code",
    [
        UPDATE + "def run():\n    with update():\n        inside()\n    later()",
        UPDATE + "def run():\n    with open(p), update() as u:\n        for x in d:\n            inside()\n    later()",
        TIMED + "def run():\n    with Timed():\n        inside()\n    later()",
        UPDATE
        + "def run():\n    with ExitStack() as s:\n        s.enter_context(update())\n        inside()\n    later()",
        TIMED + "timed = Timed()\ndef run():\n    with timed:\n        inside()\n    later()",
    ],
)
def test_what_stands_behind_the_yield_runs_after_the_block(reads, code: str) -> None:
    assert order(reads(code)) == ["before", "inside", "after", "later"]


def test_a_manager_that_is_entered_otherwise_ends_with_the_function(reads) -> None:
    code = UPDATE + "def run(stack):\n    stack.enter_context(update())\n    inside()\n    later()"
    assert order(reads(code)) == ["before", "inside", "later", "after"]


def test_a_block_that_returns_is_left_through_its_manager(reads) -> None:
    events = calls(reads(UPDATE + "def run():\n    with update():\n        return inside()"))
    assert reaches(events["inside"], events["after"])


def test_a_block_around_the_piece_is_not_entered_in_it(reads) -> None:
    script = reads(
        UPDATE + "def run():\n    with update():\n        for x in d:\n            inside()\n        later()"
    )
    scope = next(each for each in script.facts.scopes if each.name == "run")
    loop = next(call.block for call in scope.calls if call.tail == "inside")
    events = script.written.events(Ring(loop, scope))
    assert [event.call.tail for event in events if event.call is not None] == ["inside"]
