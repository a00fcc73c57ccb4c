"""One reduction for each update, gradients equal on both ranks and equal to those of the whole batch."""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from torchtriage_evals.programs.seen import on_ranks


def pieces(rank: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    made = torch.Generator().manual_seed(10 + rank)
    return [(torch.randn(4, 6, generator=made), torch.randn(4, 1, generator=made)) for _ in range(4)]


def check(program: Any) -> None:
    def work(rank: int) -> tuple[int, list[torch.Tensor]]:
        model, reductions = program.make_model(), [0]

        def counted(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
            reductions[0] += 1
            return allreduce_hook(state, bucket)

        model.register_comm_hook(None, counted)
        program.accumulate(model, pieces(rank))
        return reductions[0], [each.grad.clone() for each in model.module.parameters()]

    (count, first), (_, second) = on_ranks(work)
    assert all(map(torch.equal, first, second)), "the ranks have different gradients"
    assert count == 1, f"{count} reductions for one update"
    torch.manual_seed(0)
    alone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    every = [*pieces(0), *pieces(1)]
    inputs, targets = (torch.cat([each[side] for each in every]) for side in (0, 1))
    nn.functional.mse_loss(alone(inputs), targets).backward()
    wanted = [each.grad for each in alone.parameters()]
    assert all(torch.allclose(x, y, atol=1e-6) for x, y in zip(first, wanted, strict=True)), "another gradient"
