"""`torch.sim`, which `torch.get_device_module("sim")` returns: the functions of torch.cuda for simulated devices."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

NAME = "sim"


@dataclass(frozen=True)
class DeviceProperties:
    """Returned by `get_device_properties`."""

    name: str
    total_memory: int
    index: int


def register(native: Any) -> None:
    """Names the device, and registers its module and the methods of tensors, modules and storages."""
    import torch
    from torch.utils import backend_registration

    backend_registration.rename_privateuse1_backend(NAME)
    module = types.ModuleType(f"torch.{NAME}", __doc__)
    for part in (_devices, _streams, _memory, _random, _precision):
        for name, value in part(torch, native).items():
            setattr(module, name, value)
    torch._register_device_module(NAME, module)
    backend_registration.generate_methods_for_privateuse1_backend()
    _keep_parameters(torch, native)


def _keep_parameters(torch: Any, native: Any) -> None:
    """`module.to(device)` moves parameters, as to CUDA, and does not replace them: optimizers may have them already."""
    data, is_compatible = torch._C.TensorBase.data, torch._has_compatible_shallow_copy_type

    def may_move(tensor: Any, other: Any) -> bool:
        return all(each.layout is torch.strided and each.device.type != "meta" for each in (tensor, other))

    def set_data(self: Any, other: Any) -> None:
        if may_move(self, other) and self.device != other.device:
            native.set_data(self, other)
        else:
            data.__set__(self, other)

    @functools.wraps(is_compatible)  # dynamo compares signatures, and finds none of the original
    def is_compatible_or_moved(tensor: Any, other: Any) -> bool:
        is_plain = type(other) in {torch.Tensor, torch.nn.Parameter}
        return bool(is_compatible(tensor, other)) or (is_plain and may_move(tensor, other))

    torch.Tensor.data = property(data.__get__, set_data, data.__delete__)
    torch._has_compatible_shallow_copy_type = is_compatible_or_moved


def _index(torch: Any, device: Any = None) -> int:
    """The index of DEVICE: an index, a name, a torch.device, or None for the current device."""
    if device is None:
        return int(torch.accelerator.current_device_index())
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return int(torch.accelerator.current_device_index()) if index is None else int(index)


def _devices(torch: Any, native: Any) -> dict[str, Any]:
    def device_count() -> int:
        return 0 if native.is_forked_child() else int(native.device_count())

    def get_device_properties(device: Any = None) -> DeviceProperties:
        index = _index(torch, device)
        return DeviceProperties("Simulated accelerator", torch.accelerator.get_memory_info(index)[1], index)

    def set_device(device: Any) -> None:
        torch.accelerator.set_device_index(_index(torch, device))

    asked: dict[int, tuple[int, int]] = {}  # by device: when, and how long it had worked by then

    def utilization(device: Any = None) -> int:
        """The percentage of the time since it was asked last, or since the start, in which a kernel ran.

        That of CUDA is of a past period of a sixth of a second to one second.
        """
        index = _index(torch, device)
        began, before = asked.get(index, (0, 0))
        now, worked = native.now(), native.worked(index)
        asked[index] = now, worked
        return round(100 * (worked - before) / max(now - began, 1)) if now > began and worked >= before else 0

    @contextmanager
    def device(device: Any) -> Iterator[None]:
        before = native.current_device()
        set_device(device)
        try:
            yield
        finally:
            set_device(before)

    return {
        "is_simulated": True,  # its memory is the host's
        "is_available": lambda: device_count() > 0,
        "is_initialized": lambda: not native.is_forked_child(),
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "_initialized": True,  # torch.utils.checkpoint restores random states only if this is set
        "_is_in_bad_fork": native.is_forked_child,
        "device_count": device_count,
        "current_device": native.current_device,
        "set_device": set_device,
        "utilization": utilization,
        "device": device,
        "get_device_properties": get_device_properties,
        "get_device_name": lambda device=None: get_device_properties(device).name,
        "synchronize": lambda device=None: torch.accelerator.synchronize(_index(torch, device)),
    }


def _streams(torch: Any, native: Any) -> dict[str, Any]:
    class Stream(torch.Stream):  # type: ignore[misc]
        """A stream of a simulated device."""

        def __new__(cls, device: Any = None, priority: int = 0, **ids: Any) -> Any:
            if "stream_id" in ids:
                return super().__new__(cls, **ids)
            return super().__new__(cls, torch.device(NAME, _index(torch, device)), priority=priority)

    class AnyEvent(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, torch.Event)

    class Event(metaclass=AnyEvent):
        """Makes a torch.Event of the device: torch measures no time between events of a subclass."""

        def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Any:
            return torch.Event(NAME, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    def current_stream(device: Any = None) -> Any:
        return torch.accelerator.current_stream(_index(torch, device))

    def default_stream(device: Any = None) -> Any:
        kind = int(torch._C._autograd.DeviceType.PrivateUse1.value)
        return torch.Stream(stream_id=0, device_index=_index(torch, device), device_type=kind)

    @contextmanager
    def stream(stream: Any) -> Iterator[None]:
        if stream is None:
            yield
            return
        before, device = current_stream(stream.device), native.current_device()
        torch.accelerator.set_stream(stream)
        try:
            yield
        finally:
            torch.accelerator.set_stream(before)
            torch.accelerator.set_device_index(device)

    return {
        "Stream": Stream,
        "Event": Event,
        "current_stream": current_stream,
        "default_stream": default_stream,
        "set_stream": torch.accelerator.set_stream,
        "stream": stream,
    }


def _memory(torch: Any, native: Any) -> dict[str, Any]:
    accelerator = torch.accelerator
    with_index: tuple[Callable[..., Any], ...] = (
        accelerator.memory_allocated,
        accelerator.max_memory_allocated,
        accelerator.memory_reserved,
        accelerator.max_memory_reserved,
        accelerator.memory_stats,
        accelerator.reset_peak_memory_stats,
        accelerator.reset_accumulated_memory_stats,
    )

    def with_device(ask: Callable[..., Any]) -> Callable[..., Any]:
        return lambda device=None: ask(_index(torch, device))

    def memory_snapshot() -> list[dict[str, Any]]:
        return [_segment(*row) for row in native.memory_segments()]

    return {each.__name__: with_device(each) for each in with_index} | {
        "empty_cache": accelerator.empty_cache,
        "mem_get_info": with_device(accelerator.get_memory_info),
        "memory_snapshot": memory_snapshot,
    }


def _segment(device: int, stream: int, address: int, size: int, large: bool, blocks: list[Any]) -> dict[str, Any]:
    """A segment in the format of `torch.cuda.memory_snapshot()`."""
    made = []
    at = address
    for block_size, requested, allocated, active in blocks:
        state = "active_allocated" if allocated else "active_awaiting_free" if active else "inactive"
        made.append({"address": at, "size": block_size, "requested_size": requested, "state": state})
        at += block_size
    return {
        "device": device,
        "address": address,
        "total_size": size,
        "allocated_size": sum(each["size"] for each in made if each["state"] == "active_allocated"),
        "active_size": sum(each["size"] for each in made if each["state"] != "inactive"),
        "stream": stream,
        "segment_type": "large" if large else "small",
        "is_expandable": False,
        "blocks": made,
    }


def _random(torch: Any, native: Any) -> dict[str, Any]:
    def generator(device: Any) -> Any:
        return native.default_generator(_index(torch, device))

    return {
        "manual_seed": lambda seed: generator(None).manual_seed(int(seed)) and None,
        "manual_seed_all": lambda seed: native.seed_all(int(seed) % 2**64),
        "get_rng_state": lambda device=NAME: generator(device).get_state(),
        "set_rng_state": lambda new_state, device=NAME: generator(device).set_state(new_state) and None,
        "initial_seed": lambda: generator(None).initial_seed(),
    }


def _precision(torch: Any, native: Any) -> dict[str, Any]:  # noqa: ARG001
    return {
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
        "is_bf16_supported": lambda: True,
    }
