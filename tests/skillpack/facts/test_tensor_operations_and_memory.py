"""What the sheet and the topics of tensor-operations-and-memory say, taken again from the installed torch."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Box:
    """What stands for one tensor that autograd has saved."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class Saved(weakref.WeakSet[Box]):
    """The tensors that are saved for backward and still alive."""

    def box(self, tensor: torch.Tensor) -> Box:
        box = Box(tensor)
        self.add(box)
        return box

    def bytes(self, beside: nn.Module | None = None) -> int:
        """Of each storage once, without those of the parameters of BESIDE."""
        own = {each.untyped_storage().data_ptr() for each in beside.parameters()} if beside else set()
        held = {each.tensor.untyped_storage().data_ptr(): each.tensor.untyped_storage().nbytes() for each in self}
        return sum(size for place, size in held.items() if place not in own)


@contextmanager
def watched() -> Iterator[Saved]:
    saved = Saved()
    with torch.autograd.graph.saved_tensors_hooks(saved.box, lambda box: box.tensor):
        yield saved


def perceptron(width: int = 64, depth: int = 4) -> nn.Sequential:
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers)


def kept(keep: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], **backward: bool) -> tuple[int, int]:
    """How many tensors were saved by a forward pass, and how many are alive after backward with KEEP's result kept."""
    model = perceptron()
    with watched() as saved:
        output = model(torch.randn(8, 64))
        loss = output.square().mean()
        before = len(saved)
    loss.backward(**backward)
    held = keep(output, loss)
    del output, loss
    assert held is not None
    return before, len(saved)


def test_kept_after_backward() -> None:
    before, after = kept(lambda output, loss: loss)
    assert before > 0
    assert after == 0
    assert kept(lambda output, loss: output)[1] == 0


def test_kept_with_retain_graph() -> None:
    before, after = kept(lambda output, loss: loss, retain_graph=True)
    assert after == before > 0


def test_eval_saves() -> None:
    model = perceptron()
    counts = []
    for mode, context in ((True, nullcontext()), (False, nullcontext()), (False, torch.no_grad())):
        model.train(mode)
        with watched() as saved, context:
            output = model(torch.randn(8, 64))
            counts.append(saved.bytes())
        del output
    training, evaluation, without = counts
    assert training == evaluation > 0
    assert without == 0


def test_zero_grad_missing() -> None:
    layer = nn.Linear(64, 64)
    layer(torch.randn(2, 64)).sum().backward()
    assert layer.weight.grad is not None
    first = layer.weight.grad.data_ptr()
    layer(torch.randn(2, 64)).sum().backward()
    assert layer.weight.grad.data_ptr() == first
    assert layer.weight.grad.untyped_storage().nbytes() == 64 * 64 * 4


def state_bytes(make: Callable[..., torch.optim.Optimizer]) -> float:
    """Bytes of optimizer state for each parameter."""
    layer = nn.Linear(64, 64, bias=False)
    optimizer = make(layer.parameters(), lr=1e-3)
    layer(torch.randn(2, 64)).sum().backward()
    optimizer.step()
    states = [each for state in optimizer.state.values() for each in state.values() if isinstance(each, torch.Tensor)]
    return sum(each.nbytes for each in states if each.numel() > 1) / layer.weight.numel()


def test_bytes_of_states() -> None:
    assert state_bytes(torch.optim.AdamW) == state_bytes(torch.optim.Adam) == 8
    assert state_bytes(partial(torch.optim.SGD, momentum=0.9)) == 4
    assert state_bytes(torch.optim.SGD) == 0


