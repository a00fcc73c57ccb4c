"""What the sheet and the topics of module-design-patterns say, taken again from the installed torch."""

from __future__ import annotations

import copy
import inspect
import math
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A residual block that may have a projection, none, or an identity as its skip."""

    def __init__(self, skip: nn.Module | None) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.skip = skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + (x if self.skip is None else self.skip(x))


def test_none_is_a_fine_skip() -> None:
    none, identity = Block(None), Block(nn.Identity())
    assert list(none.state_dict()) == list(identity.state_dict())
    assert len(list(none.parameters())) == 2
    assert none.to(torch.float64).body.weight.dtype == torch.float64
    assert copy.deepcopy(none).skip is None
    assert pickle.loads(pickle.dumps(none)).skip is None


def test_hook_sees_the_callers_mode() -> None:
    layer, seen = nn.Linear(4, 4), []
    layer.register_forward_hook(lambda module, args, output: seen.append((torch.is_grad_enabled(), output.grad_fn)))
    with torch.no_grad():
        layer(torch.randn(2, 4))
    assert seen == [(False, None)]


def test_detached_feature_shares_memory() -> None:
    x = torch.ones(4)
    shared, own = x.detach(), x.detach().clone()
    x += 1
    assert torch.equal(shared, torch.full((4,), 2.0))
    assert torch.equal(own, torch.ones(4))


def test_hook_may_remove_itself() -> None:
    layer, calls = nn.Linear(4, 4), []

    def once(module: nn.Module, args: object, output: torch.Tensor) -> None:
        calls.append(1)
        handle.remove()

    handle = layer.register_forward_hook(once)
    second = layer.register_forward_hook(lambda module, args, output: calls.append(2))
    layer(torch.randn(1, 4))
    layer(torch.randn(1, 4))
    second.remove()
    assert calls == [1, 2, 2]


def test_unknown_part_raises() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
    assert isinstance(model.get_submodule("1.0"), nn.ReLU)
    with pytest.raises(AttributeError):
        model.get_submodule("2")


def test_default_initialisation() -> None:
    layer = nn.Linear(400, 100)
    for each in (layer.weight, layer.bias):
        assert each.abs().max() <= 1 / math.sqrt(400)
    assert layer.weight.abs().max() > 0.99 / math.sqrt(400)


def test_xavier_undone() -> None:
    layer = nn.Linear(20, 20)
    nn.init.xavier_uniform_(layer.weight)
    assert math.sqrt(6 / 40) == pytest.approx(0.387, abs=0.001)
    assert layer.weight.abs().max() > 0.3
    layer.reset_parameters()
    assert layer.weight.abs().max() <= 1 / math.sqrt(20)
    assert 1 / math.sqrt(20) == pytest.approx(0.224, abs=0.001)


def test_gains() -> None:
    gain = nn.init.calculate_gain
    assert gain("relu") == pytest.approx(1.414, abs=0.001)
    assert gain("tanh") == pytest.approx(1.667, abs=0.001)
    assert gain("selu") == 0.75
    assert gain("linear") == gain("sigmoid") == 1


def spread(initialise: bool) -> float:
    torch.manual_seed(0)
    x = torch.randn(64, 512)
    start = x.std()
    with torch.no_grad():
        for _ in range(20):
            layer = nn.Linear(512, 512, bias=False)
            if initialise:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            x = layer(x).relu()
    return float(x.std() / start)


def test_depth_shrinks() -> None:
    assert spread(initialise=False) < 1e-6
    assert 0.3 < spread(initialise=True) < 2


def test_zero_start_is_the_identity() -> None:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8)
    nn.init.zeros_(norm.weight)
    x = torch.randn(16, 8)
    assert torch.equal(x + norm(nn.functional.linear(x, torch.randn(8, 8))), x)


def test_bias_before_norm() -> None:
    torch.manual_seed(0)
    convolution, norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    x = torch.randn(8, 3, 8, 8)
    first = norm(convolution(x))
    assert convolution.bias is not None
    with torch.no_grad():
        convolution.bias += 10
    torch.testing.assert_close(norm(convolution(x)), first, atol=1e-4, rtol=0)


def test_meta_costs_nothing() -> None:
    with torch.device("meta"):
        model = nn.Linear(100_000, 100_000)
    assert model.weight.device.type == "meta"
    small = nn.Linear(4, 4, device="meta").to_empty(device="cpu")
    small.reset_parameters()
    assert small.weight.abs().max() <= 0.5


def test_buffer_that_is_not_saved() -> None:
    module = nn.Module()
    module.register_buffer("saved", torch.ones(2))
    module.register_buffer("made", torch.ones(2), persistent=False)
    assert list(module.state_dict()) == ["saved"]
    assert len(list(module.buffers())) == 2
    assert {each.dtype for each in module.to(torch.float64).buffers()} == {torch.float64}
    assert inspect.signature(nn.Module.register_buffer).parameters["persistent"].default is True


def test_tied_weights_count_once() -> None:
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10, bias=False))
    model[1].weight = model[0].weight
    assert len(list(model.parameters())) == 1
    assert list(model.state_dict()) == ["0.weight", "1.weight"]
    assert model.to(torch.float64)[1].weight is model[0].weight


def test_strict_does_not_forgive_shapes() -> None:
    state = nn.Linear(4, 4).state_dict()
    with pytest.raises(RuntimeError, match="size mismatch"):
        nn.Linear(4, 5).load_state_dict(state, strict=False)


def test_assign_replaces_parameters() -> None:
    model = nn.Linear(4, 4)
    before = model.weight
    model.load_state_dict(model.state_dict())
    assert model.weight is before
    model.load_state_dict({name: each.clone() for name, each in model.state_dict().items()}, assign=True)
    assert model.weight is not before


def test_moving_keeps_parameters() -> None:
    model = nn.Linear(4, 4)
    before = model.weight
    assert model.to(torch.float64).weight is before


def test_attention_scale() -> None:
    q, k, v = (torch.randn(1, 2, 5, 8) for _ in range(3))
    plain = (q @ k.transpose(-2, -1) / math.sqrt(8)).softmax(-1) @ v
    torch.testing.assert_close(functional.scaled_dot_product_attention(q, k, v), plain)
    assert inspect.signature(nn.MultiheadAttention).parameters["batch_first"].default is False


def test_compiled_prefix() -> None:
    layer = nn.Linear(2, 2)
    assert list(torch.compile(layer, backend="eager").state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    layer.compile(backend="eager")
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_recompile_limit() -> None:
    import torch._dynamo

    assert torch._dynamo.config.recompile_limit == 8


def test_plain_list_is_not_registered() -> None:
    class Stack(nn.Module):
        def __init__(self, container: type) -> None:
            super().__init__()
            self.layers = container([nn.Linear(2, 2) for _ in range(3)])

    assert len(list(Stack(list).parameters())) == 0
    assert len(list(Stack(nn.ModuleList).parameters())) == 6


def test_wide_names_of_activations() -> None:
    for name in ("SiLU", "Mish", "GELU", "ELU", "SELU"):
        assert issubclass(getattr(nn, name), nn.Module)
