"""What ended the job: the error as the user would have seen it without us, and what met on the line that raised it."""

from __future__ import annotations

import ast
import functools
import math
import os
import re
import sys
from contextlib import suppress
from time import time_ns
from traceback import StackSummary, TracebackException
from typing import TYPE_CHECKING, Any

from ..code.frames import is_own, path_of, raised
from ..events import Error, replace
from ..record import redaction
from ..watch import patching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType, TracebackType

    from ..job import Job

LONGEST = 16_000  # characters of a traceback, half of them from each end: that of a recursion has a thousand frames
MESSAGE = 2000
MOST = 12  # operands that are described
LARGEST = 100_000_000  # values of a tensor that is looked through for NaN
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_QUOTED = re.compile(r'(?<=  File ")[^"\n]{1,1000}(?=", line \d)')  # also in a traceback that a worker sent as text
_TARGET = re.compile(r"^\s*[\w.,\[\] ]+=(?!=)")  # what an assignment would have set still holds what was before
_WHOLE = 200  # characters of a module's description


def place(job: Job) -> None:
    """Keeps our frames out of the traceback that the interpreter prints, whoever prints it."""
    printed = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        with suppress(Exception):  # the user's error is printed whatever becomes of its frames
            remove_own_frames(error)
        printed(kind, error, error.__traceback__ or trace)

    def back() -> None:
        if sys.__excepthook__ is excepthook:
            sys.__excepthook__ = printed
        if sys.excepthook is excepthook:
            sys.excepthook = printed

    if printed is sys.__excepthook__:  # a job that asks whether its hook is the interpreter's own gets the same answer
        sys.__excepthook__ = excepthook
    sys.excepthook = excepthook
    job.undo(back)
    _keep_out_of_workers(job)


def _keep_out_of_workers(job: Job) -> None:
    """Keeps our frames out of the traceback that a DataLoader worker or a replica sends as text with its error."""
    from torch._utils import ExceptionWrapper

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrap(self: Any, exc_info: Any = None, *args: Any, **kwargs: Any) -> None:
            with suppress(Exception):  # the user's error is passed on whatever becomes of its frames
                kind, error, _ = exc_info or sys.exc_info()
                if error is not None:
                    remove_own_frames(error)
                    exc_info = (kind, error, error.__traceback__)
            original(self, exc_info, *args, **kwargs)

        return wrap

    job.undo(patching.replace(ExceptionWrapper, "__init__", make))


_describing: list[BaseException] = []  # ours are no errors that the job prints


def is_describing() -> bool:
    """Whether a traceback is being made for the record, and not by the job."""
    return bool(_describing)


def write(job: Job, error: Error) -> None:
    """ERROR, in the rank's record; where there is none, or it is closed, in the list of processes."""
    if job.left or not job.writer.opened:
        job.writer.note(replace(error, pid=os.getpid(), rank=job.writer.ranked(), step=job.step))
    else:
        job.record(error)


def remove_own_frames(error: BaseException) -> None:
    """Takes the frames of our package out of the traceback of ERROR and of the errors that it was raised from."""
    for each in _chain(error):
        with suppress(Exception):  # an error may be frozen
            each.__traceback__ = _without_own(each.__traceback__)


def describe(error: BaseException, job: Job) -> Error:
    """ERROR as one event: its type, message, traceback without our frames, and the user's own innermost line.

    operands: tensors and modules that the raising line names, by shape, dtype and device, never by value. module: the
    path of the innermost module whose forward pass raised it.
    """
    path, line = raised(error)
    told = Error(
        time=time_ns(),
        error=type(error).__name__,
        message=_QUOTED.sub(_users, redaction.cleaned(_message(error)))[:MESSAGE],
        path=path,
        line=line,
    )
    if isinstance(error, KeyboardInterrupt):  # it may import nothing: see attach/sitecustomize.py
        return told
    told.traceback = _traceback(error)
    with suppress(Exception):  # an object of the user's may refuse any question
        _look_at_the_line(error, job, told)
    return told


def not_finite(frame: FrameType, line: int) -> list[tuple[str, str]]:
    """The names on LINE of FRAME, and in the condition around it, that hold NaN or infinity: ("loss", "nan").

    Of a tensor one value is enough. Other names of the frame are not asked: the best figure so far begins at infinity.
    """
    import linecache

    file = frame.f_code.co_filename
    text = f"{linecache.getline(file, line)}\n{_condition(''.join(linecache.getlines(file)), line)}"
    found = ((name, _bad(value)) for name, value in _looked_up(frame, text))
    return [(name, value) for name, value in found if value]


def _condition(source: str, line: int) -> str:
    """What the innermost `if`, `while` or `assert` around LINE asks; "" where there is none."""
    nodes = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If | ast.While | ast.Assert) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return ast.unparse(max(nodes, key=lambda node: node.lineno).test) if nodes else ""


