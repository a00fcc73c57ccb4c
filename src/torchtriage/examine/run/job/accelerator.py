"""The one place that asks about the device beside the host: torch.accelerator, and the module of the device in use.

CUDA and ROCm, XPU, NPU, HPU, MPS, and whatever a vendor registers with torch as PrivateUse1. What the module of one
does not have is answered with nothing, never with what the host would say. Nothing here waits for a device.
"""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOST = ("", "cpu", "meta")
LITTLE = 1 << 20  # bytes in tensors, with which a device is not the one that a job trains on


class Accelerator:
    """The kind of device that the job has begun to use; to ask torch earlier would make a context that the job may not
    want.

    Of several devices it is the one where the model lies, which need not be the current one of whoever asks.

    is_followed: whether that is known; until then it is the current one.
    clock: nanoseconds of the host, beside which the device's events are held. A device that is simulated has a clock
    of its own, on which what the probes take is nothing.
    """

    clock: Callable[[], int] = staticmethod(perf_counter_ns)

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """In a forked child, which may not be able to use the device of its parent."""
        self._kind: str = ""
        self._module: Any = None
        self._of: tuple[int, ...] = ()  # what is given to functions of its module that ask for a device
        self._fullest: tuple[int, ...] = ()  # the same, of the device whose memory is read until then
        self.is_followed = self._tells_nothing = False
        self._read: Callable[..., Mapping[str, Any]] | None = None

    @property
    def kind(self) -> str:
        """Its kind, as "cuda" or "xpu"; nothing on the host, and as long as the job has used nothing else."""
        if not self._kind:
            self._look()
        return self._kind

    @property
    def module(self) -> Any:
        """torch.cuda, or what another device has in its place; None on the host."""
        return self._module if self._kind or self.kind else None

    @property
    def modules(self) -> tuple[Any, ...]:
        """Where its functions are: its own module, and torch.accelerator, which torch has since 2.6."""
        import torch

        return tuple(each for each in (self.module, getattr(torch, "accelerator", None)) if each is not None)

    def _look(self) -> None:
        import torch

        if torch.cuda.is_initialized():
            self._kind, self._module = "cuda", torch.cuda
            return
        devices = getattr(torch, "accelerator", None)  # since torch 2.6
        current = devices.current_accelerator() if devices is not None else None
        kind = current.type if current is not None else ""
        if kind and kind != "cuda" and _is_begun(module := torch.get_device_module(kind)):
            self._kind, self._module = kind, module

    def follow(self, device: Any) -> None:
        """DEVICE is where the model lies: marks, memory and generator are its own from now on."""
        if device.type == self.kind:
            self.is_followed = True
            count = getattr(self.module, "device_count", int)
            self._of = (device.index,) if device.index is not None and count() > 1 else ()

    def has(self, tensor: Any) -> bool:
        """Whether TENSOR lies on it."""
        return bool(tensor.device.type not in HOST and tensor.device.type == self.kind)

    def is_capturing(self) -> bool:
        """Whether what is launched now becomes part of a graph: nothing else may be launched then."""
        asked = getattr(self.module, "is_current_stream_capturing", None)
        return bool(asked()) if asked is not None else False

    def mark(self, *, timed: bool = False, device: Any = None) -> Any:
        """An event in the current stream that is reached when the device is: `query` tells, and between two that are
        TIMED `elapsed_time` gives milliseconds. None where the device has no events, or records a graph. DEVICE: that
        of a tensor, if the mark is not for where the model lies.
        """
        make = getattr(self.module, "Event", None)
        if make is None or self.is_capturing():
            return None
        event = make(enable_timing=timed)
        of = self._of if device is None or device.index is None else (device.index,)
        event.record(*([self.module.current_stream(*of)] if of and hasattr(self.module, "current_stream") else []))
        return event

    def stream(self) -> Any:
        """The one in which this thread queues work for the current device; None where the device has none."""
        ask = getattr(self.module, "current_stream", None)
        return ask(*self._of) if ask is not None else None

    def memory(self) -> dict[str, int]:
        """Of one device, bytes in tensors now, at their peak, and in the hands of the allocator; only what it tells."""
        stats = self._statistics()
        found = {name: figure for name, key in _BYTES.items() if (figure := _figure(stats, *key)) is not None}
        if not found and (ask := getattr(self.module, "current_allocated_memory", None)) is not None:  # MPS
            found = {"allocated": int(ask())}
        return found

    @property
    def is_simulated(self) -> bool:
        """Whether its memory is that of this process."""
        return bool(getattr(self.module, "is_simulated", False))

    def space(self) -> dict[str, int]:
        """Bytes of that device in all, and those that no process holds; only what it tells. To ask costs a call of the
        driver.
        """
        if hasattr(self.module, "mem_get_info"):
            free, total = self.module.mem_get_info(*(self._of or self._fullest))
            return {"capacity": int(total), "free": int(free)}
        ask = getattr(self.module, "recommended_max_memory", None)  # MPS
        return {"capacity": int(ask())} if ask is not None else {}

    def utilization(self) -> float | None:
        """The share of a past period in which a kernel ran on it, whoever's; None where it does not tell.

        CUDA's is of a sixth of a second to one second, by NVML, which torch asks through a package that need not be
        there. On a simulated device it is of the time since it was asked last. Without a clock of its own, as in
        a rehearsal, the device would tell how long this machine computes for it, and is not asked.
        """
        if self._tells_nothing or (self.is_simulated and not self.has_own_clock):
            return None
        ask = getattr(self.module, "utilization", None)
        if ask is None:
            return None
        try:
            return float(ask(*self._of)) / 100
        except Exception:  # noqa: BLE001 - no package, no driver, a part of a device: each version has its own error
            self._tells_nothing = True
            return None

    @property
    def has_own_clock(self) -> bool:
        """Whether its clock is none of the machine's: what the host does takes no time on it."""
        return self.clock is not perf_counter_ns

    def requests(self) -> int:
        """How often the allocator has asked the driver for memory; 0 where nobody tells."""
        return int(self._statistics().get("num_device_alloc", 0))

    def allocations(self) -> int | None:
        """How many tensors have been given memory so far: as long as that stays, nothing new is computed. None where
        nobody counts.
        """
        return _figure(self._statistics(), "allocation", "allocated")

    def _statistics(self) -> Mapping[str, Any]:
        """Of the allocator of the device that is watched. As long as no model has shown which one that is, and the
        current one holds next to nothing, it is the one that holds most: a job may say "cuda:1" wherever it moves
        something.
        """
        if self.module is None:
            return {}
        read = self._read = self._read or _reader(self.module)
        stats = read(*(self._of or self._fullest))
        held = _figure(stats, *_BYTES["allocated"])
        count = int(self.module.device_count()) if hasattr(self.module, "device_count") else 1
        if not self.is_followed and held is not None and held < LITTLE and count > 1:
            every = [_figure(read(index), *_BYTES["allocated"]) or 0 for index in range(count)]
            self._fullest = (every.index(max(every)),) if max(every) > held else self._fullest
            stats = read(*self._fullest)
        return stats

    def random_state(self) -> Any:
        """Of the device's generator; None on the host, or where it has none."""
        ask = getattr(self.module, "get_rng_state", None)
        return ask(*self._of) if ask is not None else None

    def restore_random(self, state: Any) -> None:
        """Gives the generator a STATE that `random_state` gave, and leaves it alone for None."""
        if state is not None:
            self.module.set_rng_state(state, *self._of)

    def devices(self) -> list[dict[str, Any]]:
        """Name, memory in bytes and, of CUDA, the compute capability of each device that this process may use."""
        if not hasattr(self.module, "get_device_properties"):
            return []
        every = [self.module.get_device_properties(index) for index in range(self.module.device_count())]
        return [
            {"name": each.name, "memory": int(each.total_memory), "capability": _capability(each)}
            for each in every
            if hasattr(each, "total_memory")
        ]

    def autocast(self) -> list[str]:
        """The kinds of device for which autocast is on now, this one before the host."""
        import torch

        kinds = (self._kind or self.kind, "cpu")
        return [kind for kind in kinds if kind and torch.is_autocast_enabled(kind)]


