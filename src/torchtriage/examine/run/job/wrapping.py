"""Functions put in the place of others, so that a fault of ours never becomes a fault of the job."""

from __future__ import annotations

import functools
import threading
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .job import Job

    Function = Callable[..., Any]


def replace(owner: Any, name: str, make: Callable[[Function], Function]) -> Callable[[], None]:
    """Puts make(original) in the place of attribute NAME; returns what puts the original back."""
    own = vars(owner).get(name)
    if isinstance(own, (staticmethod, classmethod)):
        put: Any = type(own)(make(own.__func__))
    else:
        put = make(getattr(owner, name))
    setattr(owner, name, put)

    def back() -> None:
        if vars(owner).get(name) is not put:
            return  # someone has wrapped ours since: theirs calls ours, which has become a plain pass
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)

    return back


def guarded(job: Job, probe: str, original: Function, make: Callable[[Function], Function]) -> Function:
    """make(original) with its own time booked, and its own errors kept from the job.

    An error that comes out of the original belongs to the job and passes through; after any other, the job gets
    what the original returned, or a first call of it. When the probe leaves, it only passes on: another's may lie
    above it, so that it cannot be taken away.
    """
    compiling, governor = job.compiling, job.governor
    sampled = probe in governor.sampled
    under_way = _Calls()
    gone: list[bool] = []
    job.undo(lambda: gone.append(True))

    @functools.wraps(original)
    def through(*args: Any, **kwargs: Any) -> Any:
        call = under_way.calls[-1] if under_way.calls else _Call()
        began = now()
        try:
            call.returned = (original(*args, **kwargs),)
        except BaseException as error:
            call.raised = error
            raise
        finally:
            call.inner += now() - began
        return call.returned[0]

    made = make(through)

    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        if compiling():  # a constant to the compiler, so that it traces nothing of ours
            return original(*args, **kwargs)
        if gone or job.idle or (sampled and not governor.sees(probe)):
            return original(*args, **kwargs)
        call = _Call()
        under_way.calls.append(call)
        began = now()
        try:
            return made(*args, **kwargs)
        except Exception as error:
            if error is call.raised:
                raise
            job.switch_off(probe, error)
            if call.returned:
                return call.returned[0]
            if call.raised is not None:
                raise call.raised from None
        finally:
            under_way.calls.pop()
            own = now() - began - call.inner
            governor.book(probe, own)
            job.clock.book("probes", own)
        return original(*args, **kwargs)

    return replacement


class _Calls(threading.local):
    """The calls that are under way in each thread, the innermost last."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []


class _Call:
    """What has become of the original during one call: nanoseconds inside it, and how it came back."""

    __slots__ = ("inner", "raised", "returned")

    def __init__(self) -> None:
        self.inner = 0
        self.raised: BaseException | None = None
        self.returned: tuple[Any, ...] = ()
