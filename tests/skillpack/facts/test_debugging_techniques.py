"""The numbers of debugging-techniques' sheet, taken again from the installed torch."""

from __future__ import annotations

import gc
import inspect
import math
import pickle
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Failing(Dataset[int]):  # type: ignore[misc]
    """A dataset whose samples cannot be made."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        raise ValueError(f"no sample {index}")


class Kept:
    """A tensor that was saved for backward, so that it can be asked whether it is still there."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def kept_while_the_loss_is(*, backward: bool) -> tuple[int, int]:
    """How many tensors a forward pass saved, and how many of them are there while its loss is."""
    saved: list[weakref.ref[Kept]] = []

    def pack(tensor: torch.Tensor) -> Kept:
        kept = Kept(tensor)
        saved.append(weakref.ref(kept))
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        loss = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))(torch.ones(2, 4)).sum()
    if backward:
        loss.backward()
    gc.collect()
    return len(saved), sum(each() is not None for each in saved)


def parameters_with_gradients(*gradients: float) -> list[nn.Parameter]:
    made = [nn.Parameter(torch.zeros(1)) for _ in gradients]
    for parameter, gradient in zip(made, gradients, strict=True):
        parameter.grad = torch.tensor([gradient])
    return made


def exp_overflows_above(value: float, dtype: torch.dtype) -> bool:
    """Whether exp() is finite just below VALUE and infinite just above, to what DTYPE can tell."""
    steps = 1 if dtype is torch.bfloat16 else 0.01
    below, above = torch.tensor([value - steps, value + steps], dtype=dtype).exp()
    return bool(below.isfinite()) and bool(above.isinf())


def test_chance_loss() -> None:
    for classes, loss in ((2, 0.693), (10, 2.303), (1000, 6.908)):
        guess = functional.cross_entropy(torch.zeros(4, classes), torch.arange(4) % classes)
        assert round(guess.item(), 3) == round(math.log(classes), 3) == loss
    torch.manual_seed(0)
    fresh = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    first = functional.cross_entropy(fresh(torch.randn(256, 20)), torch.randint(10, (256,)))
    assert abs(first.item() - 2.303) < 0.3


def test_anomaly_sees() -> None:
    x = torch.zeros(2, requires_grad=True)
    outside = (x.sqrt() * 0).sum()
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        watching = torch.autograd.detect_anomaly()
    with watching:
        x.sqrt().sum().backward()
        assert x.grad is not None
        assert x.grad.isinf().all()
        made = ((x + math.inf) - math.inf).sum()
        made.backward()
        assert made.isnan()
        inside = (x.sqrt() * 0).sum()
        for loss, told in ((inside, "Traceback of forward call"), (outside, "No forward pass information")):
            with pytest.warns(UserWarning, match=told), pytest.raises(RuntimeError, match="returned nan values"):
                loss.backward()


def test_clip_infinite() -> None:
    parameters = parameters_with_gradients(math.inf, 1.0, 1.0)
    nn.utils.clip_grad_norm_(parameters, 1.0)
    gradients = [parameter.grad.item() for parameter in parameters if parameter.grad is not None]
    assert math.isnan(gradients[0])
    assert gradients[1:] == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameters_with_gradients(math.inf), 1.0, error_if_nonfinite=True)


def test_loss_keeps() -> None:
    saved, kept = kept_while_the_loss_is(backward=False)
    assert saved == kept > 0
    assert kept_while_the_loss_is(backward=True)[1] == 0


def test_buffer_follows() -> None:
    module = nn.Module()
    module.register_buffer("held", torch.ones(2))
    plain = torch.ones(2)
    module.plain = plain
    module.to("meta")
    assert (module.get_buffer("held").device.type, plain.device.type) == ("meta", "cpu")


def test_hooks_no_grad() -> None:
    layer, seen = nn.Linear(2, 2), list[bool]()
    layer.register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    with torch.no_grad():
        layer(torch.ones(1, 2))
    assert seen == [False]


def test_fp16_limits() -> None:
    assert torch.finfo(torch.float16).max == 65504
    assert exp_overflows_above(11.09, torch.float16)


def test_exp_fp32() -> None:
    assert exp_overflows_above(88.72, torch.float32)
    assert exp_overflows_above(88.72, torch.bfloat16)


def test_format_limits() -> None:
    half, brain, single = (torch.finfo(each) for each in (torch.float16, torch.bfloat16, torch.float32))
    assert f"{half.smallest_normal:.2e}" == "6.10e-05"
    subnormal = torch.tensor([1], dtype=torch.int16).view(torch.float16)
    assert f"{subnormal.item():.2e}" == "5.96e-08"
    assert brain.smallest_normal == single.smallest_normal
    assert (brain.eps, single.bits - brain.bits) == (2.0**-7, 16)


def test_bf16_native() -> None:
    assert inspect.signature(torch.cuda.is_bf16_supported).parameters["including_emulation"].default is True
    source = inspect.getsource(torch.cuda.is_bf16_supported)
    assert "get_device_properties(device).major >= 8" in source


def test_flat_features() -> None:
    assert 64 * 30 * 30 == 57600
    body = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten())
    features = body(torch.zeros(4, 3, 32, 32))
    assert features.shape == (4, 57600)
    with pytest.raises(RuntimeError, match="4x57600 and 64x128"):
        nn.Linear(64, 128)(features)


def test_version_counts() -> None:
    x = torch.ones(3, requires_grad=True).relu()
    x *= 2
    x /= 0.5
    with pytest.raises(RuntimeError, match="version 2; expected version 0"):
        x.sum().backward()


def test_oom_class() -> None:
    assert issubclass(torch.OutOfMemoryError, RuntimeError)


def test_overfit() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    inputs, labels = torch.randn(8, 20), torch.randint(10, (8,))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    assert functional.cross_entropy(model(inputs), labels).item() < 0.01


def test_cpu_index_errors() -> None:
    with pytest.raises(IndexError, match="index out of range in self"):
        nn.Embedding(10, 4)(torch.tensor([10]))
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        functional.cross_entropy(torch.zeros(1, 3), torch.tensor([3]))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_worker_echo() -> None:
    with pytest.raises(ValueError, match=r"^no sample 0$"):
        next(iter(DataLoader(Failing())))
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 0") as caught:
        next(iter(DataLoader(Failing(), num_workers=1)))
    assert "Original Traceback" in str(caught.value)


def test_loader_timeout() -> None:
    assert DataLoader(Failing()).timeout == 0


def test_module_pickles() -> None:
    layer = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
    with pytest.raises(RuntimeError, match="requires grad"):
        layer(torch.ones(2)).numpy()
    with torch.no_grad():
        assert layer(torch.ones(2)).numpy().shape == (2,)


def test_fork_cuda() -> None:
    assert "Cannot re-initialize CUDA in forked subprocess" in inspect.getsource(torch.cuda)
