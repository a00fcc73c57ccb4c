"""Programs in children of a process that has imported already what they import: each costs what it does itself.

A child has the streams, the arguments, the variables, the working folder and the sys.path of a Python of its own, and
ends as one: atexit, error and exit code are its own, and its traceback begins with the program. It shares the hash seed
of its parent, and modules are there before it asks for them; what comes of these is tested where a program is started
for real. A program under probes begins with their sitecustomize, and imports torch as if it had not been there.
"""

from __future__ import annotations

import gc
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any

LIMIT = 280.0
FROM = "FORKED_FROM"
"""Names to each child the folder of its server, whose `python` makes others like it."""

PYTHON = """#!{python} -IS
import json, os, signal, socket, sys
asked = {{"words": sys.argv[1:], "place": os.getcwd(), "settings": dict(os.environ)}}
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    socket.send_fds(line, [b"."], [0, 1, 2])
    line.sendall(json.dumps(asked).encode() + b"\\n")
    code = int(line.makefile().readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Server:
    """The process that has MODULES, under the variables of this process, without those of pytest, and SETTINGS.

    folder: holds a `python`, to be put on PATH, whose programs are such children; when it is killed, so are they.
    limit: seconds for which `run` waits.
    """

    def __init__(self, *modules: str, limit: float | None = LIMIT, **settings: str) -> None:
        self._limit = limit
        self._held = TemporaryDirectory(prefix="forked-")
        self.folder = Path(self._held.name)
        self._address = str(self.folder / "line")
        (self.folder / "python").write_text(PYTHON.format(python=sys.executable, address=self._address))
        (self.folder / "python").chmod(0o755)
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self._settings = {**own, "OMP_NUM_THREADS": "1", FROM: self._held.name, **settings}
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._address, *modules],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._settings,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def run(
        self, *words: str, place: Path, log: Path | None = None, **settings: str
    ) -> subprocess.CompletedProcess[str]:
        """What `python WORDS` says in the folder PLACE: WORDS are a script, or -c and a source, and arguments.

        LOG: gets the lines of both streams, as `> LOG 2>&1` would append them.
        """
        return self.start(*words, place=place, log=log, **settings).wait()

    def start(self, *words: str, place: Path, log: Path | None = None, **settings: str) -> Started:
        """The same, beside others that run."""
        asked = {"words": words, "place": str(place), "settings": {**self._settings, **settings}}
        return Started(self._address, self._limit, asked, log)

    def close(self) -> None:
        with self._process as process:  # waits, and closes both ends
            process.terminate()
        self._held.cleanup()


class Started:
    """A program that runs."""

    def __init__(self, address: str, limit: float | None, asked: dict[str, Any], log: Path | None) -> None:
        self._words = asked["words"]
        self._held = TemporaryDirectory(prefix="forked-")
        self._files = [log or Path(self._held.name, name) for name in ("out", "err")]
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(limit)
        self._line.connect(address)
        with Path(os.devnull).open() as nothing, self._files[0].open("a") as out, self._files[1].open("a") as err:
            socket.send_fds(self._line, [b"."], [nothing.fileno(), out.fileno(), err.fileno()])
            self._line.sendall(json.dumps(asked).encode() + b"\n")

    def wait(self) -> subprocess.CompletedProcess[str]:
        with self._held, self._line, self._line.makefile() as answer:
            code = int(answer.readline())
            out, err = (file.read_text() for file in self._files)
        return subprocess.CompletedProcess(self._words, code, out, err)


def _serve(address: str, modules: list[str]) -> None:
    """Forks for whoever comes to ADDRESS, until nobody holds its stdin; the child leaves the loop and becomes the program."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [each for each in sys.path[1:] if each not in paths]  # each program brings its own
    sys.path[:0] = [each for each in paths if each]
    count = len([each for each in paths if each])
    for module in modules:
        import_module(module)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        asked = _child(door)
    if asked is not None:
        _become(asked, sys.path[count:])


def _child(door: socket.socket) -> dict[str, Any] | None:
    """In a child what was asked for at DOOR, with its streams; None in the server when it is to end."""
    children: dict[int, socket.socket] = {}
    while True:
        _answer(children)
        ready = select.select([door, sys.stdin], [], [], 0.005 if children else None)[0]
        if sys.stdin in ready:
            for each in children:
                os.kill(each, signal.SIGKILL)
            return None
        if not ready:
            continue
        line, _ = door.accept()
        _, streams, _, _ = socket.recv_fds(line, 1, 3)
        with line.makefile() as question:
            asked: dict[str, Any] = json.loads(question.readline())
        child = os.fork()
        if not child:
            break
        for stream in streams:
            os.close(stream)
        line.setblocking(False)
        children[child] = line
    for other in (line, *children.values()):
        other.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    return asked


def _answer(children: dict[int, socket.socket]) -> None:
    """Tells how those of CHILDREN have ended that have, and ends those for which nobody waits any more."""
    for child, line in list(children.items()):
        pid, status = os.waitpid(child, os.WNOHANG)
        if not pid:
            with suppress(BlockingIOError):
                if not line.recv(1):
                    os.kill(child, signal.SIGKILL)
                    _, status = os.waitpid(child, 0)
                    pid = child
        if pid:
            del children[child]
            with line, suppress(BrokenPipeError):
                line.setblocking(True)
                line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(asked: dict[str, Any], paths: list[str]) -> None:
    os.environ.clear()
    os.environ.update(asked["settings"])
    os.chdir(asked["place"])
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    for option in filter(None, os.environ.get("PYTHONWARNINGS", "").split(",")):
        vars(warnings)["_setoption"](option)  # what the interpreter does with it
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    first, *words = asked["words"]
    main = ModuleType("__main__")
    if first == "-c":
        own, name, source = "", "<string>", words.pop(0)
    else:
        script = Path(first).absolute()
        own, name, source = str(script.parent), str(script), script.read_text(encoding="utf-8")
        main.__file__ = name
    given = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:] = [own, *given, *paths]
    sys.argv = [first, *words]
    sys.modules["__main__"] = main
    if "TORCHTRIAGE_FOLDER" in os.environ:
        _attach()
    _execute(compile(source, name, "exec", dont_inherit=True), main)


def _execute(code: CodeType, main: ModuleType) -> None:
    """An error is told as the interpreter does it, with the traceback from the program on."""
    try:
        exec(code, vars(main))
    except Exception as error:  # noqa: BLE001 - whatever it is, its program ends by it
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error.with_traceback(trace), trace
        sys.excepthook(type(error), error, trace)
        raise SystemExit(1) from None


def _attach() -> None:
    """What `site` does with the folder of the probes, first on the path; they then wait for torch to be imported."""
    if "torch" in sys.modules:
        sys.meta_path.insert(0, Again(sys.modules.pop("torch")))
    sys.modules.pop("sitecustomize", None)
    with suppress(ImportError):  # of the one that it shadows, as a rule
        import_module("sitecustomize")


class Again(Loader):
    """Finds MODULE, which is there, for a program that imports it."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == self._module.__name__ else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2:])
