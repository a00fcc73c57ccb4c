"""The host reads a value once a stretch, not once a step; the means are right and no graph is kept."""

from typing import Any

import torch
from torch import nn

from torchtriage_evals.programs.seen import Held, Operations

READS = ("_local_scalar_dense", "is_nonzero", "item", "equal")


def check(program: Any) -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(60)]
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    other.load_state_dict(model.state_dict())
    copies = []
    for name in ("cpu", "numpy", "tolist"):
        setattr(torch.Tensor, name, counted(getattr(torch.Tensor, name), copies))
    with Operations() as seen, Held() as held:
        means = program.train(model, iter(batches), every=20)
        assert held.now == 0, "the graphs of earlier steps are kept"
    reads = sum(seen.counts[name] for name in READS) + len(copies)
    assert reads <= 6, f"{reads} reads of a value by the host in 60 steps"
    wanted = plain(other, batches)
    assert len(means) == 3, f"{len(means)} means for three stretches"
    assert all(abs(float(x) - y) < 1e-5 for x, y in zip(means, wanted, strict=True)), f"means {means}, right {wanted}"


def counted(function: Any, calls: list[int]) -> Any:
    def wrapped(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return function(*given, **named)

    return wrapped


def plain(model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.05), []
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [sum(losses[start : start + 20]) / 20 for start in (0, 20, 40)]
