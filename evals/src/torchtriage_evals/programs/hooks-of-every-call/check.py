"""No hook stays behind, also after an error, and features are what the layer gave."""

from contextlib import suppress
from typing import Any

import torch


def left(model: Any) -> int:
    return sum(len(each._forward_hooks) for each in model.modules())


def check(program: Any) -> None:
    torch.manual_seed(0)
    model, inputs = program.make_model(), torch.randn(4, 6)
    for _ in range(3):
        found = program.features(model, inputs, ["0", "2"])
    assert left(model) == 0, f"{left(model)} hooks are left after three calls"
    with suppress(RuntimeError):
        program.features(model, torch.randn(4, 7), ["0", "2"])
    assert left(model) == 0, f"{left(model)} hooks are left after a call that failed"
    assert set(found) == {"0", "2"}
    assert not any(each.requires_grad for each in found.values())
    first = model[0](inputs).detach()
    assert torch.equal(found["0"], first), "the layer behind has changed the features"
    assert torch.equal(found["2"], model[2](first.relu()).detach()), "the layer behind has changed the features"
