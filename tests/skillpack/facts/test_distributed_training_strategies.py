"""What the sheet on distributed training claims, taken again from the installed torch."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
dist = torch.distributed
HOME = Path(torch.__file__).parent

# What each of two processes runs: what the body leaves in `result` goes back as JSON.
RANK = """
import json, sys
import torch
import torch.distributed as dist

store, rank, body = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
torch.manual_seed(rank)
exec(body)
print(json.dumps(result))
dist.destroy_process_group()
"""


def on_two(body: str, folder: Path) -> list[Any]:
    """What BODY leaves in `result` on each of two ranks."""
    command = [sys.executable, "-c", RANK, (folder / "store").as_uri()]
    started = [subprocess.Popen([*command, str(rank), body], stdout=subprocess.PIPE) for rank in (0, 1)]
    return [json.loads(process.communicate(timeout=240)[0]) for process in started]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """A process group of this process."""
    dist.init_process_group("gloo", init_method=(tmp_path / "store").as_uri(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_ddp_broadcasts(tmp_path: Path) -> None:
    body = """
inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
inner[1].running_mean.fill_(rank)
before = inner[0].weight.sum().item()
torch.nn.parallel.DistributedDataParallel(inner)
result = [before, inner[0].weight.sum().item(), inner[1].running_mean.sum().item()]
"""
    first, second = on_two(body, tmp_path)
    assert first[0] != second[0]
    assert first[1:] == second[1:] == [first[0], 0.0]


def test_scales_equal(tmp_path: Path) -> None:
    body = """
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
before = model.module.weight.clone()
scaler.scale(model(torch.full((1, 2), float("inf") if rank else 1.0)).sum()).backward()
scaler.step(optimizer)
scaler.update()
result = [scaler.get_scale(), torch.equal(before, model.module.weight)]
"""
    assert on_two(body, tmp_path) == [[32768.0, True]] * 2


def reductions(outer: bool, inner: bool) -> int:
    """How often gradients are reduced in 4 micro-batches; OUTER: no_sync around the forward too, INNER: around backward."""
    seen: list[int] = []

    def count(state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        seen.append(1)
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    count.__annotations__.clear()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    model.register_comm_hook(None, count)
    for index in range(4):
        with model.no_sync() if outer and index < 3 else contextlib.nullcontext():
            loss = model(torch.randn(2, 4)).sum()
            with model.no_sync() if inner and index < 3 else contextlib.nullcontext():
                loss.backward()
    return len(seen)


def test_no_sync_count(alone: None) -> None:
    assert [reductions(False, False), reductions(True, False), reductions(False, True)] == [4, 1, 4]


def test_adam_bytes() -> None:
    weight = torch.nn.Parameter(torch.ones(100))
    optimizer = torch.optim.Adam([weight])
    weight.sum().backward()
    optimizer.step()
    states = sum(each.nbytes for each in optimizer.state[weight].values() if each.ndim)
    assert [weight.nbytes // 100, weight.grad.nbytes // 100, states // 100] == [4, 4, 8]


def test_sampler_pads() -> None:
    sampler = torch.utils.data.DistributedSampler
    assert [len(list(sampler(range(10), 4, rank))) for rank in range(4)] == [3] * 4
    assert [len(list(sampler(range(10), 4, rank, drop_last=True))) for rank in range(4)] == [2] * 4


def test_powersgd(alone: None) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState

    assert PowerSGDState(None).start_powerSGD_iter == 1000


def test_timeouts() -> None:
    from torch.distributed.constants import default_pg_timeout

    assert default_pg_timeout == timedelta(minutes=30)
    header = (HOME / "include/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp").read_text()
    said = header.partition("kProcessGroupNCCLDefaultTimeout =")[2].partition(";")[0]
    assert "milliseconds(10 * 60 * 1000)" in said


def test_buckets() -> None:
    header = (HOME / "include/torch/csrc/distributed/c10d/reducer.hpp").read_text()
    assert "kDefaultFirstBucketBytes = 1024 * 1024;" in header
    assert "kDefaultBucketBytesCap = 25 * 1024 * 1024;" in header


def test_ports() -> None:
    from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend
    from torch.distributed.run import get_args_parser

    assert c10d_rendezvous_backend.DEFAULT_PORT == 29400
    assert "Defaults to 29500" in get_args_parser().format_help()


class Branched(torch.nn.Module):
    """Two layers of which one is used."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.used(inputs)


def test_unused_raises(alone: None) -> None:
    wrapped = torch.nn.parallel.DistributedDataParallel
    lenient, strict = wrapped(Branched(), find_unused_parameters=True), wrapped(Branched())
    for _ in range(2):
        lenient(torch.ones(1, 2)).sum().backward()
    strict(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
        strict(torch.ones(1, 2))


def test_criterion_empty() -> None:
    criterion = torch.nn.CrossEntropyLoss()
    assert [*criterion.parameters(), *criterion.buffers()] == []


def test_sparse_stays(alone: None) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(4, 2, sparse=True))
    model(torch.tensor([1])).sum().backward()
    assert model.module.weight.grad.is_sparse


def test_fsdp_keeps_fp32(alone: None) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.distributed.tensor import DTensor

    model = torch.nn.Linear(2, 2)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)), mp_policy=policy)
    outputs = model(torch.ones(1, 2))
    outputs.sum().backward()  # the outermost module gathers its shards again only after backward
    assert outputs.dtype == torch.bfloat16
    assert isinstance(model.weight, DTensor)
    assert model.weight.dtype == torch.float32


def test_found_inf_reduced() -> None:
    text = (HOME / "distributed/tensor/_dispatch.py").read_text()
    assert "_amp_foreach_non_finite_check_and_unscale_.default: found_inf_reduce_handler" in text


def test_data_parallel_advice() -> None:
    said = " ".join((torch.nn.DataParallel.__doc__ or "").split())
    assert "recommended to use :class:`~torch.nn.parallel.DistributedDataParallel`" in said
    assert "even if there is only a single node" in said


def test_launch_deprecated() -> None:
    text = (HOME / "distributed/launch.py").read_text()
    assert "The module torch.distributed.launch is deprecated" in text


def test_flight_recorder() -> None:
    headers = HOME / "include/torch/csrc/distributed/c10d"
    assert (
        '{"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 2000);'
        in (headers / "FlightRecorder.hpp").read_text()
    )
    assert "TORCH_NCCL_DUMP_ON_TIMEOUT" in (headers / "ProcessGroupNCCL.hpp").read_text()
