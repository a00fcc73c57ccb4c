"""A process that the host killed for memory is a finding of the run, where the counters are the job's own."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.tensor_operations_and_memory.readings.hosts import host_out_of_memory

BY_LIMIT = {"by": "cgroup", "kills": 1, "pid": 7, "name": "python3", "resident": 3 << 30}
BY_HOST = {"by": "host", "kills": 2}


@pytest.mark.parametrize(
    ("ended", "fact"),
    [
        ({"code": 137, "oom": BY_LIMIT}, "the memory limit of its control group killed 1 of its processes for memory: python3 (process 7), which held 3.0 GiB"),
        ({"code": 1, "oom": BY_LIMIT}, "the memory limit of its control group killed 1"),
        ({"code": 137, "oom": BY_HOST}, "the host killed 2 of its processes for memory"),
        ({"code": 1, "oom": BY_HOST}, None),
        ({"code": 137}, None),
    ],
)  # fmt: skip
def test_a_kill_for_memory_is_found_by_the_counters_of_the_job(ended: dict[str, Any], fact: str | None) -> None:
    record = RunRecord((RankRecord(0, ()),), processes=({"kind": "ended", **ended},))
    seen = [each.fact for each in host_out_of_memory.look(record)]
    assert [fact in each for each in seen if fact] == [True] * bool(fact)
    assert bool(seen) == bool(fact)
