"""Behind nine sigmoids the first layer gets a millionth of the gradient, and nothing is learned."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch


def first_over_last(block: SimpleNamespace) -> tuple[float, float]:
    """The first layer's gradient over the last one's, per weight; and the loss over that of the best constant."""
    model, loss = block.train(80)
    inputs = torch.randn(256, 32, generator=torch.Generator().manual_seed(1))
    model(inputs).square().mean().backward()
    sizes = [layer.weight.grad.square().mean().sqrt() for layer in model if hasattr(layer, "weight")]
    return float(sizes[0] / sizes[-1]), loss


def test_the_first_layer_gets_a_gradient_only_in_good(shown: Any) -> None:
    bad, _ = first_over_last(shown("gradients-vanishing", "Bad"))
    good, _ = first_over_last(shown("gradients-vanishing", "Good"))
    assert bad < 1e-5
    assert good > 1e-2


def test_bad_stays_where_it_is_and_good_goes_on(shown: Any) -> None:
    bad, good = (shown("gradients-vanishing", section).train for section in ("Bad", "Good"))
    assert bad(400)[1] > 0.98 * bad(80)[1]
    assert good(400)[1] < 0.7 * bad(400)[1]
