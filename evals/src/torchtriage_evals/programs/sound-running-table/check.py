"""The mean is state and is saved, the mask is not; both move; gradients reach scale and inputs alone."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    layer, x = program.Centred(), torch.randn(6, 4, requires_grad=True)
    output = layer(x)
    output.square().sum().backward()
    assert set(layer.state_dict()) == {"scale", "mean"}, f"saved are {sorted(layer.state_dict())}"
    assert torch.allclose(layer.mean, 0.1 * x.detach().mean(0), atol=1e-6), "another running mean"
    assert [name for name, _ in layer.named_parameters()] == ["scale"], "more than the scale is trained"
    assert x.grad is not None
    assert torch.equal(layer.eval()(x), layer(x)), "an evaluation changes the state"
    moved = program.Centred().to("meta")
    assert all(each.device.type == "meta" for each in moved.buffers()), "a buffer is not moved"
    assert moved(torch.empty(2, 4, device="meta")).shape == (2, 4)
