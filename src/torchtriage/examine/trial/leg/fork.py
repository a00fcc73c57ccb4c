"""Executes a leg as a fork of this process: a function instead of a command, with torch imported already."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, NoReturn
from uuid import uuid4

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.examine.trial.leg.execute import GUARD, Ended, Leg, awaited, settings

_EVERY = 0.005


class Child:
    """A forked process, as subprocess.Popen shows one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("fork", timeout or 0)
            time.sleep(_EVERY)
        return code


def forking(function: Callable[[Leg], object]) -> Callable[[Leg], Ended]:
    """What executes a leg by calling FUNCTION in a fork of this process, in the leg's folder.

    torch computes on one thread there, since those of this process are not in the fork. Raises TriageError, when a leg
    begins, where this process has used a CUDA device, which a fork cannot.
    """

    def execute(leg: Leg) -> Ended:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            raise TriageError(
                "this process has used a CUDA device already, and a fork of it cannot", f"{leg.name} leg",
                "Call it before anything is put on the device, or use `torchtriage resume-check -- CMD`.",
                NOTHING_EXAMINED,
            )  # fmt: skip
        mark = uuid4().hex
        environment = settings(leg, mark)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that there are other threads: the fork has none
            pid = os.fork()
        if not pid:
            _run(function, leg, environment)
        return awaited(Child(pid), leg, mark)

    return execute


def _run(function: Callable[[Leg], object], leg: Leg, environment: dict[str, str]) -> NoReturn:
    """The whole life of the fork."""
    code = 1
    try:
        os.setsid()
        for number, kind in ((1, "out"), (2, "err")):
            file = os.open(leg.mirror.place / f"{leg.name}.{kind}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            os.dup2(file, number)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(leg.mirror.work)
        code = _called(function, leg)
    except BaseException:  # noqa: BLE001 - the fork must not go on as the process that it was
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _called(function: Callable[[Leg], object], leg: Leg) -> int:
    import torch

    from torchtriage.examine.run.job import begin, end

    torch.set_num_threads(1)
    _guarded()
    job = begin(str(leg.record), [str(path) for path in leg.probes])
    error: BaseException | None = None
    try:
        function(leg)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException as raised:  # noqa: BLE001 - the fork tells it as a process does
        error = sys.last_value = raised  # as the interpreter does, before it ends
        traceback.print_exc()
    finally:
        end(job, error)
    return int(error is not None)


def _guarded() -> None:
    """The guard, as sitecustomize loads it in a process of its own."""
    name = "_torchtriage_guard"
    spec: Any = spec_from_file_location(name, GUARD / "__init__.py", submodule_search_locations=[str(GUARD)])
    package: Any = module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    package.begin()
    for guard in package.standing:
        guard.torch_imported()
