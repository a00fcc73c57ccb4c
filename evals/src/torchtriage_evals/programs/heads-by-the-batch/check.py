"""All steps are done, replicas stay equal, and a head that one rank used is trained on both."""

from typing import Any

import torch

from torchtriage_evals.programs.seen import on_ranks


def batches(rank: int) -> list[tuple[torch.Tensor, torch.Tensor, str]]:
    made = torch.Generator().manual_seed(rank)
    tasks = ("depth", "pose", "depth", "pose") if rank == 0 else ("pose", "pose", "depth", "depth")
    sizes = {"depth": 1, "pose": 3}
    return [(torch.randn(4, 4, generator=made), torch.randn(4, sizes[task], generator=made), task) for task in tasks]


def check(program: Any) -> None:
    def work(rank: int) -> dict[str, torch.Tensor]:
        model = program.make_model()
        program.train(model, batches(rank))
        return {name: each.detach().clone() for name, each in model.module.state_dict().items()}

    first, second = on_ranks(work)
    apart = [name for name in first if not torch.equal(first[name], second[name])]
    assert not apart, f"the ranks differ in {apart}"
    torch.manual_seed(0)
    start = program.TwoTasks().state_dict()
    still = [name for name in first if torch.equal(first[name], start[name])]
    assert not still, f"never trained: {still}"
    expected = _alone(program)
    off = [name for name in first if not torch.allclose(first[name], expected[name], atol=1e-5)]
    assert not off, f"other weights than the mean of both ranks' gradients gives: {off}"


def _alone(program: Any) -> dict[str, torch.Tensor]:
    """The weights after steps with the mean of both ranks' gradients, in one process."""
    torch.manual_seed(0)
    model = program.TwoTasks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for pair in zip(batches(0), batches(1), strict=True):
        optimizer.zero_grad()
        for inputs, targets, task in pair:
            (torch.nn.functional.mse_loss(model(inputs, task), targets) / 2).backward()
        optimizer.step()
    return dict(model.state_dict())
