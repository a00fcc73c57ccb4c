"""The old names warn; the new ones do the same without a warning."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn


def trained(train) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    batch = (torch.randn(8, 4), torch.randint(0, 3, (8,)))
    train(model, [batch], torch.optim.SGD(model.parameters(), lr=0.1), False)
    return model.weight.detach()


def test_the_old_names_warn_and_the_new_ones_train_the_same(shown) -> None:
    with pytest.warns(FutureWarning) as warned:
        old = trained(shown("amp-api-deprecated", "Bad").train)
    said = {str(each.message).partition("(")[0] for each in warned}
    assert said == {"`torch.cuda.amp.GradScaler", "`torch.cuda.amp.autocast"}
    assert torch.equal(old, trained(shown("amp-api-deprecated", "Good").train))


@pytest.mark.parametrize("name", ["custom_fwd", "custom_bwd"])
def test_the_decorators_warn_too(name) -> None:
    with pytest.warns(FutureWarning, match=name):
        getattr(torch.cuda.amp, name)(lambda ctx, x: x)
    getattr(torch.amp, name)(lambda ctx, x: x, device_type="cuda")


def test_the_old_names_are_subclasses_of_the_new_ones() -> None:
    assert issubclass(torch.cuda.amp.GradScaler, torch.amp.GradScaler)
    assert issubclass(torch.cuda.amp.autocast, torch.amp.autocast)
    assert issubclass(torch.cpu.amp.autocast, torch.amp.autocast)


def test_the_old_autocast_takes_enabled_first_and_the_new_one_the_device() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert torch.cpu.amp.autocast(False)._enabled is False
    assert torch.amp.autocast("cpu", enabled=False)._enabled is False
