"""Programs as children of this process, which has imported already what they import: a run costs what it does itself.

A child has its own folder, arguments, sys.path, streams and session. What it takes is read from its resource usage:
user and system time, which other processes leave alone where seconds on the wall do not, and its peak of resident
memory less what it began with.
"""

from __future__ import annotations

import gc
import io
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

Change = Callable[[], Callable[[], None] | None]
MIB = 1024


@dataclass(frozen=True)
class Run:
    """How one run ended: exit code (negative for a signal), CPU seconds, MiB at most above its start, its output."""

    code: int
    seconds: float
    memory: float
    output: str
    errors: str


def prepare(*modules: str) -> None:
    """Imports torch and MODULES, once, for all children to come. One thread, and no gradient: threads do not fork.

    A module that cannot be imported alone is left to the children.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    for each in ("numpy", "torch", *modules):
        with suppress(Exception):
            import_module(each)
    sys.modules["torch"].set_num_threads(1)
    gc.collect()
    gc.freeze()


def run(folder: Path, arguments: list[str], limit: float, change: Change | None = None) -> Run:
    """`python ARGUMENTS` in FOLDER, killed after LIMIT seconds of CPU or six times as many of the clock.

    change: what the child does to torch before it begins, and may return to be done at its end; see without_learning,
    interrupted and imports.
    """
    out, err, start = folder / "stdout.txt", folder / "stderr.txt", folder / "memory.txt"
    child = os.fork()
    if not child:
        _become(folder, arguments, limit, change)
    code, usage = _wait(child, 6 * limit)
    began = float(start.read_text()) if start.exists() else 0.0
    used = usage.ru_utime + usage.ru_stime
    texts = (path.read_text(encoding="utf-8", errors="replace") if path.exists() else "" for path in (out, err))
    return Run(code, round(used, 3), round(max(0.0, usage.ru_maxrss / MIB - began), 1), *texts)


def _wait(child: int, limit: float) -> tuple[int, resource.struct_rusage]:
    end = time.monotonic() + limit
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > end:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # its workers
    return os.waitstatus_to_exitcode(status), usage


def _become(folder: Path, arguments: list[str], limit: float, change: Change | None) -> None:
    """The child: never returns."""
    code, end = 1, None
    try:
        os.setsid()
        _redirect(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 5))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        (folder / "memory.txt").write_text(str(_resident()))
        end = change() if change else None
        code = _execute(folder, arguments)
    except BaseException:  # noqa: BLE001 - an exit code, whatever it was
        traceback.print_exc()
    finally:
        with suppress(Exception):
            if end:
                end()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect(folder: Path) -> None:
    for name, number in (("stdout.txt", 1), ("stderr.txt", 2)):
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, number)
        os.close(handle)
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False), encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False), encoding="utf-8", write_through=True)


def _execute(folder: Path, arguments: list[str]) -> int:
    os.chdir(folder)
    random.seed()
    sys.modules["numpy"].random.seed()
    main = ModuleType("__main__")
    main.__file__ = str(folder / arguments[0])
    sys.modules["__main__"] = main
    sys.path[0] = str(folder)
    sys.argv = list(arguments)
    source = (folder / arguments[0]).read_text(encoding="utf-8")
    try:
        exec(compile(source, main.__file__, "exec", dont_inherit=True), vars(main))  # noqa: S102 - the program
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
    except BaseException:  # noqa: BLE001 - as Python itself: a traceback and 1
        traceback.print_exc()
        return 1
    return 0


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def without_learning() -> None:
    """No optimizer finds a gradient from here on: the figure will be that of the weights at the start."""
    hooks = import_module("torch.optim.optimizer")

    def forget(optimizer: Any, *_: object) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    hooks.register_optimizer_step_pre_hook(forget)


def imports(to: Path) -> Change:
    """The names of all modules that the program has imported go TO a file, one a line, in their order."""
    return lambda: lambda: _write(to)


def _write(to: Path) -> None:
    to.write_text("\n".join(sys.modules), encoding="utf-8")


def interrupted(steps: int) -> Change:
    """The process is gone in the first step after STEPS that a file was saved before, as one that is preempted."""

    def install() -> None:
        torch, hooks = sys.modules["torch"], import_module("torch.optim.optimizer")
        save, seen = torch.save, {"steps": 0, "files": 0}

        def saved(*arguments: Any, **options: Any) -> Any:
            seen["files"] += 1
            return save(*arguments, **options)

        def count(*_: object) -> None:
            seen["steps"] += 1
            if seen["steps"] > steps and seen["files"]:
                os._exit(0)

        torch.save = saved  # type: ignore[attr-defined]
        hooks.register_optimizer_step_pre_hook(count)

    return install