_BYTES = {
    "allocated": ("allocated_bytes", "current"),
    "peak": ("allocated_bytes", "peak"),
    "reserved": ("reserved_bytes", "current"),
}


def _reader(module: Any) -> Callable[..., Mapping[str, Any]]:
    """What tells the statistics of the allocator of a device by its index, of the current one without.

    Nested ones where there are any, since to write a hundred of them flat takes six times as long: of CUDA, XPU and NPU
    their module has them; of devices that share torch's interface, as PrivateUse1, torch itself (since 2.9). Whether
    a device does is known once it has been asked.
    """
    import torch

    if hasattr(module, "memory_stats_as_nested_dict"):
        read: Callable[..., Mapping[str, Any]] = module.memory_stats_as_nested_dict
        return read
    if not hasattr(module, "memory_stats"):
        return lambda *_: {}
    nested = getattr(torch._C, "_accelerator_getDeviceStats", None)
    current = getattr(torch._C, "_accelerator_getDeviceIndex", None)
    if nested is not None and current is not None:
        with suppress(RuntimeError):  # its allocator has statistics of its own
            nested(current())
            return lambda *index: nested(*(index or (current(),)))
    flat: Callable[..., Mapping[str, Any]] = module.memory_stats
    return flat


def _figure(stats: Mapping[str, Any], key: str, which: str) -> int | None:
    """One of STATS, nested or flat; None where they lack it."""
    nested = stats.get(key)
    found = nested["all"].get(which) if nested is not None else stats.get(f"{key}.all.{which}")
    return None if found is None else int(found)


def _is_begun(module: Any) -> bool:
    """Whether the job has used the device of MODULE: MPS, which is always there, has memory then."""
    if hasattr(module, "is_initialized"):
        return bool(module.is_initialized())
    asked = getattr(module, "current_allocated_memory", None)
    return asked is not None and asked() > 0


def _capability(properties: Any) -> list[int]:
    return [properties.major, properties.minor] if hasattr(properties, "major") else []


accelerator = Accelerator()  # of this process: there is one kind beside the host
