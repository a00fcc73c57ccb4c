"""A loss without its graph trains nothing, and says so only while requires_grad is not set by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd import Variable


@pytest.mark.parametrize(("section", "learns"), [("Bad", False), ("Good", True)])
def test_only_with_its_graph_the_loss_moves_the_weights(shown, section: str, learns: bool) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    start = model.weight.detach().clone()
    shown("loss-detached", section).train(model, [(torch.ones(4, 3), torch.ones(4, 1))] * 20)
    assert (model.weight.grad is not None) is learns
    assert torch.equal(model.weight, start) is not learns


def test_without_requires_grad_backward_raises() -> None:
    loss = nn.Linear(3, 1)(torch.ones(1, 3)).sum()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        loss.detach().backward()


def test_a_variable_made_of_a_loss_is_a_new_leaf() -> None:
    layer = nn.Linear(3, 1)
    loss = Variable(layer(torch.ones(1, 3)).sum(), requires_grad=True)
    loss.backward()
    assert loss.grad_fn is None
    assert layer.weight.grad is None


def test_torch_warns_of_a_tensor_made_of_a_tensor() -> None:
    loss = nn.Linear(3, 1)(torch.ones(1, 3)).sum()
    with pytest.warns(UserWarning, match="copy construct from a tensor"):
        assert torch.tensor(loss, requires_grad=True).grad_fn is None
