"""Every block's weights are the model's: saved, moved and trained."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    model = program.Tower(width=8, depth=3)
    count = sum(each.numel() for each in model.parameters())
    assert count == 3 * (16 + 8 * 16 + 16 + 16 * 8 + 8) + 18, f"the model says that it has {count} parameters"
    assert len(model.state_dict()) == 20, f"its state has {len(model.state_dict())} entries"
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    program.train(model, torch.randn(16, 8), torch.randint(2, (16,)))
    still = [name for name, each in model.named_parameters() if torch.equal(before[name], each)]
    assert not still, f"never trained: {still}"
    assert program.Tower(depth=5)(torch.randn(2, 8)).shape == (2, 2), "the depth is no argument any more"
    assert all(each.device.type == "meta" for each in model.to("meta").state_dict().values()), "a part is not moved"
