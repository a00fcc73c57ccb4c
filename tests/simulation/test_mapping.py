"""A script that says "cuda" runs on the simulated device; what has no counterpart is refused with its line."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from torchtriage.simulation import Simulator
from torchtriage.simulation.cards import parse_card
from torchtriage.simulation.mapping.absent import NotSimulated
from torchtriage.simulation.rehearsal import Rehearsal


@pytest.fixture(scope="module", autouse=True)
def rehearsal(library_cache: None) -> Rehearsal:
    from torchtriage.simulation import build

    lacking = build.obstacles()
    if lacking and not build.is_built():
        pytest.skip(f"the simulated device cannot be compiled here, for lack of {', '.join(lacking)}")
    return Rehearsal(parse_card("2xH100"))


def on_device(made: torch.Tensor) -> bool:
    return made.is_cuda and made.device.type == "cuda" and made.device == torch.device("cuda", 0)


MAKERS: dict[str, Callable[[], torch.Tensor]] = {
    "a factory": lambda: torch.zeros(2, device="cuda"),
    "a factory with an index": lambda: torch.randn(2, device="cuda:0"),
    "a device": lambda: torch.ones(2, device=torch.device("cuda")),
    "a device of an index": lambda: torch.ones(2, device=torch.device("cuda", 0)),
    "an ordinal": lambda: torch.ones(2, device=0),
    "tensor": lambda: torch.tensor([1.0], device="cuda"),
    "as_tensor": lambda: torch.as_tensor([1.0], device="cuda"),
    "asarray": lambda: torch.asarray([1.0], device="cuda"),
    "like": lambda: torch.zeros_like(torch.ones(2), device="cuda"),
    "new": lambda: torch.ones(2).new_zeros(3, device="cuda"),
    "to by name": lambda: torch.ones(2).to("cuda"),
    "to with a dtype": lambda: torch.ones(2).to("cuda", torch.float16, non_blocking=True),
    "to by keyword": lambda: torch.ones(2).to(device="cuda:0"),
    "to by ordinal": lambda: torch.ones(2).to(0),
    "cuda": lambda: torch.ones(2).cuda(),
    "cuda without waiting": lambda: torch.ones(2).pin_memory().cuda(non_blocking=True),
    "cuda by ordinal": lambda: torch.ones(2).cuda(0),
    "cuda by device": lambda: torch.ones(2).cuda(torch.device("cuda:0"), non_blocking=True),
    "a module by device": lambda: nn.Linear(2, 2).cuda(torch.device("cuda", 0)).weight,
    "cuda by name": lambda: torch.ones(2).cuda("cuda:0"),
    "an old type": lambda: torch.cuda.FloatTensor([1.0, 2.0]),
    "a conversion to an old type": lambda: torch.ones(2).type(torch.cuda.LongTensor),
    "a conversion by its name": lambda: torch.ones(2).type("torch.cuda.HalfTensor"),
    "a module": lambda: nn.Linear(2, 2).cuda().weight,
    "a module by name": lambda: nn.Linear(2, 2).to("cuda", torch.bfloat16).weight,
    "a module that is made there": lambda: nn.Linear(2, 2, device="cuda").weight,
    "half precision": lambda: nn.Linear(2, 2).cuda().half()(torch.ones(1, 2).cuda().half()),
    "a copy": lambda: copy.deepcopy(torch.ones(2, device="cuda")),
    "a generator": lambda: torch.randn(2, generator=torch.Generator(device="cuda"), device="cuda"),
    "a recurrent layer": lambda: nn.LSTM(2, 2).cuda()(torch.ones(1, 1, 2, device="cuda"))[0],
}


@pytest.mark.parametrize("name", MAKERS)
def test_whatever_says_cuda_is_on_the_device_and_says_so(name: str) -> None:
    assert on_device(MAKERS[name]())


def test_a_context_and_a_default_of_the_device_hold() -> None:
    with torch.device("cuda"):
        assert on_device(torch.zeros(2))
    torch.set_default_device("cuda")
    try:
        assert on_device(torch.arange(2))
    finally:
        torch.set_default_device(None)


def test_the_device_calls_itself_cuda_everywhere() -> None:
    device = torch.device("cuda:1")
    assert (str(device), repr(device), device.type, device.index) == (
        "cuda:1",
        "device(type='cuda', index=1)",
        "cuda",
        1,
    )
    assert pickle.loads(pickle.dumps(device)) == device
    assert isinstance(device, torch.device)
    assert torch.ones(1, device="cuda").type() == "torch.cuda.FloatTensor"
    assert "device='cuda:0'" in repr(torch.ones(1, device="cuda"))


def test_what_is_there_already_is_not_copied() -> None:
    tensor = torch.ones(2, device="cuda")
    assert tensor.to("cuda") is tensor
    assert tensor.cuda() is tensor
    assert tensor.to(torch.device("cuda:0")) is tensor


LOADED: dict[str, tuple[Any, str]] = {
    "as it was saved": (None, "cuda"),
    "to the device": ("cuda", "cuda"),
    "to a device": (torch.device("cpu"), "cpu"),
    "from one to another": ({"cuda:0": "cpu"}, "cpu"),
    "by a function": (lambda storage, _: storage.cuda(), "cuda"),
}


@pytest.mark.parametrize("name", LOADED)
def test_a_checkpoint_is_loaded_where_it_is_wanted(name: str) -> None:
    where, kind = LOADED[name]
    file = io.BytesIO()
    torch.save({"weight": torch.ones(2, device="cuda")}, file)
    file.seek(0)
    assert torch.load(file, map_location=where)["weight"].device.type == kind


@pytest.mark.parametrize(
    "region",
    [
        lambda: torch.autocast("cuda"),
        lambda: torch.autocast(device_type="cuda", dtype=torch.float16),
        lambda: torch.amp.autocast("cuda"),
    ],
)
def test_autocast_of_cuda_computes_in_half(region: Callable[[], Any]) -> None:
    model, inputs = nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda")
    with region():
        assert model(inputs).dtype is torch.float16
        assert torch.is_autocast_enabled()
        assert torch.is_autocast_enabled("cuda")
        assert not torch.is_autocast_enabled("cpu")
    assert model(inputs).dtype is torch.float32


def test_a_scaler_of_cuda_scales(simulator: Simulator) -> None:
    model = nn.Linear(4, 4).cuda()
    scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.AdamW(model.parameters(), fused=True)
    for _ in range(2):
        with torch.autocast("cuda"):
            loss = model(torch.ones(2, 4, device="cuda")).float().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() > 1


def test_the_module_answers_for_the_card() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert "H100" in torch.cuda.get_device_name(0)
    assert torch.cuda.get_device_properties("cuda").total_memory == 80 * 10**9
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.is_bf16_supported()
    held = torch.cuda.memory_allocated()
    kept = torch.ones(1000, device="cuda")
    assert torch.cuda.memory_allocated("cuda:0") - held == 4096
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == held + 4096
    assert torch.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"] == held + 4096
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    del kept
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.ones(1, device="cuda").device.index == 1


def test_streams_and_events_order_work() -> None:
    stream, start, end = torch.cuda.Stream(), *(torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        start.record()
        result = torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    result.record_stream(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0


def test_random_numbers_are_seeded_and_restored() -> None:
    torch.cuda.manual_seed_all(3)
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(4, device="cuda"))
    torch.manual_seed(3)
    assert torch.equal(first, torch.rand(4, device="cuda"))
    assert len(torch.cuda.get_rng_state_all()) == 2
    with torch.random.fork_rng(devices=[0]):
        torch.rand(1, device="cuda")


def test_switches_of_libraries_can_be_set() -> None:
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.cuda.nvtx.range_push("step")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("step"):
        torch.cuda.profiler.start()


def test_batches_are_pinned_for_the_device() -> None:
    data = torch.utils.data.TensorDataset(torch.ones(8, 2))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
        assert batch.is_pinned()
        assert on_device(batch.to("cuda", non_blocking=True))


def test_a_compiled_model_runs_uncompiled_and_says_so(rehearsal: Rehearsal, capsys: pytest.CaptureFixture[str]) -> None:
    model = torch.compile(nn.Linear(2, 2).cuda(), mode="max-autotune")

    @torch.compile(dynamic=True)
    def double(values: torch.Tensor) -> torch.Tensor:
        return 2 * values

    assert on_device(double(model(torch.ones(1, 2, device="cuda"))))
    assert "uncompiled" in capsys.readouterr().err
    assert [each.name for each in rehearsal.absences.found if "uncompiled" in each.why] == ["torch.compile"] * 2


def test_data_parallel_trains_on_two_devices() -> None:
    torch.manual_seed(0)
    plain = nn.Linear(4, 2).cuda()
    model, inputs = nn.DataParallel(copy.deepcopy(plain)), torch.randn(6, 4)
    model(inputs).sum().backward()
    plain(inputs.cuda()).sum().backward()
    assert on_device(model.module.weight.grad)
    assert torch.allclose(model.module.weight.grad, plain.weight.grad)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "graphs": (lambda: torch.cuda.CUDAGraph(keep_graph=True), "CUDA graphs are not simulated"),
    "a graph": (lambda: torch.cuda.graph(None), "CUDA graphs are not simulated"),
    "graphed callables": (lambda: torch.cuda.make_graphed_callables(nn.Linear(1, 1), ()), "torch.cuda.make_graphed"),
    "utilization": (lambda: torch.cuda.utilization(0), "torch.cuda.utilization"),
    "a stream from elsewhere": (lambda: torch.cuda.ExternalStream(1), "torch.cuda.ExternalStream"),
    "a pool": (lambda: torch.cuda.MemPool(None), "torch.cuda.MemPool"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_counterpart_is_refused_with_its_line(name: str) -> None:
    ask, said = REFUSED[name]
    with pytest.raises(NotSimulated, match=said) as error:
        ask()
    assert "test_mapping.py:" in str(error.value)


def test_kernels_of_ones_own_are_refused() -> None:
    from torch.utils import cpp_extension

    with pytest.raises(NotSimulated, match=r"the extension mine \(.*test_mapping.py:\d+\)"):
        cpp_extension.load("mine", ["kernel.cpp", "kernel.cu"])
    with pytest.raises(NotSimulated, match="the extension mine"):
        cpp_extension.load_inline("mine", cpp_sources="", cuda_sources="__global__ void f() {}")


def test_a_device_mismatch_is_an_error_in_the_words_of_torch() -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
        torch.ones(2, device="cuda") + torch.ones(2)


def test_memory_runs_out_in_the_words_of_cuda(rehearsal: Rehearsal) -> None:
    rehearsal.native.set_capacity(2**20)
    try:
        with pytest.raises(
            torch.cuda.OutOfMemoryError, match=r"CUDA out of memory\. Tried to allocate 4\.00 GiB\. GPU 0"
        ):
            torch.empty(2**30, device="cuda")
    finally:
        rehearsal.native.set_capacity(rehearsal.card.memory)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_scripted_code_still_makes_tensors() -> None:
    @torch.jit.script
    def zeros(count: int) -> torch.Tensor:
        return torch.zeros([count])

    assert zeros(3).shape == (3,)
