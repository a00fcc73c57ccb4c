"""Errors that come out of our code and are not ours: what a signal handler of the job, or another thread, throws in."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import CodeType
from typing import Any

_OURS = str(Path(__file__).resolve().parents[3])


_TRACED = ("roots.py", "wrapping.py")  # these ask the compiler themselves, and it has to follow them to the model


def shun() -> None:
    """Lets torch's compiler, which is there by now, run our code as it is where it would compile it by itself."""
    from torch._dynamo.eval_frame import skip_code

    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(_OURS) and Path(file).name not in _TRACED:
            for code in _codes(module):
                skip_code(code)


def _codes(module: Any) -> Any:
    """All code of a module: of its functions, of its classes' methods, and of what these define."""
    owners = [module, *(each for each in vars(module).values() if isinstance(each, type))]
    waiting = [getattr(each, "__code__", None) for owner in owners for each in _functions(owner)]
    while waiting:
        code = waiting.pop()
        if isinstance(code, CodeType) and code.co_filename == module.__file__:
            yield code
            waiting += code.co_consts


def _functions(owner: Any) -> Any:
    for each in list(vars(owner).values()):
        yield getattr(each, "fget", None) or getattr(each, "__func__", None) or each


def thrown_in(error: BaseException) -> bool:
    """Whether ERROR was raised by a signal handler of the job, or put into the thread from outside.

    The latter shows in that one of the job's own classes was raised by a line of ours, which raises none of them.
    """
    frames = list(_frames(error))
    if any(code in _handlers() for code in frames):
        return True
    kind = type(error).__module__.partition(".")[0]
    known = kind in {"builtins", "torch", "torchtriage", "numpy"} or kind in sys.stdlib_module_names
    return bool(frames) and not known and frames[-1].co_filename.startswith(_OURS)


def _frames(error: BaseException) -> Any:
    """The code that ERROR went through, the outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


def _handlers() -> set[Any]:
    """The code of the job's signal handlers."""
    found = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a partial
        handler = getattr(handler, "__func__", handler)  # of a method
        own = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
        found.add(getattr(own, "__code__", None))
    return found - {None}
