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
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any

LIMIT = 280.0
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
    """The process that has MODULES, under the variables of this process and SETTINGS.

    folder: holds a `python`, to be put on PATH, whose programs are such children; when it is killed, so are they.
    """

    def __init__(self, *modules: str, **settings: str) -> None:
        self._held = TemporaryDirectory(prefix="forked-")
        self.folder = Path(self._held.name)
        self._address = str(self.folder / "line")
        (self.folder / "python").write_text(PYTHON.format(python=sys.executable, address=self._address))
        (self.folder / "python").chmod(0o755)
        self._settings = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
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
        asked = {"words": words, "place": str(place), "settings": {**self._settings, **settings}}
        with (
            TemporaryDirectory(prefix="forked-") as name,
            Path(os.devnull).open() as nothing,
            (log or Path(name, "out")).open("a") as out,
            (log or Path(name, "err")).open("a") as err,
            socket.socket(socket.AF_UNIX) as line,
        ):
            line.settimeout(LIMIT)
            line.connect(self._address)
            socket.send_fds(line, [b"."], [nothing.fileno(), out.fileno(), err.fileno()])
            line.sendall(json.dumps(asked).encode() + b"\n")
            with line.makefile() as answer:
                code = int(answer.readline())
            return subprocess.CompletedProcess(words, code, Path(out.name).read_text(), Path(err.name).read_text())

    def close(self) -> None:
        with self._process as process:  # waits, and closes both ends
            process.terminate()
        self._held.cleanup()


def _serve(address: str, modules: list[str]) -> None:
    """Forks for whoever comes to ADDRESS, one after the other; the child leaves the loop and becomes the program."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [each for each in sys.path[1:] if each not in paths]  # each program brings its own
    sys.path[:0] = [each for each in paths if each]
    count = len([each for each in paths if each])
    for each in modules:
        import_module(each)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            line, _ = door.accept()
            _, streams, _, _ = socket.recv_fds(line, 1, 3)
            with line.makefile() as question:
                asked = json.loads(question.readline())
            child = os.fork()
            if not child:
                break
            for each in streams:
                os.close(each)
            _answer(line, child)
    line.close()
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    _become(asked, sys.path[count:])


def _answer(line: socket.socket, child: int) -> None:
    """Tells how CHILD has ended, and ends it when nobody waits for that any more."""
    line.setblocking(False)
    with line:
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            try:
                if not line.recv(1):
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    return
            except BlockingIOError:
                time.sleep(0.005)
        line.setblocking(True)
        try:
            line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        except BrokenPipeError:
            return


def _become(asked: dict[str, Any], paths: list[str]) -> None:
    os.environ.clear()
    os.environ.update(asked["settings"])
    os.chdir(asked["place"])
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
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
