"""What is read right after irecv was not received yet."""

from __future__ import annotations

BODY = """
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    buffer = torch.zeros(4)
    result = shown.receive(buffer, 1)
    store.set("read", "yes")
else:
    if section == "Bad":
        store.wait(["read"])
    dist.send(torch.ones(4), 0)
    store.set("sent", "yes")
    result = None
store.wait(["sent"])
"""


def test_the_buffer_still_holds_the_old_values(ranks) -> None:
    found = ranks("handle-not-waited", BODY)
    assert found["Bad"][0] == 0.0
    assert found["Good"][0] == 4.0
