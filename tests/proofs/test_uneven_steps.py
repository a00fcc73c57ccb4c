"""The rank with more batches fails in the step that the other does not take; within join both come to their end."""

from __future__ import annotations

BODY = """
torch.manual_seed(rank)
replica = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
loader = torch.utils.data.DataLoader(shown.shard(rank), batch_size=8)
steps = []
replica.register_forward_pre_hook(lambda module, args: steps.append(1))
try:
    shown.train(replica, loader)
    ended = True
except RuntimeError:
    ended = False
result = [len(steps), ended]
"""


def test_a_rank_with_more_batches_fails_in_the_step_after_the_others_last(ranks) -> None:
    found = ranks("uneven-steps", BODY)
    assert found["Bad"] == [[11, False], [10, True]]
    assert found["Good"] == [[12, True], [10, True]]