def _bad(value: Any) -> str:
    """Which of "nan" and "inf" VALUE, a number or a tensor, is or holds; "" for neither."""
    import torch

    if isinstance(value, float):
        return "nan" if math.isnan(value) else "inf" if math.isinf(value) else ""
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.layout is torch.strided:
        if value.device.type == "meta" or value.numel() > LARGEST:
            return ""
        return "nan" if value.isnan().any() else "inf" if value.isinf().any() else ""
    return ""


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a class of the user's whose own words fail
        return "its message cannot be made"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [each.__cause__, each.__context__]
            waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()


def _without_own(trace: TracebackType | None) -> TracebackType | None:
    first = last = None
    while trace is not None:
        following = trace.tb_next
        if not is_own(trace.tb_frame.f_code):
            if last is None:
                first = trace
            elif last.tb_next is not trace:
                last.tb_next = trace
            last = trace
        trace = following
    if last is not None:
        last.tb_next = None
    return first


def _traceback(error: BaseException) -> str:
    """As the interpreter prints it, with the user's files as the user writes them, and without secrets."""
    _describing.append(error)
    try:
        told = TracebackException.from_exception(error)
    finally:
        _describing.clear()
    _rename(told, set())
    text = _QUOTED.sub(_users, redaction.cleaned("".join(told.format())))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}\n  ...\n{text[-LONGEST // 2 :]}"


def _users(file: re.Match[str]) -> str:
    return path_of(file[0]) or file[0]


def _rename(told: TracebackException, seen: set[int]) -> None:
    if id(told) in seen:
        return
    seen.add(id(told))
    frames = [frame for frame in told.stack if not is_own(frame.filename)]
    for frame in frames:
        frame.filename = path_of(frame.filename) or frame.filename
    told.stack = StackSummary.from_list(frames)
    for each in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if each is not None:
            _rename(each, seen)


def _look_at_the_line(error: BaseException, job: Job, told: Error) -> None:
    """Adds what is known of the user's innermost frame, and of the modules below it, while they are alive."""
    frames = list(_frames(error.__traceback__))
    own = [number for number, (frame, _) in enumerate(frames) if path_of(frame.f_code) is not None]
    if not own:
        return
    frame, line = frames[own[-1]]
    below = [each for each, _ in frames[own[-1] + 1 :]]
    module = next((found for each, _ in reversed(frames) if (found := _module(each)) is not None), None)
    operands = [*_named(frame, line), *(pair for each in below[-1:] if _module(each) for pair in _tensors(each))]
    known: dict[str, str] = {}
    for name, value in operands:
        if (text := _described(value)) is not None and len(known) < MOST and text not in known.values():
            known.setdefault(name, text)
    told.function, told.operands = frame.f_code.co_name, list(known.items())
    with suppress(Exception):  # a device that an error has left in a state of its own
        if not told.error.endswith("OutOfMemoryError"):  # to look would take memory, which the device does not have
            told.not_finite = not_finite(frame, line)
    if module is not None:
        told.module, told.module_is = job.module_name(module), _described(module)


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while trace is not None:
        if not is_own(trace.tb_frame.f_code):
            yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _module(frame: FrameType) -> Any:
    """The module whose method the frame is, other than the one that only calls another's forward."""
    from torch.nn import Module

    own = frame.f_locals.get("self")
    return own if isinstance(own, Module) and frame.f_code.co_name.startswith("forward") else None


def _named(frame: FrameType, line: int) -> Iterator[tuple[str, Any]]:
    """The objects that the source of LINE names, looked up without running any code of the user's."""
    import linecache

    yield from _looked_up(frame, _TARGET.sub("", linecache.getline(frame.f_code.co_filename, line)))


def _looked_up(frame: FrameType, text: str) -> Iterator[tuple[str, Any]]:
    """The names in TEXT, code of FRAME, with what they hold."""
    for name in dict.fromkeys(_NAME.findall(text)):
        first, *rest = name.split(".")
        value = frame.f_locals.get(first)
        for attribute in rest:
            found = _attribute(value, attribute)
            if found is None:
                break
            value, first = found, f"{first}.{attribute}"
        yield first, value


def _attribute(value: Any, name: str) -> Any:
    """What VALUE holds under NAME by itself; None for what a property or a method would have to compute."""
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return None
    tables = [held, *(held.get(each) or {} for each in ("_parameters", "_buffers", "_modules"))]
    return next((table[name] for table in tables if isinstance(table, dict) and name in table), None)


def _tensors(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The tensors among the arguments of a library's frame."""
    code = frame.f_code
    for name in code.co_varnames[: code.co_argcount]:
        if name != "self":
            yield name, frame.f_locals.get(name)


def _described(value: Any) -> str | None:
    """A tensor by shape, dtype and device, a module by its class and arguments; None for anything else."""
    import torch

    if isinstance(value, torch.Tensor):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')} on {value.device}"
    if isinstance(value, torch.nn.Module):
        return _module_text(value)
    return None


def _module_text(module: Any) -> str:
    """As torch prints one of its own layers; the class alone for what holds others or has a repr of its own."""
    describe: Callable[[], str] | None = getattr(module, "extra_repr", None)
    is_of_torch = type(module).__module__.startswith("torch.nn.")
    inner = describe() if is_of_torch and describe is not None and not module._modules else ""
    return f"{type(module).__name__}({inner})"[:_WHOLE]
