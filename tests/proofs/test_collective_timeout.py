"""A rank that is busy for longer than the group's timeout ends the others; within a longer one all go on."""

from __future__ import annotations

BODY = """
import datetime

dist.destroy_process_group()
given = datetime.timedelta(seconds=1 if section == "Bad" else 60)
dist.init_process_group("gloo", init_method=f"file://{folder}/{section}.again", rank=rank, world_size=2, timeout=given)
score = torch.ones(1)
try:
    if rank == 0:
        shown.evaluate(4.0)
    dist.all_reduce(score)
    result = score.item()
except RuntimeError as error:
    result = "imed out" in str(error)
"""


def test_who_waits_longer_than_the_timeout_fails(ranks) -> None:
    found = ranks("collective-timeout", BODY)
    assert found["Bad"][1] is True
    assert found["Good"] == [2.0, 2.0]
