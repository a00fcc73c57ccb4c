"""Without a test of the rank both processes write the file."""

from __future__ import annotations

BODY = """
import os

wrote, save = [], torch.save
torch.save = lambda *given: (wrote.append(given[1]), save(*given))
torch.manual_seed(0)
path = os.path.join(folder, section + ".pt")
shown.train(torch.nn.Linear(4, 1), [(torch.randn(8, 4), torch.randn(8, 1))], path)
result = len(wrote)
"""


def test_both_ranks_write_one_path(ranks) -> None:
    found = ranks("every-rank-saves", BODY)
    assert found["Bad"] == [1, 1]
    assert found["Good"] == [1, 0]
