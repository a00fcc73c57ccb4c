"""Four micro-batches cost four all-reduces, or one."""

from __future__ import annotations

import pytest

BODY = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

reductions = []


class Counted(torch.nn.parallel.DistributedDataParallel):
    def __init__(self, module):
        super().__init__(module)
        self.register_comm_hook(None, self.reduce)

    @staticmethod
    def reduce(state, bucket):
        reductions.append(1)
        return allreduce_hook(state, bucket)


defined["DistributedDataParallel"] = Counted
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
torch.manual_seed(rank)
shown.train(model, [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(4)], 4)
result = [len(reductions), *model.weight.flatten().tolist()]
"""

HALF = """
reductions = []
torch.manual_seed(rank)
replica = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))


def count(state, bucket):
    reductions.append(1)
    future = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


replica.register_comm_hook(None, count)
for number in range(4):
    loss = replica(torch.randn(8, 4)).sum()
    if number < 3:
        with replica.no_sync():
            loss.backward()
    else:
        loss.backward()
result = len(reductions)
"""


def test_every_micro_batch_is_reduced(ranks) -> None:
    found = ranks("no-sync-missing", BODY)
    assert [rank[0] for rank in found["Bad"]] == [4, 4]
    assert [rank[0] for rank in found["Good"]] == [1, 1]
    assert found["Bad"][0][1:] == pytest.approx(found["Good"][0][1:], rel=1e-4)


def test_around_backward_alone_it_saves_nothing(ranks) -> None:
    assert ranks("no-sync-missing", HALF, ("Good",))["Good"] == [4, 4]
