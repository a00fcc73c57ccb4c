"""Who waits for the device, how long, and from which line."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchtriage.simulation import Costs, Simulator, Synchronisation

WAITING: dict[str, tuple[Callable[[torch.Tensor], object], str]] = {
    "item": (lambda x: x[0, 0].item(), "item"),
    "float": (lambda x: float(x[0, 0]), "item"),
    "int": (lambda x: int(x[0, 0]), "item"),
    "bool": (lambda x: bool(x[0, 0]), "item"),
    "format": (lambda x: f"{x[0, 0]:.2f}", "item"),
    "index of a list": (lambda x: [1, 2][x[0, 0].long()], "item"),
    "isnan": (lambda x: 1 if x.isnan().any() else 0, "item"),
    "allclose": (lambda x: torch.allclose(x, x), "item"),
    "equal": (lambda x: torch.equal(x, x), "equal"),
    "tolist": (lambda x: x.tolist(), "copy_"),
    "cpu": (lambda x: x.cpu(), "copy_"),
    "to": (lambda x: x.to("cpu"), "copy_"),
    "numpy": (lambda x: x.cpu().numpy(), "copy_"),
    "into the host": (lambda x: torch.empty(4, 4).copy_(x), "copy_"),
    "save": (lambda x: torch.save(x, io.BytesIO()), "copy_"),
    "tensor of a list": (lambda x: torch.tensor([1.0], device=x.device), "copy_"),
    "indices of the host": (lambda x: x[torch.tensor([0, 1])], "copy_"),
    "nonzero": (lambda x: x.nonzero(), "nonzero"),
    "where": (lambda x: torch.where(x > 0), "nonzero"),
    "masked_select": (lambda x: x.masked_select(x > 0), "masked_select"),
    "mask": (lambda x: x[x > 0], "index"),
    "assignment to a mask": (lambda x: x.index_put_((x > 0,), torch.zeros(16, device=x.device)), "_index_put_impl_"),
    "unique": (lambda x: x.unique(), "_unique2"),
    "unique_consecutive": (lambda x: x.unique_consecutive(), "unique_consecutive"),
    "bincount": (lambda x: x.long().view(16).bincount(), "bincount"),
    "repeat_interleave": (lambda x: x.repeat_interleave(x.long()[0], 0), "repeat_interleave"),
    "one_hot": (lambda x: functional.one_hot(x.long()), "item"),
    "clip_grad_norm_": (lambda x: nn.utils.clip_grad_norm_([parameter(x)], 1.0, error_if_nonfinite=True), "item"),
    "synchronize": (lambda x: torch.accelerator.synchronize(), "device"),
    "synchronize of the module": (lambda x: torch.get_device_module(x.device).synchronize(), "device"),
    "synchronize of a stream": (lambda x: torch.get_device_module(x.device).current_stream().synchronize(), "stream"),
    "synchronize of an event": (
        lambda x: torch.get_device_module(x.device).current_stream().record_event().synchronize(),
        "event",
    ),
}

FREE: dict[str, Callable[[torch.Tensor], object]] = {
    "arithmetic": lambda x: (x + 1) * 2 / x.std(),
    "a comparison": lambda x: (x > 0).any(),
    "a number of the host": lambda x: x * torch.tensor(2.0),
    "filling a mask": lambda x: x.masked_fill_(x > 0, 0.0),
    "assigning a number to a mask": lambda x: x.__setitem__(x > 0, 0.0),
    "assigning a number": lambda x: x.__setitem__((0, 0), 5.0),
    "topk": lambda x: x.topk(2),
    "sort": lambda x: x.sort(),
    "nonzero_static": lambda x: torch.nonzero_static(x, size=3),
    "one_hot of known classes": lambda x: functional.one_hot(x.long(), 4),
    "repeat_interleave to a known length": lambda x: x.repeat_interleave(x.long()[0], 0, output_size=4),
    "new tensors": lambda x: (
        torch.zeros(3, device=x.device),
        torch.arange(5, device=x.device),
        torch.randn(2, device=x.device),
    ),
    "a copy to the host that nobody waits for": lambda x: x.to("cpu", non_blocking=True),
    "norms of gradients": lambda x: nn.utils.clip_grad_norm_([parameter(x)], 1.0),
    "an optimizer": lambda x: torch.optim.AdamW([parameter(x)]).step(),
    "a loss": lambda x: functional.cross_entropy(x, x.argmax(1)),
    "events": lambda x: torch.get_device_module(x.device).current_stream().record_event().query(),
    "statistics of memory": lambda x: torch.accelerator.memory_allocated(),
    "backward": lambda x: x.detach().requires_grad_().square().sum().backward(),
    "shape and type": lambda x: (x.shape, x.dtype, x.is_contiguous(), len(x)),
}


def parameter(x: torch.Tensor) -> nn.Parameter:
    made = nn.Parameter(x)
    made.grad = torch.ones_like(x)
    return made


@pytest.fixture
def busy(simulator: Simulator) -> torch.Tensor:
    """A tensor whose device is busy with it for a millisecond."""
    x = torch.ones(4, 4).to("sim")
    simulator.reset()
    simulator.costs = Costs.free(kernels={"relu_": 1_000_000})
    x.relu_()
    return x


@pytest.mark.parametrize("what", WAITING)
def test_a_call_that_needs_the_device_waits_for_it(simulator: Simulator, busy: torch.Tensor, what: str) -> None:
    call, name = WAITING[what]
    call(busy)
    first = simulator.ledger.synchronisations[0]
    line = inspect.getsourcelines(call)[1]
    assert first == Synchronisation(0, name, 0, 0, 1_000_000, __file__, line)
    assert first.waited == 1_000_000
    assert simulator.now == 1_000_000


@pytest.mark.parametrize("what", FREE)
def test_a_call_that_needs_nothing_of_the_device_does_not_wait(
    simulator: Simulator, busy: torch.Tensor, what: str
) -> None:
    FREE[what](busy)
    assert simulator.ledger.synchronisations == ()
    assert simulator.now == 0


def test_printing_waits(simulator: Simulator, busy: torch.Tensor) -> None:
    assert repr(busy[0]) == "tensor([1., 1., 1., 1.], device='sim:0')"
    waits = simulator.ledger.synchronisations
    assert waits[0].waited == 1_000_000
    assert {Path(each.file).name for each in waits} == {Path(__file__).name}


def test_a_device_that_is_idle_is_waited_for_as_well(simulator: Simulator, busy: torch.Tensor) -> None:
    busy[0, 0].item()
    busy[0, 0].item()
    assert [each.waited for each in simulator.ledger.synchronisations] == [1_000_000, 0]


def test_only_the_stream_of_a_copy_is_waited_for(simulator: Simulator, busy: torch.Tensor) -> None:
    with torch.Stream("sim"):
        busy.cpu()
    assert simulator.now == 0
    torch.accelerator.synchronize()
    assert simulator.now == 1_000_000


def test_a_gradient_scaler_waits_once_a_step(simulator: Simulator) -> None:
    model = nn.Linear(4, 4).to("sim")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("sim")
    x = torch.ones(2, 4, device="sim")
    simulator.reset()
    for _ in range(3):
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert [each.call for each in simulator.ledger.synchronisations] == ["item"] * 3
