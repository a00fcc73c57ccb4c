"""The table follows the model to another device and another type, and no optimizer changes it."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    model, wanted = program.Encoder(), program.sine_table(32, 8)
    away = program.Encoder().to("meta")
    try:
        assert away(torch.empty(2, 5, 8, device="meta")).device.type == "meta"
    except RuntimeError as error:
        raise AssertionError(f"on another device: {error}") from error
    assert program.Encoder().double()(torch.randn(2, 5, 8).double()).dtype is torch.float64, "not moved to float64"
    trained = [each.shape for each in model.parameters() if each.requires_grad]
    assert wanted.shape not in trained, "the table is trained"
    x = torch.randn(2, 5, 8)
    assert torch.allclose(model(x), model.mix(x + wanted[:5])), "another output"
