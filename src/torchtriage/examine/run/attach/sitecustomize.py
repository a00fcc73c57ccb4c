"""Runs at the start of every Python process of a job under probes, before anything of the job.

It leaves the process as it found it: the folder is taken off sys.path, and the sitecustomize that it shadows, if there
is one, runs as if this one had never been there. What stays is one finder that waits for torch.
"""

# pathlib would be imported at the start of every process of the job, most of which never need it.
# ruff: noqa: PTH100, PTH118, PTH120

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
        package = loaded("_torchtriage_job", folder)
        probes = [path for path in os.environ.get("TORCHTRIAGE_PROBES", "").split(os.pathsep) if path]
        steps = os.environ.get("TORCHTRIAGE_STEPS")
        focus = os.environ.get("TORCHTRIAGE_FOCUS", "").split()
        hang = os.environ.get("TORCHTRIAGE_HANG")
        job = package.begin(
            os.environ["TORCHTRIAGE_FOLDER"],
            probes,
            int(steps) if steps else None,
            focus,
            hang_after=float(hang) if hang else None,
        )
    except Exception as error:  # noqa: BLE001 - the job goes on without probes, and the record says why
        note("probes-failed", f"{type(error).__name__}: {error}")
    else:
        note("torch")
        for probe, why in job.lost.items():
            note("probes-failed", f"{probe}: {why}")


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
    line = f'{{"kind":"{kind}","pid":{os.getpid()},"why":{_quoted(why)}}}\n'
    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    name = os.environ.get("TORCHTRIAGE_NOTES", "processes.jsonl")
    try:
        file = os.open(os.path.join(os.environ["TORCHTRIAGE_FOLDER"], name), flags, 0o644)
    except OSError:
        return
    try:
        os.write(file, line.encode())
    except OSError:
        pass
    finally:
        os.close(file)


def _quoted(text: str) -> str:
    """TEXT in JSON, without importing json into processes that may never need it."""
    plain = "".join(letter if letter.isprintable() and letter not in '"\\' else " " for letter in text)
    return f'"{plain[:500]}"'


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
    sys.meta_path.insert(0, Finder())
give_way()
