"""`torch.cuda`, with what the simulated device has; the rest is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any

from .absent import Absences

_GRAPHS = "CUDA graphs are not simulated; rehearse without them"
_NO_COUNTERPART = "the simulated accelerator has no counterpart of it"
_REASONS = {"CUDAGraph": _GRAPHS, "graph": _GRAPHS, "make_graphed_callables": _GRAPHS, "graph_pool_handle": _GRAPHS}
_KEPT = {"device", "device_of", "_get_device_index"}  # in Python, above what is replaced
_OWN = ("memory_summary", "memory_cached", "max_memory_cached", "check_error")  # the same


def map_module(torch: Any, native: Any, absences: Absences, properties: Any) -> None:
    """Fills torch.cuda, and the modules below it, whose functions call one another."""
    cuda, sim = torch.cuda, torch.sim
    offered = {name: value for name, value in vars(sim).items() if not name.startswith("__") and name not in _KEPT}
    del offered["utilization"]  # a rehearsal has no times
    offered |= _devices(torch, native, absences, properties) | _memory(torch, native, cuda) | _random(torch, native)
    parts = [cuda, *(getattr(cuda, name) for name in ("memory", "random", "streams", "graphs", "_utils"))]
    for part in parts:
        for name, value in list(vars(part).items()):
            if name in offered:
                setattr(part, name, offered[name])
            elif _is_refused(name, value):
                why = _REASONS.get(name, _NO_COUNTERPART)
                make = absences.refused_class if isinstance(value, type) else absences.refusal
                setattr(part, name, make(f"torch.cuda.{name}", why))
    for name, value in offered.items():
        setattr(cuda, name, value)
    _map_annotations(cuda)


def _is_refused(name: str, value: Any) -> bool:
    if name.startswith("_") or name in _KEPT or name in _OWN or name.endswith(("Storage", "Tensor", "StreamContext")):
        return False
    own = (getattr(value, "__module__", None) or "").startswith("torch.cuda")
    return own and callable(value) and not (isinstance(value, type) and issubclass(value, BaseException))


def _devices(torch: Any, native: Any, absences: Absences, properties: Any) -> dict[str, Any]:
    def lazy_init() -> None:
        absences.refuse('device "cuda"', "it reached torch by a way that is not mapped to the simulated accelerator")

    def exchange(device: int) -> int:
        before = int(native.current_device())
        if device >= 0:
            torch.sim.set_device(device)
        return before

    def get_device_properties(device: Any = None) -> Any:
        index = torch._utils._get_device_index(device, optional=True, allow_cpu=False)
        if not 0 <= index < native.device_count():
            raise AssertionError("Invalid device id")
        return properties

    def set_sync_debug_mode(debug_mode: int | str) -> None:  # noqa: ARG001
        absences.note("torch.cuda.set_sync_debug_mode", "ignored; the report names each line that synchronises")

    return {
        "_lazy_init": lazy_init,
        "_exchange_device": exchange,
        "_maybe_exchange_device": exchange,
        "default_generators": tuple(native.default_generator(index) for index in range(native.device_count())),
        "get_device_properties": get_device_properties,
        "get_device_name": lambda device=None: get_device_properties(device).name,
        "get_device_capability": lambda device=None: _capability(get_device_properties(device)),
        "get_arch_list": lambda: ["sm_{}{}".format(*_capability(properties))],
        "is_bf16_supported": lambda including_emulation=True: properties.major >= 8 or including_emulation,
        "is_tf32_supported": lambda: properties.major >= 8,
        "can_device_access_peer": lambda device, peer_device: device != peer_device,
        "is_current_stream_capturing": lambda: False,
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": set_sync_debug_mode,
    }


def _capability(properties: Any) -> tuple[int, int]:
    return properties.major, properties.minor


def _memory(torch: Any, native: Any, cuda: Any) -> dict[str, Any]:  # noqa: ARG001
    def nested(device: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in cuda.memory_stats(device).items():
            *above, last = name.split(".")
            at = found
            for part in above:
                at = at.setdefault(part, {})
            at[last] = value
        return found

    return {
        "memory_stats_as_nested_dict": nested,
        "reset_max_memory_allocated": lambda device=None: cuda.reset_peak_memory_stats(device),
        "reset_max_memory_cached": lambda device=None: cuda.reset_peak_memory_stats(device),
        "get_allocator_backend": lambda: "native",
        "ipc_collect": lambda: None,
    }


def _random(torch: Any, native: Any) -> dict[str, Any]:
    def each() -> list[Any]:
        return [native.default_generator(index) for index in range(native.device_count())]

    def get_rng_state_all() -> list[Any]:
        return [generator.get_state() for generator in each()]

    def set_rng_state_all(states: Any) -> None:
        for generator, state in zip(each(), states, strict=False):
            generator.set_state(state)

    def seed_all() -> None:
        torch.sim.manual_seed_all(torch.Generator().seed())

    return {
        "get_rng_state_all": get_rng_state_all,
        "set_rng_state_all": set_rng_state_all,
        "seed": seed_all,
        "seed_all": seed_all,
        "_get_generator": lambda device: native.default_generator(device.index or 0),
    }


def _map_annotations(cuda: Any) -> None:
    """Marks for NVIDIA's profilers change nothing, and are passed over."""

    @contextmanager
    def around(*_: Any, **__: Any) -> Any:
        yield

    nothing: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(cuda.nvtx, name, nothing)
    cuda.nvtx.range = around
    cuda.profiler.start = cuda.profiler.stop = nothing
    cuda.profiler.profile = nullcontext
