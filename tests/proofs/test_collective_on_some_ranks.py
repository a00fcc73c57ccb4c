"""A rank that waits alone in a collective never gets its result."""

from __future__ import annotations

BODY = """
loss = torch.ones(1)
try:
    shown.report(loss, 0)
    result = loss.item()
except RuntimeError as error:
    result = type(error).__name__
"""


def test_the_rank_that_comes_alone_fails_when_the_other_has_left(ranks) -> None:
    found = ranks("collective-on-some-ranks", BODY)
    assert found["Bad"] == ["RuntimeError", 1.0]
    assert found["Good"] == [2.0, 2.0]
