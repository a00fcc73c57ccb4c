"""What one rank does in its step, all ranks wait for."""

from __future__ import annotations

BODY = """
import time

uploads = []
original = defined["upload"]
defined["upload"] = lambda losses: (uploads.append(1), original(losses))
began = time.perf_counter()
shown.train(40)
result = [len(uploads), time.perf_counter() - began]
"""


def test_the_rank_that_uploads_nothing_takes_as_long_as_the_one_that_does(ranks) -> None:
    found = ranks("straggler", BODY)
    assert [uploads for uploads, _ in found["Bad"]] == [40, 0]
    assert found["Bad"][1][1] >= 39 * 0.02  # seconds on rank 1, which uploads nothing
    assert [uploads for uploads, _ in found["Good"]] == [1, 0]
