"""Runs at the start of every Python process of a job under probes, before anything of the job.

It leaves the process as it found it: the folder is taken off sys.path, and the sitecustomize that it shadows, if there
is one, runs as if this one had never been there. What stays is one finder that waits for torch.
"""

# pathlib would be imported at the start of every process of the job, most of which never need it.
# ruff: noqa: PTH100, PTH109, PTH118, PTH120

from __future__ import annotations

import os
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
UNGUARDED = 98  # the code of a leg that was not begun, since its writes could not be watched


class Finder:
    """Finds torch as the others do, and puts the probes in when it has been imported completely."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        others = (each.find_spec for each in sys.meta_path if each is not self and hasattr(each, "find_spec"))
        spec = next((found for find in others if (found := find(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: Any) -> None:
        load = loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            loader.__dict__.pop("exec_module", None)
            attach()

        try:
            loader.exec_module = exec_module
        except AttributeError as error:
            note("torch-not-followed", f"{type(loader).__name__}: {error}")


def attach() -> None:
    """Loads the job package by its path; whatever goes wrong is written down, and the job goes on."""
    folder = os.path.join(os.path.dirname(HERE), "job")
    try:
        for guard in getattr(sys.modules.get("_torchtriage_guard"), "standing", ()):
            guard.torch_imported()
        rehearsal = rehearse()
        package = loaded("_torchtriage_job", folder)
        probes = [path for path in os.environ.get("TORCHTRIAGE_PROBES", "").split(os.pathsep) if path]
        steps = os.environ.get("TORCHTRIAGE_STEPS")
        focus = os.environ.get("TORCHTRIAGE_FOCUS", "").split()
        hang = os.environ.get("TORCHTRIAGE_HANG")
        budget = os.environ.get("TORCHTRIAGE_BUDGET")
        job = package.begin(
            os.environ["TORCHTRIAGE_FOLDER"],
            probes,
            int(steps) if steps else None,
            focus,
            hang_after=float(hang) if hang else None,
            rehearsal=rehearsal,
        )
        if budget:
            job.governor.budget = float(budget)
    except Exception as error:  # noqa: BLE001 - the job goes on without probes, and the record says why
        note("probes-failed", f"{type(error).__name__}: {error}")
    else:
        note("torch")
        for probe, why in job.lost.items():
            note("probes-failed", f"{probe}: {why}")


def rehearse() -> Any:
    """The simulated device, put into torch before anything of the job asks for one; None where it runs on its own."""
    card = os.environ.get("TORCHTRIAGE_ACCELERATOR")
    if not card:
        return None
    import json
    from importlib import import_module

    row = json.loads(card)
    told = {"card": row["name"], "memory": row["memory"], "devices": row["count"]}
    write(json.dumps({"kind": "rehearsal", "pid": os.getpid(), **told}))
    ours = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
    loaded("_torchtriage_simulation", os.path.join(ours, "simulation"))
    return import_module("_torchtriage_simulation.rehearsal").begin(row, note)


def guarded() -> None:
    """A leg of a trial has a guard over what it writes; without it, it does not begin."""
    folder = os.environ.get("TORCHTRIAGE_GUARD")
    if folder:
        try:
            loaded("_torchtriage_guard", folder).begin()
        except Exception as error:  # noqa: BLE001 - whatever it is, files of the user's are not put at risk
            note("guard-failed", f"{type(error).__name__}: {error}")
            os._exit(UNGUARDED)


def early() -> None:
    """What a trial wants to stand in the process before the first line of the job."""
    folder = os.environ.get("TORCHTRIAGE_EARLY")
    if folder:
        try:
            loaded("_torchtriage_early", folder).begin()
        except Exception as error:  # noqa: BLE001 - the job goes on without it, and the record says why
            note("probes-failed", f"early: {type(error).__name__}: {error}")


def loaded(name: str, folder: str) -> Any:
    """The package in FOLDER, under a private NAME."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec: Any = spec_from_file_location(name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
    package: Any = module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package


def note(kind: str, why: str = "") -> None:
    """One line in the list of processes, by which the reader tells apart where the way to the first step ended."""
    write(f'{{"kind":"{kind}","pid":{os.getpid()},"why":{_quoted(why)}}}')


