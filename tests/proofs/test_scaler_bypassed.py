"""optimizer.step() uses gradients that are 65536 times too large; an unscaled loss gives ones that are as much too small."""

from __future__ import annotations

import pytest
import torch
from torch import nn

RATE = 0.1


def model_and_batch() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    model = nn.Linear(4, 1, bias=False)
    nn.init.zeros_(model.weight)
    return model, torch.full((8, 4), 0.5), torch.ones(8, 1)


def test_a_step_past_the_scaler_is_65536_times_too_large_before_update_raises(shown) -> None:
    model, inputs, targets = model_and_batch()  # the gradient of the mean squared error is -1 for each weight
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        shown("scaler-bypassed", "Bad").train(model, [(inputs, targets)], optimizer, scaler, "cpu")
    assert model.weight.abs().max().item() == pytest.approx(65536 * RATE, rel=0.01)


def test_a_step_through_the_scaler_is_that_of_float32(shown) -> None:
    model, inputs, targets = model_and_batch()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu")
    shown("scaler-bypassed", "Good").train(model, [(inputs, targets)], optimizer, scaler, "cpu")
    assert model.weight.abs().max().item() == pytest.approx(RATE, rel=0.01)


def test_gradients_that_nothing_scaled_are_divided_all_the_same() -> None:
    model, inputs, targets = model_and_batch()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(()))  # another loss of the same step
    nn.functional.mse_loss(model(inputs), targets).backward()
    scaler.step(optimizer)
    assert model.weight.abs().max().item() == pytest.approx(RATE / 65536, rel=0.01)


def test_a_scaler_that_has_scaled_nothing_refuses_to_step() -> None:
    model, inputs, targets = model_and_batch()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu")
    nn.functional.mse_loss(model(inputs), targets).backward()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)


@pytest.mark.parametrize(("through_the_scaler", "finite"), [(False, False), (True, True)])
def test_after_unscale_only_a_step_through_the_scaler_is_skipped(through_the_scaler: bool, finite: bool) -> None:
    model, inputs, targets = model_and_batch()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu")
    scaler.scale(nn.functional.mse_loss(model(inputs * 1e30), targets) * 1e8).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if through_the_scaler:
        scaler.step(optimizer)
    else:
        optimizer.step()
    scaler.update()  # says nothing either way
    assert bool(model.weight.isfinite().all()) is finite
