"""Keeps torch's compiler from compiling our own code."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType
from typing import Any

from ..code.frames import OURS

_TRACED = ("roots.py", "patching.py")  # these ask the compiler themselves, and it has to follow them to the model


def skip_own_code() -> None:
    """Lets torch's compiler, which is there by now, run our code as it is where it would compile it by itself."""
    from torch._dynamo.eval_frame import skip_code

    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if file.startswith(str(OURS)) and Path(file).name not in _TRACED:
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
