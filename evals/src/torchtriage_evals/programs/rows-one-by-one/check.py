"""The number of operations does not grow with the rows; values and gradients stay."""

from typing import Any

import torch

from torchtriage_evals.programs.seen import Operations


def cost(program: Any, rows: int, groups: int) -> int:
    with Operations() as seen:
        program.pool(torch.randn(rows, 4), torch.randint(groups, (rows,)), groups)
    return sum(seen.counts.values())


def check(program: Any) -> None:
    torch.manual_seed(0)
    few, many, wide = cost(program, 32, 8), cost(program, 256, 8), cost(program, 256, 64)
    assert many <= few + 4, f"{few} operations for 32 rows, {many} for 256"
    assert wide <= many + 4, f"{many} operations for 8 groups, {wide} for 64"
    rows = torch.randn(12, 3, dtype=torch.float64, requires_grad=True)
    groups = torch.tensor([0, 2, 2, 4, 0, 0, 2, 4, 4, 4, 0, 2])
    wanted = torch.stack(
        [
            rows[groups == each].mean(0) if (groups == each).any() else torch.zeros(3, dtype=torch.float64)
            for each in range(6)
        ]
    )
    found = program.pool(rows, groups, 6)
    assert found.shape == (6, 3), f"a result of shape {tuple(found.shape)}"
    assert torch.allclose(found, wanted), "other means"
    assert torch.autograd.gradcheck(lambda given: program.pool(given, groups, 6), rows), "other gradients"
