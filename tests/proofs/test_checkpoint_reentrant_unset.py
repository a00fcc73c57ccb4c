"""Without use_reentrant torch warns, and the first block of a network does not train."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.utils.checkpoint import CheckpointError, checkpoint

from torchtriage.catalog import walk


def test_the_old_way_gives_the_first_block_no_gradient(shown) -> None:
    model = shown("checkpoint-reentrant-unset", "Bad").Network()
    with pytest.warns(UserWarning) as warned:  # noqa: PT030 - two texts, both looked at below
        model(torch.ones(2, 4)).sum().backward()
    texts = " ".join(str(each.message) for each in warned)
    assert "the use_reentrant parameter should be passed explicitly" in texts
    assert "None of the inputs have requires_grad=True" in texts
    assert model.first.weight.grad is None
    assert model.last.weight.grad is not None


def test_the_new_way_gives_one_without_a_warning(shown) -> None:
    model = shown("checkpoint-reentrant-unset", "Good").Network()
    model(torch.ones(2, 4)).sum().backward()
    assert model.first.weight.grad is not None


Part = Callable[[torch.Tensor], torch.Tensor]


class Twice:
    """A part that computes exp in forward, and AGAIN when it is run for backward."""

    def __init__(self, again: Part) -> None:
        self.runs: list[Part] = [torch.exp, again]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.runs.pop(0)(x)


def gradient(again: Part, use_reentrant: bool) -> str:
    """What the page's table says of the gradient at 1."""
    x = torch.ones(1, requires_grad=True)
    y = checkpoint(Twice(again), x, use_reentrant=use_reentrant)
    try:
        y.sum().backward()
    except CheckpointError:
        return "`CheckpointError`"
    return f"{x.grad.item():.2f}, no error"


PARTS: dict[str, Part] = {
    "`3 * x`, which saves nothing": lambda x: 3 * x,
    "`sigmoid(x)`, which saves as much": torch.sigmoid,
    "`exp(x)` in float64": lambda x: x.double().exp().float(),
}


@pytest.mark.parametrize("named", PARTS)
def test_what_a_second_run_that_differs_does_in_either_way(named: str) -> None:
    row = f"| {named} | {gradient(PARTS[named], True)} | {gradient(PARTS[named], False)} |"
    assert row in walk.pages()["checkpoint-reentrant-unset"].read_text(encoding="utf-8")


def test_the_old_way_raises_only_where_the_output_has_another_shape() -> None:
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        gradient(lambda x: x.exp().repeat(3), use_reentrant=True)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_without_the_state_of_the_generator_dropout_drops_other_values_in_backward(use_reentrant: bool) -> None:
    torch.manual_seed(0)
    x = torch.ones(100, requires_grad=True)
    drop = torch.nn.functional.dropout
    kept = checkpoint(drop, x, use_reentrant=use_reentrant, preserve_rng_state=False)
    kept.sum().backward()
    assert not torch.equal(x.grad != 0, kept != 0)
