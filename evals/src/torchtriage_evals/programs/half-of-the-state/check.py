"""Six epochs at once and three with three more after a load end with the same bits."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(5)
    inputs, targets = torch.randn(32, 5), torch.randn(32, 1)
    whole = program.Job()
    for epoch in range(6):
        whole.train_epoch(inputs, targets)
        if epoch == 2:
            whole.save("state.pt")
    second = program.Job(seed=9)
    second.load("state.pt")
    assert second.epoch == 3, f"goes on at epoch {second.epoch}"
    for _ in range(3):
        second.train_epoch(inputs, targets)
    rates = [each.optimizer.param_groups[0]["lr"] for each in (whole, second)]
    assert rates[0] == rates[1], f"a rate of {rates[1]:g} after the resumed run, {rates[0]:g} after the whole one"
    apart = [
        name
        for name, each in whole.model.state_dict().items()
        if not torch.equal(each, second.model.state_dict()[name])
    ]
    assert not apart, f"other weights after a resume: {apart}"
