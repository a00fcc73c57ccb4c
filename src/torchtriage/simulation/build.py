"""Compiles the device as an extension of the installed torch, once, and loads it."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAME = "torchtriage_simulation"
SOURCES = Path(__file__).parent / "native"
FLAGS = ["-O1", "-g0", "-DUSE_KINETO", "-DUSE_C10D_GLOO"]
"""-O1, because the kernels are torch's: a higher level costs compile time and saves nothing."""

UNITS = 2
"""Files that are compiled, at once where there are cores; a third one costs more CPU time than it saves in waiting."""

OLDEST = (2, 13)
"""The first torch with all extension points that the sources use."""

TAIL = 2_000
"""Characters of the compiler's output that an error message quotes."""


class SimulationError(RuntimeError):
    """The simulated accelerator cannot be started; the message says what is missing and what to do."""


def load_library() -> Any:
    """Returns the compiled module, from the user's cache or built now, which takes about half a minute."""
    if os.name == "nt":
        raise SimulationError("the simulated accelerator does not run on Windows; use Linux or WSL")
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    kept = _library(folder)
    with _lock(folder / "lock"):
        return _import_library(kept) if kept.exists() else _compile_library(folder, kept)


def is_built() -> bool:
    """Whether the device needs not be compiled any more."""
    return _library(cache_folder()).exists()


def _library(folder: Path) -> Path:
    return folder / f"{NAME}.so"


def obstacles() -> list[str]:
    """What this machine lacks for a build."""
    import torch

    found = []
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
        found.append(f"torch {'.'.join(map(str, OLDEST))} or later (this is {torch.__version__})")
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        found.append(f"a C++ compiler ({compiler} is not on PATH)")
    if shutil.which("ninja") is None:
        found.append("ninja (pip install ninja)")
    if importlib.util.find_spec("setuptools") is None:
        found.append("setuptools (pip install setuptools)")
    return found


def cache_folder() -> Path:
    """The cache folder for these sources, this torch and this Python."""
    import torch

    digest = hashlib.sha256()
    for path in _sources("*"):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    digest.update(repr((FLAGS, torch.__version__, torch.version.git_version, sys.implementation.cache_tag)).encode())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "torchtriage" / "simulation" / digest.hexdigest()[:16]


def _sources(pattern: str) -> list[Path]:
    return sorted(path for path in SOURCES.glob(pattern) if path.suffix in {".cpp", ".h"})


def _compile_library(folder: Path, kept: Path) -> Any:
    if lacking := obstacles():
        raise SimulationError(
            f"the simulated accelerator is compiled at first use, and this machine lacks {', '.join(lacking)}. "
            f"Install that, or copy {folder} from a machine of this kind with the same torch and Python."
        )
    from torch.utils import cpp_extension

    build = folder / "build"
    shutil.rmtree(build, ignore_errors=True)  # a build that was killed leaves torch's own lock behind
    build.mkdir()
    try:
        module = cpp_extension.load(
            NAME,
            _units(build),
            extra_cflags=FLAGS,
            extra_include_paths=_profiler_headers(),
            build_directory=str(build),
        )
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        said = str(error)[-TAIL:]
        raise SimulationError(
            f"the simulated accelerator could not be compiled in {build}. A compiler with C++20 and the headers of "
            f"this Python (python3-dev) are needed. The compiler said: {said}"
        ) from error
    part = kept.with_suffix(".part")
    shutil.copyfile(build / f"{NAME}.so", part)
    part.replace(kept)  # atomic: other processes see all of it or none
    shutil.rmtree(build, ignore_errors=True)
    return module


def _units(build: Path) -> list[str]:
    """Files that include the sources by turns, one for each of UNITS: most of the time goes into torch's headers, which
    each file reads again.
    """
    sources, made = _sources("*.cpp"), []
    for number in range(UNITS):
        made.append(build / f"unit{number}.cpp")
        made[-1].write_text("".join(f'#include "{path}"\n' for path in sources[number::UNITS]), encoding="utf-8")
    return [str(path) for path in made]


def _profiler_headers() -> list[str]:
    import torch

    return [str(Path(torch.__file__).parent / "include" / "kineto")]


def _import_library(path: Path) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    import fcntl  # not on Windows, where the package can be imported nevertheless

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