def write(line: str) -> None:
    """Appends LINE to the list of processes, whole."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    name = os.environ.get("TORCHTRIAGE_NOTES", "processes.jsonl")
    try:
        file = os.open(os.path.join(os.environ["TORCHTRIAGE_FOLDER"], name), flags, 0o644)
    except OSError:
        return
    try:
        os.write(file, f"{line}\n".encode())
    except OSError:
        pass
    finally:
        os.close(file)


def _quoted(text: str) -> str:
    """TEXT in JSON, without importing json into processes that may never need it."""
    plain = "".join(letter if letter.isprintable() and letter not in '"\\' else " " for letter in text)
    return f'"{plain[:500]}"'


def watch_the_end() -> None:
    """Notes the error that ends this process before it has torch, and the line that ends it by sys.exit.

    What ends it once torch is there, the probes write down. A SystemExit leaves nothing behind that could be read at
    the interpreter's end, so that the function itself is wrapped.
    """
    import atexit

    leave = sys.exit

    def exit(status: Any = None, /) -> Any:  # noqa: A001 - it takes the place of sys.exit, also in what inspect shows
        if status is not None and status != 0:
            try:
                note_exit(status, sys._getframe(1))
            except Exception as error:  # noqa: BLE001 - the process ends as it wanted to, and the record says why
                note("exit-not-seen", f"{type(error).__name__}: {error}")
        return leave(status)

    exit.__doc__, exit.__module__, exit.__qualname__ = leave.__doc__, "sys", "exit"  # it is pickled by its name
    sys.exit = exit

    leave_at_once = os._exit

    def _exit(status: int) -> Any:
        frame = sys._getframe(1)
        if status != 0 and not _is_installed(frame.f_code.co_filename):  # multiprocessing ends its children so
            try:
                note_exit(status, frame, at_once=True)
            except Exception as error:  # noqa: BLE001 - the process ends as it wanted to, and the record says why
                note("exit-not-seen", f"{type(error).__name__}: {error}")
        return leave_at_once(status)

    _exit.__doc__, _exit.__module__, _exit.__qualname__ = leave_at_once.__doc__, leave_at_once.__module__, "_exit"
    os._exit = _exit
    atexit.register(note_error)


def _is_installed(file: str) -> bool:
    own = os.path.dirname(os.path.dirname(HERE))
    installed = (own, os.path.dirname(os.__file__), f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
    return any(each in file for each in installed)


def note_exit(status: Any, frame: Any, *, at_once: bool = False) -> None:
    """STATUS, or the message that sys.exit prints, and the nearest line outside of installed packages.

    at_once: nothing of the interpreter's end follows, at which the job would write down the error that it handled.
    """
    import json

    nearest = frame
    while nearest is not None and _is_installed(nearest.f_code.co_filename):
        nearest = nearest.f_back
    nearest = nearest or frame
    code = status & 255 if isinstance(status, int) else 1
    told = {"kind": "exit", "pid": os.getpid(), "code": code}
    job = sys.modules.get("_torchtriage_job")
    said = _said_before(frame, job) if isinstance(status, int) else str(status)
    told["message"] = cleaned(said[:2000].strip()) if said else ""
    path = os.path.relpath(nearest.f_code.co_filename) if nearest else ""
    told |= {"path": path, "line": nearest.f_lineno if nearest else 0}
    error = sys.exc_info()[1]
    try:
        told["not_finite"] = job.hooks.crash.not_finite(nearest, nearest.f_lineno) if job else []
    except Exception as failure:  # noqa: BLE001 - what the line names may refuse any question
        told["not_finite_unseen"] = type(failure).__name__
    try:
        if job:
            import linecache

            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            job.hooks.exceptions.leave(
                error, frame, line, "" if isinstance(status, int) else str(status), at_once=at_once
            )
        elif isinstance(error, Exception) and error.__traceback__ and error.__traceback__.tb_frame is frame:
            write_error("handled", error)
    except Exception as failure:  # noqa: BLE001 - an error of the user's may refuse any question
        told["error_unseen"] = type(failure).__name__
    write(json.dumps(told))


def _said_before(frame: Any, job: Any) -> str:
    """What argparse printed before it left by FRAME, which argument is wrong; or what JOB logged last as an error."""
    if frame.f_code.co_name == "exit" and frame.f_code.co_filename.endswith(f"{os.sep}argparse.py"):
        return str(frame.f_locals.get("message") or "")
    return str(job.hooks.exceptions.words()) if job else ""


def note_error() -> None:
    """The error that the interpreter has just printed, of a process that never had torch.

    Nothing of Ctrl-C: whatever is imported here may evaluate text, after which the interpreter no longer knows that it
    was to end by the signal, and the exit code would be another.
    """
    error = getattr(sys, "last_value", None)
    if error is None or isinstance(error, KeyboardInterrupt) or "_torchtriage_job" in sys.modules:
        return
    try:
        write_error("error", error)
    except Exception as failure:  # noqa: BLE001 - at the end of the interpreter, of an error of any kind
        note("exit-not-seen", f"{type(failure).__name__}: {failure}")


def write_error(kind: str, error: BaseException) -> None:
    """ERROR with its traceback: "error" that nobody caught, or "handled" while the program left over it."""
    import json
    import time
    import traceback

    text = "".join(traceback.format_exception(error)).replace(f'File "{os.getcwd()}{os.sep}', 'File "')
    told = {"kind": kind, "pid": os.getpid(), "error": type(error).__name__, "time": time.time_ns()}
    write(json.dumps({**told, "message": cleaned(str(error)[:2000]), "traceback": cleaned(text[-16000:])}))


def cleaned(text: str) -> str:
    """TEXT without what looks like a secret."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec: Any = spec_from_file_location(
        "_torchtriage_redaction", os.path.join(os.path.dirname(HERE), "job", "record", "redaction.py")
    )
    redaction: Any = module_from_spec(spec)
    spec.loader.exec_module(redaction)
    return str(redaction.cleaned(text))


def give_way() -> None:
    """Undoes that this file was found: the shadowed sitecustomize, or the lack of one, takes effect."""
    sys.path[:] = [each for each in sys.path if not each or os.path.abspath(each) != HERE]
    sys.path_importer_cache.pop(HERE, None)
    sys.modules.pop(__name__, None)
    __import__("sitecustomize")  # where there is none, `site` gets the very error that it expects


if os.environ.get("TORCHTRIAGE_FOLDER"):
    note("attached")
    guarded()
    early()
    watch_the_end()
    sys.meta_path.insert(0, Finder())
give_way()