def test_bytes_of_adam_training() -> None:
    layer = nn.Linear(8, 8, bias=False)
    layer(torch.randn(2, 8)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.element_size() + layer.weight.grad.element_size() + state_bytes(torch.optim.Adam) == 16


def test_foreach_peak() -> None:
    assert "sizeof(params) more peak memory than the for-loop" in (torch.optim.Adam.__doc__ or "")


def test_autocast_keeps_fp32() -> None:
    layer = nn.Linear(64, 64)
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(torch.randn(8, 64))
    assert output.dtype == torch.bfloat16
    output.float().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.dtype == layer.weight.grad.dtype == torch.float32


def activations(
    model: nn.Module, batch: int, context: AbstractContextManager[object] | None = None, width: int = 64
) -> int:
    with watched() as saved, context or nullcontext():
        output = model(torch.randn(batch, width))
        held = saved.bytes(model)
    del output
    return held


def test_activations_follow_the_batch() -> None:
    model = perceptron()
    assert activations(model, 64) == 4 * activations(model, 16) > 0


def test_inplace_saves_nothing_more() -> None:
    plain = perceptron()
    inplace = nn.Sequential(*(nn.ReLU(inplace=True) if isinstance(each, nn.ReLU) else each for each in plain))
    assert activations(plain, 64) == activations(inplace, 64) > 0


def test_frozen_prefix() -> None:
    model = perceptron().requires_grad_(requires_grad=False)
    assert activations(model, 64) == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoint_runs_forward_twice(reentrant: bool) -> None:
    calls = []

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return functional.dropout(self.inner(x), 0.5)

    block, x = Block(), torch.randn(2, 4, requires_grad=True)
    torch.manual_seed(3)
    checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    assert len(calls) == 2
    again = block.inner.weight.grad
    block.inner.weight.grad = None
    torch.manual_seed(3)
    block(x).sum().backward()
    assert again is not None
    assert block.inner.weight.grad is not None
    assert torch.equal(again, block.inner.weight.grad)


def attention_bytes(length: int, fused: bool) -> int:
    q, k, v = (torch.randn(1, 2, length, 32, requires_grad=True) for _ in range(3))
    with watched() as saved:
        if fused:
            output = functional.scaled_dot_product_attention(q, k, v)
        else:
            output = (q @ k.transpose(-2, -1) / 32**0.5).softmax(-1) @ v
        held = saved.bytes()
    del output
    return held


def test_attention_saves() -> None:
    assert attention_bytes(1024, fused=False) > 3.5 * attention_bytes(512, fused=False)
    assert attention_bytes(1024, fused=True) < 2.1 * attention_bytes(512, fused=True)
    assert attention_bytes(1024, fused=False) > 8 * attention_bytes(1024, fused=True)


def test_cross_entropy_saves_the_logits() -> None:
    logits = torch.randn(64, 1000, requires_grad=True)
    with watched() as saved:
        loss = functional.cross_entropy(logits, torch.zeros(64, dtype=torch.long))
        held = saved.bytes()
    del loss
    assert logits.nbytes <= held < 1.02 * logits.nbytes


def test_logits_of_a_large_vocabulary() -> None:
    logits = torch.empty(8, 2048, 128_256, device="meta")
    assert round(logits.nbytes / 1e9, 1) == 8.4


def test_slice_keeps_all() -> None:
    batch = torch.randn(256, 64)
    row = batch[0].detach()
    assert row.untyped_storage().nbytes() == batch.nbytes == 256 * row.nbytes
    assert row.clone().untyped_storage().nbytes() == row.nbytes


def test_view_costs_nothing() -> None:
    x = torch.randn(64, 32)
    for view in (x.t(), x[:, ::2], x.expand(8, 64, 32), x.unsqueeze(0), x.transpose(0, 1)):
        assert view.data_ptr() == x.data_ptr()
    assert x.t().contiguous().data_ptr() != x.data_ptr()
    assert x.t().reshape(-1).data_ptr() != x.data_ptr()


def test_channels_last() -> None:
    x = torch.randn(2, 3, 4, 5)
    y = x.to(memory_format=torch.channels_last)
    assert y.shape == x.shape
    assert torch.equal(x, y)
    assert (x.stride(), y.stride()) == ((60, 20, 5, 1), (60, 1, 15, 3))


def test_exception_keeps_tensors() -> None:
    found: list[weakref.ref[torch.Tensor]] = []

    def step() -> None:
        hidden = torch.randn(4)
        found.append(weakref.ref(hidden))
        raise torch.OutOfMemoryError

    try:
        step()
    except torch.OutOfMemoryError:
        inside = found[0]() is not None
    assert inside
    assert found[0]() is None


def test_oom_class() -> None:
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError


def header(name: str) -> str:
    return Path(torch.__file__).with_name("include").joinpath(name).read_text(encoding="utf-8")


def test_block_sizes() -> None:
    text = header("c10/core/AllocatorConfig.h")
    for name, size in {"kMinBlockSize": 512, "kSmallSize": 2**20, "kSmallBuffer": 2 * 2**20}.items():
        assert f"{name} = {size};" in text


def test_memory_budget_of_compile() -> None:
    from torch._functorch import config

    assert config.activation_memory_budget == 1.0


def test_second_backward_raises() -> None:
    cell = nn.GRU(4, 4)
    output, hidden = cell(torch.randn(3, 1, 4))
    output.sum().backward()
    output, _ = cell(torch.randn(3, 1, 4), hidden)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        output.sum().backward()


def test_set_to_none() -> None:
    assert inspect.signature(torch.optim.Optimizer.zero_grad).parameters["set_to_none"].default is True


def test_hook_after_accumulation() -> None:
    model = perceptron(depth=6)
    most = []

    def step(parameter: torch.Tensor) -> None:
        most.append(sum(each.grad is not None for each in model.parameters()))
        parameter.grad = None

    for each in model.parameters():
        each.register_post_accumulate_grad_hook(step)
    model(torch.randn(2, 64)).sum().backward()
    assert len(most) == 12
    assert max(most) <= 2


def test_broadcast_squares() -> None:
    assert (torch.ones(8, 1) - torch.ones(8)).shape == (8, 8)
