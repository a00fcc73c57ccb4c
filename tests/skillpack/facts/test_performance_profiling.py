"""The numbers of performance-profiling's sheet, taken again from the installed torch."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode


def flops(work: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def saved_bytes(batch: int) -> int:
    """What backward keeps of a forward pass besides the parameters."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.ReLU())
    own = {parameter.data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(torch.ones(batch, 8)).sum()
    return sum(kept.values())


def state_values(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer]) -> float:
    """Values that an optimizer keeps for each value of a parameter, the step's counter aside."""
    parameter = nn.Parameter(torch.ones(100))
    made = make([parameter])
    parameter.sum().backward()
    made.step()
    held = (each for each in made.state[parameter].values() if isinstance(each, torch.Tensor) and each.numel() > 1)
    return float(sum(each.numel() for each in held) / parameter.numel())


def test_share_limit() -> None:
    assert round(1 / (1 - 0.30), 2) == 1.43


def test_utilisation_some_kernel() -> None:
    said = " ".join((torch.cuda.utilization.__doc__ or "").split())
    assert "percent of time over the past sample period during which one or more kernels was executing" in said


def test_copy_callers() -> None:
    x = torch.ones(32, 64)
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        x.to(torch.float64)
        x.t().contiguous()
        x.clone()
        torch.empty(32, 64).copy_(x)
    chains = []
    for event in prof.events() or []:
        if event.name == "aten::copy_":
            above = event.cpu_parent
            names = []
            while above is not None:
                names.append(above.name)
                above = above.cpu_parent
            chains.append(names)
    assert chains == [["aten::_to_copy", "aten::to"], ["aten::clone", "aten::contiguous"], ["aten::clone"], []]


def test_warmup_zero() -> None:
    with pytest.warns(UserWarning, match="skew profiler results"):
        schedule(wait=1, warmup=0, active=1)


def test_profiler_names() -> None:
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(2).add(1)
    averages = prof.key_averages()
    names = ("device_time_total", "self_device_memory_usage", "cuda_time_total", "self_cuda_memory_usage")
    assert [hasattr(averages[0], name) for name in names] == [True, True, False, False]
    assert "aten::add" in averages.table(sort_by="cuda_time_total")


def test_activations_by_batch() -> None:
    assert saved_bytes(16) == 2 * saved_bytes(8) > 0
    sizes = []
    for batch in (8, 16):
        model = nn.Linear(8, 16)
        model(torch.ones(batch, 8)).sum().backward()
        sizes.append(sum(p.nbytes + (p.grad.nbytes if p.grad is not None else 0) for p in model.parameters()))
    assert sizes[0] == sizes[1]


def test_optimizer_state() -> None:
    assert state_values(torch.optim.Adam) == 2
    assert state_values(lambda held: torch.optim.SGD(held, lr=0.1, momentum=0.9)) == 1
    assert state_values(lambda held: torch.optim.SGD(held, lr=0.1)) == 0


def test_clocks() -> None:
    wall, counter = time.get_clock_info("time"), time.get_clock_info("perf_counter")
    assert (wall.monotonic, wall.adjustable, counter.monotonic) == (False, True, True)


def test_timer_defaults() -> None:
    from torch.utils.benchmark import Timer

    assert inspect.signature(Timer.blocked_autorange).parameters["min_run_time"].default == 0.2


def test_prefetch_default() -> None:
    data = TensorDataset(torch.arange(4))
    assert DataLoader(data).num_workers == 0
    assert DataLoader(data, num_workers=1).prefetch_factor == 2


def test_attention_square() -> None:
    layer = nn.Linear(16, 16)

    def attention(length: int) -> int:
        q = torch.ones(1, 2, length, 16)
        return flops(lambda: (q @ q.transpose(-1, -2)).softmax(-1) @ q)

    assert attention(128) == 4 * attention(64)
    assert flops(lambda: layer(torch.ones(128, 16))) == 2 * flops(lambda: layer(torch.ones(64, 16)))


def test_flops_of_a_step() -> None:
    layer, x = nn.Linear(16, 32), torch.ones(8, 16, requires_grad=True)
    forward = flops(lambda: layer(x))
    assert forward == 2 * 8 * 16 * 32
    assert flops(lambda: layer(x).sum().backward()) == 3 * forward


def test_recompile_limit() -> None:
    import torch._dynamo

    assert torch._dynamo.config.recompile_limit == 8


def test_break_at_item() -> None:
    import torch._dynamo

    def step(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if y.sum().item() > 0:
            y = y + 1
        return y * 3

    told = torch._dynamo.explain(step)(torch.ones(3))
    torch._dynamo.reset()
    assert (told.graph_count, told.graph_break_count) == (2, 1)


def test_dynamic_second() -> None:
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter

    graphs = CompileCounter()
    compiled = torch.compile(lambda x: (x * 2).sum(), backend=graphs)
    for length in (3, 5, 7, 9, 11):
        compiled(torch.ones(length))
    torch._dynamo.reset()
    assert graphs.frame_count == 2
