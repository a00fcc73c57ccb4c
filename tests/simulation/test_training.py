"""Trainings on the device have the numbers of the CPU, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchtriage.simulation import Simulator

Optimizer = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.embedding, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.layers(self.embedding(tokens), mask=mask, is_causal=True)).flatten(0, 1)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Dropout(0.2), nn.Linear(32, 8))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, groups=2), nn.GroupNorm(4, 16), nn.SiLU(), nn.ConvTranspose2d(16, 8, 2),
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 8),
    )  # fmt: skip


def vectors(source: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(8, 16, generator=source), torch.randint(8, (8,), generator=source)


def images(source: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(4, 3, 16, 16, generator=source), torch.randint(8, (4,), generator=source)


def tokens(source: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(32, (4, 8), generator=source), torch.randint(32, (32,), generator=source)


MODELS = {"mlp": (mlp, vectors), "cnn": (cnn, images), "transformer": (Transformer, tokens)}

OPTIMIZERS: dict[str, Optimizer] = {
    "adamw, foreach": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=True),
    "adamw, fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
    "adamw, one by one": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, foreach=False),
    "sgd, foreach": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
    "sgd, fused": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, fused=True),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, momentum=0.9, centered=True, foreach=True),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, foreach=True),
    "adafactor": torch.optim.Adafactor,
    "nadam": lambda parameters: torch.optim.NAdam(parameters, foreach=True),
}


def train(device: str, model: str, optimizer: str) -> tuple[list[float], list[torch.Tensor]]:
    make, batch = MODELS[model]
    torch.manual_seed(0)
    net = make().to(device)
    steps = OPTIMIZERS[optimizer](net.parameters())
    source = torch.Generator().manual_seed(7)
    torch.manual_seed(1)
    losses = []
    for _ in range(4):
        inputs, targets = (each.to(device) for each in batch(source))
        steps.zero_grad()
        loss = functional.cross_entropy(net(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        steps.step()
        losses.append(loss.item())
    return losses, [each.detach().cpu() for each in net.state_dict().values()]


@pytest.mark.parametrize("model", MODELS)
def test_a_training_has_the_numbers_of_the_cpu(simulator: Simulator, model: str) -> None:
    losses, state = train("cpu", model, "adamw, foreach")
    ours, our_state = train("sim", model, "adamw, foreach")
    assert losses == ours
    assert all(torch.equal(a, b) for a, b in zip(state, our_state, strict=True))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_has_the_numbers_of_the_cpu(simulator: Simulator, optimizer: str) -> None:
    assert train("cpu", "mlp", optimizer)[0] == train("sim", "mlp", optimizer)[0]


@pytest.mark.parametrize(
    ("make", "kernels"),
    [
        (OPTIMIZERS["adamw, fused"], ["_foreach_add_", "_fused_adamw_"]),
        (OPTIMIZERS["sgd, fused"], ["_fused_sgd_"]),
        (lambda parameters: torch.optim.SGD(parameters, lr=0.1), ["_foreach_add_"]),
        (lambda parameters: torch.optim.SGD(parameters, lr=0.1, foreach=False), ["add_"] * 4),
    ],
)
def test_fused_and_foreach_optimizers_are_few_kernels(
    simulator: Simulator, make: Optimizer, kernels: list[str]
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to("sim")
    optimizer = make(model.parameters())
    for _ in range(2):  # the first makes the state
        model(torch.ones(1, 4, device="sim")).sum().backward()
        simulator.reset()
        optimizer.step()
    assert [each.name for each in simulator.ledger.kernels] == kernels


def computed_under_autocast(device: str, dtype: torch.dtype) -> dict[str, set[torch.dtype]]:
    """The formats of results, by what becomes of them: computed in DTYPE, kept in it, in float32, in the widest."""
    linear, conv = nn.Linear(8, 8).to(device), nn.Conv1d(8, 8, 1).to(device)
    x = torch.randn(8, 8, device=device)
    with torch.autocast(device, dtype=dtype):
        low = [linear(x), x @ x, conv(x[None]), functional.scaled_dot_product_attention(*[x[None, None]] * 3)]
        half = linear(x)
        full = [
            half.softmax(-1),
            half.exp(),
            half.sum(),
            functional.layer_norm(half, (8,)),
            functional.mse_loss(half, x),
        ]
        widest = [torch.cat([half, x]), torch.addcmul(x, half, half), half + x]
        kept = [half.relu(), half * 2]
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            functional.binary_cross_entropy(half.sigmoid(), x.sigmoid())
    results = {"low": low, "kept": kept, "full": full, "widest": widest, "outside": [linear(x)]}
    return {kind: {each.dtype for each in tensors} for kind, tensors in results.items()}


def lists_of_cuda(dtype: torch.dtype) -> dict[str, set[torch.dtype]]:
    full = {torch.float32}
    return {"low": {dtype}, "kept": {dtype}, "full": full, "widest": full, "outside": full}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_has_the_lists_of_cuda(simulator: Simulator, dtype: torch.dtype) -> None:
    assert computed_under_autocast("sim", dtype) == lists_of_cuda(dtype)


def test_autocast_of_the_cpu_does_not_touch_the_device(simulator: Simulator) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2, device="sim") @ torch.ones(2, 2, device="sim")).dtype == torch.float32


def test_a_gradient_scaler_skips_steps_that_overflow(simulator: Simulator) -> None:
    model = nn.Linear(4, 1).to("sim")
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = torch.amp.GradScaler("sim", init_scale=2.0**10, growth_interval=2)
    scales, moved = [], []
    for factor in (1.0, float("inf"), 1.0, 1.0):
        before = model.weight.detach().clone()
        with torch.autocast("sim", dtype=torch.float16):
            loss = model(torch.ones(2, 4, device="sim")).sum() * factor
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        moved.append(not torch.equal(before, model.weight))
    assert scales == [1024, 512, 512, 1024]
    assert moved == [True, False, True, True]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_agree_with_the_cpu_to_rounding(simulator: Simulator, kind: type[nn.RNNBase]) -> None:
    torch.manual_seed(0)
    host = kind(8, 12, 2, bidirectional=True, batch_first=True)
    device = kind(8, 12, 2, bidirectional=True, batch_first=True)
    device.load_state_dict(host.state_dict())
    x = torch.randn(3, 5, 8)
    results = []
    for layer, inputs in ((host, x), (device.to("sim"), x.to("sim"))):
        inputs.requires_grad_()
        layer(inputs)[0].square().sum().backward()
        results.append([inputs.grad.cpu(), *(each.grad.cpu() for each in layer.parameters())])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_recomputation_draws_the_same_numbers_again(simulator: Simulator) -> None:
    drop = nn.Dropout(0.5)
    x = torch.ones(100, device="sim", requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda inputs: drop(inputs) * inputs, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y.detach())


def test_functions_of_autograd_and_transforms_work(simulator: Simulator) -> None:
    x = torch.tensor([1.0, 2.0], device="sim", requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
    assert torch.vmap(lambda row: row.sum())(torch.ones(3, 2, device="sim")).tolist() == [2.0, 2.0, 2.0]
    assert torch.func.jacrev(torch.square)(x.detach()).diag().tolist() == [2.0, 4.0]
    assert torch.complex(x, x).conj().imag.tolist() == [-1.0, -2.0]
