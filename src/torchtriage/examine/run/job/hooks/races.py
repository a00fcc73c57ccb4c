"""Where the host uses memory of a non-blocking copy that is still under way: numbers read too early, or overwritten.

An event of the device just behind the copy tells whether it has ended: whatever the job has waited for in between, an
event, the stream, the device or a number of it, if it has waited for the copy, the event has been reached.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from ..code import frames
from ..events import CopyRaces
from .transfers import Region, region_of, tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..job import Job

    Place = tuple[str, int, str]  # file, line and call

READS = (
    "item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__repr__", "__eq__", "__ne__", "__lt__",
    "__le__", "__gt__", "__ge__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
    "__rtruediv__", "sum", "mean", "max", "min", "argmax", "clone",
)  # fmt: skip
"""Methods of tensors that read all of one on the host before they return.

Functions as torch.stack are left alone: compiled models call them, and would be compiled anew.
"""
CASTS = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
"""Methods that read a tensor of another type than they return."""
WRITES = (
    "fill_", "zero_", "add_", "sub_", "mul_", "div_", "__iadd__", "__isub__", "__imul__", "__itruediv__", "normal_",
    "uniform_", "random_",
)  # fmt: skip
MOST = 256  # copies that are followed at a time


class Flight:
    """A copy that may be under way. mark: the device reaches it when the copy has ended. place: of its call."""

    __slots__ = ("is_to_host", "mark", "place", "region")

    def __init__(self, place: Place, region: Region, mark: Any, *, is_to_host: bool) -> None:
        self.place, self.region, self.mark, self.is_to_host = place, region, mark, is_to_host

    @property
    def is_over(self) -> bool:
        """Whether the copy has ended, or nobody can see the memory any more: torch gives it to nobody until then."""
        return self.region.is_gone or bool(self.mark.query())


class Races:
    """The copies under way by their memory, and the uses of it in the step.

    sources: memory that was copied to the device. Only where one is copied again it is a buffer that somebody fills
    anew; batches of a loader never are, and cost no more than this.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.hook = job, job.placing
        self.flights: dict[int, list[Flight]] = {}
        self.sources: dict[int, Region] = {}
        self.views: list[tuple[Flight, weakref.ref[Any]]] = []  # arrays of NumPy in memory under way
        self.races: dict[tuple[Place, bool, Place], int] = {}
        self.probes: dict[str, bool] = {}  # whether each is placed

    def note(self, call: str, source: Any, result: Any) -> None:
        """A copy has been queued that asks the host not to wait, between the device and pinned memory.

        What is no single piece the host copies together before it goes to the device, and takes apart when it has come:
        nothing of it is under way. The same may be so of what the device gets in another type.
        """
        is_to_host = accelerator.has(source)
        host, on_device = (result, source) if is_to_host else (source, result)
        region = region_of(host)
        if region is None or not region.is_whole or len(self.flights) >= MOST:
            return
        is_as_it_is = source.dtype == result.dtype and source.shape == result.shape
        if not (is_to_host or (is_as_it_is and self._comes_again(region))):
            return
        self.probes.setdefault("reads" if is_to_host else "writes", False)
        if (mark := accelerator.mark(device=on_device.device)) is not None:
            flight = Flight((*frames.caller(), call), region, mark, is_to_host=is_to_host)
            self.flights.setdefault(region.key, []).append(flight)

    def _comes_again(self, region: Region) -> bool:
        if region.key in self.sources:
            return True
        if len(self.sources) >= MOST:
            self.sources.clear()
        self.sources[region.key] = region
        return False

    def use(self, call: str, tensors: Iterable[Any], *, writes: bool = False) -> None:
        """The host is about to read or write the numbers of TENSORS, in CALL."""
        for flight in self._under_way(tensors):
            if writes or flight.is_to_host:
                self._add(flight, (*frames.caller(), call))

    def _under_way(self, tensors: Iterable[Any]) -> Iterator[Flight]:
        """The copies into or out of one of TENSORS that have not ended."""
        if accelerator.is_capturing():
            return
        for tensor in tensors:
            region = region_of(tensor) if tensor.device.type == "cpu" else None
            met = self.flights.get(region.key, ()) if region is not None else ()
            yield from [each for each in met if region is not None and each.region.meets(region) and not each.is_over]

    def _add(self, flight: Flight, place: Place) -> None:
        """Of each copy the first use counts: what follows it may be made of it."""
        flights = self.flights.get(flight.region.key, [])
        if flight in flights:
            flights.remove(flight)
            key = flight.place, flight.is_to_host, place
            self.races[key] = self.races.get(key, 0) + 1

    # In the place of the calls that use numbers on the host, once there are copies that they could meet

    def _place_reads(self, job: Job) -> None:
        import torch

        job.sampled()
        for name in READS:
            job.wrap(torch.Tensor, name, functools.partial(self.wrap_read, name))
        job.wrap(torch, "save", functools.partial(self.wrap_read, "save"))
        for name, dtype in CASTS.items():
            job.wrap(torch.Tensor, name, functools.partial(self.wrap_cast, name, getattr(torch, dtype)))
        job.wrap(torch.Tensor, "copy_", self.wrap_copied)
        job.wrap(torch.Tensor, "numpy", self.wrap_numpy)

    def _place_writes(self, job: Job) -> None:
        import torch

        job.sampled()
        for name in WRITES:
            job.wrap(torch.Tensor, name, functools.partial(self.wrap_write, name))
        job.wrap(torch.Tensor, "copy_", self.wrap_filled)
        job.wrap(torch.Tensor, "__setitem__", self.wrap_setting)

    def wrap_read(self, name: str, original: Any) -> Any:
        """What reads the tensors that it is given."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.flights:
                self.use(name, tensors_in(args))
            return original(*args, **kwargs)

        return call

    def wrap_cast(self, name: str, dtype: Any, original: Any) -> Any:
        """What reads a tensor unless it is of DTYPE already."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.flights and args[0].dtype != dtype:
                self.use(name, tensors_in(args[:1]))
            return original(*args, **kwargs)

        return call

    def wrap_copied(self, original: Any) -> Any:
        """`copy_`, of what the host has; a copy to the device is queued behind the one under way."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.flights and args[0].device.type == "cpu":
                self.use("copy_", tensors_in((*args[1:2], kwargs.get("src"))))
            return original(*args, **kwargs)

        return call

    def wrap_filled(self, original: Any) -> Any:
        """`copy_`, into what the host has, from the host: one from the device is queued behind the one under way."""

        def call(*args: Any, **kwargs: Any) -> Any:
            source = args[1] if len(args) > 1 else kwargs.get("src")
            if self.flights and not (hasattr(source, "device") and accelerator.has(source)):
                self.use("copy_", tensors_in(args[:1]), writes=True)
            return original(*args, **kwargs)

        return call

    def wrap_write(self, name: str, original: Any) -> Any:
        """What changes a tensor in place."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.flights:
                self.use(name, tensors_in(args[:1]), writes=True)
            return original(*args, **kwargs)

        return call

    def wrap_setting(self, original: Any) -> Any:
        """Assigning to a part of a tensor, where the part is a view: by numbers and slices."""

        def call(tensor: Any, index: Any, value: Any) -> Any:
            is_of_host = not (hasattr(value, "device") and accelerator.has(value))
            if self.flights and is_of_host and tensor.device.type == "cpu" and _is_basic(index):
                self.use("__setitem__", tensors_in(tensor.detach()[index]), writes=True)
            return original(tensor, index, value)

        return call

    def wrap_numpy(self, original: Any) -> Any:
        """`numpy`, which reads nothing itself: whether its array was used too early shows where it is freed early."""

        def call(*args: Any, **kwargs: Any) -> Any:
            array = original(*args, **kwargs)
            for flight in self._under_way(tensors_in(args[:1])) if self.flights else ():
                if flight.is_to_host:
                    freed = functools.partial(self._free, flight, (*frames.caller(), "numpy"))
                    self.views.append((flight, weakref.ref(array, freed)))
            return array

        return call

    def _free(self, flight: Flight, place: Place, _array: Any) -> None:
        """An array is freed: if the copy has not ended, all that was read from it was read too early."""
        try:
            if not self.job.left and not accelerator.is_capturing() and not flight.mark.query():
                self._add(flight, place)
        except Exception as error:  # noqa: BLE001 - it would be printed among what the job prints
            self.job.switch_off(self._probe("reads"), error)

    # The ends of steps

    def _probe(self, kind: str) -> str:
        return f"{self.hook} of {kind} beside copies"

    def end_step(self, step: int) -> None:
        """Writes down the races of the step, if there were any, and looks for others from now on."""
        if self.races:
            races = [
                (*copy, "host" if is_to_host else "device", *use, times)
                for (copy, is_to_host, use), times in self.races.items()
            ]
            self.job.record(CopyRaces(at=step, races=races))
            self.races = {}
        if not accelerator.is_capturing():
            waiting = {key: [each for each in met if not each.is_over] for key, met in self.flights.items()}
            self.flights = {key: met for key, met in waiting.items() if met}
            self.views = [each for each in self.views if each[1]() is not None and not each[0].is_over]
        for kind, is_placed in self.probes.items():
            if not is_placed:
                self.probes[kind] = True
                self.job.place(self._probe(kind), self._place_reads if kind == "reads" else self._place_writes)

    def withdraw(self) -> None:
        """Enough has been seen."""
        self.flights, self.views, self.sources = {}, [], {}
        for kind, is_placed in self.probes.items():
            if is_placed:
                self.job.withdraw(self._probe(kind))


def _is_basic(index: Any) -> bool:
    """Whether it makes a view: bool is an int, but a mask."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(each is None or each is ... or isinstance(each, slice) or type(each) is int for each in parts)
