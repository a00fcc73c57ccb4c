"""Tiny buckets are one all-reduce each."""

from __future__ import annotations

BODY = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

reductions = []


def counted(state, bucket):
    reductions.append(bucket.buffer().numel())
    return allreduce_hook(state, bucket)


model = shown.wrapped()
model.register_comm_hook(None, counted)
shown.train(model, 3)
result = len(reductions)
"""


def test_tiny_buckets_are_averaged_one_by_one(ranks) -> None:
    found = ranks("bucket-size", BODY)
    assert found["Good"] == [3, 3]
    assert min(found["Bad"]) > 3 * 8
