"""All ranks come to the reduction, all have the mean, one writes."""

from typing import Any

import torch.distributed as dist

from torchtriage_evals.programs.seen import on_ranks


def check(program: Any) -> None:
    def work(rank: int) -> tuple[list[float], list[str]]:
        lines: list[str] = []
        means = [program.log_loss(1.0 + 2 * rank + step, step, lines) for step in range(3)]
        dist.barrier()
        return means, lines

    (first, lines), (second, silent) = on_ranks(work)
    assert first == second == [2.0, 3.0, 4.0], f"the means are {first} on rank 0 and {second} on rank 1"
    assert lines == ["step 0: 2.0000", "step 1: 3.0000", "step 2: 4.0000"], f"rank 0 wrote {lines}"
    assert silent == [], f"rank 1 wrote {silent}"
