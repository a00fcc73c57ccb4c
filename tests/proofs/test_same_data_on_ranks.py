"""Without a sampler each rank reads everything."""

from __future__ import annotations

BODY = """
torch.manual_seed(rank)
result = shown.train(torch.nn.Linear(4, 1), torch.randn(100, 4), torch.arange(100.0).unsqueeze(1) / 100)
"""


def test_each_rank_reads_every_sample(ranks) -> None:
    found = ranks("same-data-on-ranks", BODY)
    assert [len(set(seen)) for seen in found["Bad"]] == [100, 100]
    assert [len(set(seen)) for seen in found["Good"]] == [50, 50]
    assert not set(found["Good"][0]) & set(found["Good"][1])
