"""Functions put in the place of others, so that a fault of ours never becomes a fault of the job."""

from __future__ import annotations

import functools
import threading
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from ..code.interrupts import is_asynchronous

if TYPE_CHECKING:
    from collections.abc import Callable

    from .rest import Rest
    from .session import Session

    Function = Callable[..., Any]


def replace(owner: Any, name: str, make: Callable[[Function], Function]) -> Callable[[], None]:
    """Puts make(original) in the place of attribute NAME; returns what puts the original back.

    Where another of ours lies above, that happens when the one above is taken away.
    """
    own = vars(owner).get(name)
    if isinstance(own, (staticmethod, classmethod)):
        put: Any = type(own)(make(own.__func__))
    else:
        put = make(getattr(owner, name))
    setattr(owner, name, put)
    layer = _Layer(put, own)
    layers = _layers.setdefault((id(owner), name), [])
    layers.append(layer)

    def back() -> None:
        layer.over = True
        while layers and layers[-1].over and vars(owner).get(name) is layers[-1].put:
            below = layers.pop().own
            if below is None:
                delattr(owner, name)
            else:
                setattr(owner, name, below)
        if all(each.over for each in layers):
            layers.clear()  # someone has wrapped ours since: theirs calls ours, which has become a plain pass

    return back


class _Layer:
    """One function of ours in the place of another. over: it is to go, as soon as nothing lies above it."""

    def __init__(self, put: Any, own: Any) -> None:
        self.put, self.own, self.over = put, own, False


_layers: dict[tuple[int, str], list[_Layer]] = {}  # of an attribute of an owner, the innermost first


def guarded(job: Session, rest: Rest, original: Function, make: Callable[[Function], Function]) -> Function:
    """make(original) with its own time booked, and its own errors kept from the job.

    An error that comes out of the original belongs to the job and passes through; after any other, the job gets
    what the original returned, or a first call of it. When the probe leaves, it only passes on: another's may lie
    above it, so that it cannot be taken away.
    """
    probe, compiling, governor = job.placing, job.compiling, job.governor
    sampled = probe in governor.sampled  # one that is spaced listens so, and misses no call
    under_way = _Calls()
    gone: list[bool] = []
    kept = [job]  # until the probe leaves: whoever has taken hold of the replacement must not keep the job alive

    def left() -> None:
        gone.append(True)
        kept.clear()
        mades.clear()

    job.undo(left)

    mades = [make(_timed(original, under_way))]
    del job

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        if compiling() or (sampled and rest.on):  # the first a constant to the compiler, which traces nothing of ours
            return original(*args, **kwargs)
        if gone or kept[0].idle or (sampled and not governor.sees(probe)) or kept[0].is_observed():
            return original(*args, **kwargs)
        call, job, made = _Call(), kept[0], mades[0]
        call.pause = job.pause
        under_way.calls.append(call)
        before = call.pause(True) if call.pause is not None else False
        began = now()
        try:
            return made(*args, **kwargs)
        except Exception as error:
            if error is call.raised or is_asynchronous(error):
                raise
            job.switch_off(probe, error)
            if call.returned:
                return call.returned[0]
            if call.raised is not None:
                raise call.raised from None
        finally:
            if call.pause is not None:
                call.pause(before)
            under_way.calls.pop()
            own = now() - began - call.inner
            governor.book(probe, own)
            job.phases.book("probes", own)
        return original(*args, **kwargs)

    return replacement


def _timed(original: Function, under_way: _Calls) -> Function:
    """ORIGINAL, with its time and how it came back noted in the call that is under way."""

    @functools.wraps(original)
    def through(*args: Any, **kwargs: Any) -> Any:
        call = under_way.calls[-1] if under_way.calls else _Call()
        before = call.pause(False) if call.pause is not None else False
        began = now()
        try:
            call.returned = (original(*args, **kwargs),)
        except BaseException as error:
            call.raised = error
            raise
        finally:
            call.inner += now() - began
            if call.pause is not None:
                call.pause(before)
        return call.returned[0]

    return through


class _Calls(threading.local):
    """The calls that are under way in each thread, the innermost last."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []


class _Call:
    """What has become of the original during one call: nanoseconds inside it, and how it came back.

    pause: stops a simulated device from counting what is not the job's own, and says whether it was stopped before.
    """

    __slots__ = ("inner", "pause", "raised", "returned")

    def __init__(self) -> None:
        self.inner = 0
        self.pause: Callable[[bool], bool] | None = None
        self.raised: BaseException | None = None
        self.returned: tuple[Any, ...] = ()
