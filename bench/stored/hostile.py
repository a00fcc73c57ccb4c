"""Files that attack whoever reads them: what they would run is harmless here, since it would write one file.

Every one is a pickle, or torch's container around it, that any unpickler which runs things would run, or a file that is
made to be read for ever, to fill the memory, to lead out of its folder or to be taken for something else.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
HEAD = MAGIC + b"\x80\x02M\xe9\x03." + pickle.dumps({"little_endian": True}, 2)
CALLS = (
    "os system", "posix system", "nt system", "subprocess Popen", "subprocess check_output", "builtins eval",
    "builtins exec", "builtins __import__", "builtins open", "builtins getattr", "builtins compile",
    "__builtin__ eval", "importlib import_module", "runpy run_path", "runpy _run_code", "pty spawn", "shutil rmtree",
    "socket create_connection", "webbrowser open", "timeit timeit", "cProfile run", "profile run", "pdb run",
    "bdb Bdb.run", "trace Trace.run", "code InteractiveInterpreter", "pydoc pipepager", "doctest debug_script",
    "ctypes CDLL", "marshal loads", "types FunctionType", "operator methodcaller", "_operator attrgetter.__call__",
    "functools reduce", "functools partial.__call__", "pickle loads", "_pickle loads", "torch load", "torch.hub load",
    "torch.jit load", "torch.storage _load_from_bytes", "torch.fx.graph_module reduce_graph_module",
    "torch.fx.graph _forward_from_src", "torch._dynamo.guards GuardBuilder.get",
    "torch.utils._config_module ConfigModule.load_config", "torch.utils.collect_env run",
    "torch.distributed.rpc.internal _run_function", "torch.serialization load", "numpy load",
    "numpy.testing._private.utils runstring", "numpy.f2py.crackfortran getlincoef", "sympy sympify",
    "pandas read_pickle", "sys exit", "logging.config fileConfig", "asyncio run",
    "multiprocessing.util spawnv_passfds", "http.server test", "urllib.request urlopen", "tempfile mkstemp",
    "venv create", "ensurepip bootstrap", "idlelib.run main", "lib2to3.main main", "distutils.spawn spawn",
    "unittest main", "imp load_source", "zipimport zipimporter", "platform popen", "commands getoutput",
    "project.loaders load_it", "train main", "__main__ run", "a_module_of_nobody call", "copyreg __reduce_ex__",
    "gc get_objects",
)  # fmt: skip


def _global(name: str) -> bytes:
    module, _, attribute = name.partition(" ")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def reduced(name: str) -> bytes:
    """A call in protocol 2: the global, its argument, REDUCE."""
    return b"\x80\x02" + _global(name) + b"X\x04\x00\x00\x00echo\x85R."


def stacked(name: str) -> bytes:
    """The same in protocol 4, with the name taken from the stack."""
    module, _, attribute = name.partition(" ")
    words = b"".join(b"\x8c" + bytes([len(each)]) + each for each in (module.encode(), attribute.encode()))
    return b"\x80\x04" + words + b"\x93\x8c\x04echo\x85R."


def instanced(name: str) -> bytes:
    """The same with INST, in the protocol of text."""
    module, _, attribute = name.partition(" ")
    return b"(S'echo'\ni" + module.encode() + b"\n" + attribute.encode() + b"\n."


def objected(name: str) -> bytes:
    return b"\x80\x02(" + _global(name) + b"X\x04\x00\x00\x00echo" + b"o."


def beside_weights(name: str) -> bytes:
    """A call hidden in what looks like a state_dict."""
    return b"\x80\x02}q\x00(X\x05\x00\x00\x00modelq\x01}q\x02X\x04\x00\x00\x00hookq\x03" + reduced(name)[2:-1] + b"u."


def zipped(data: bytes, root: str = "archive", **more: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(f"{root}/data.pkl", data)
        for name, each in more.items():
            file.writestr(f"{root}/{_MEMBERS.get(name, name)}", each)
        file.writestr(f"{root}/version", b"3")
    return out.getvalue()


def legacy(data: bytes) -> bytes:
    return HEAD + data + pickle.dumps([], 2)


_MEMBERS = {"data__0": "data/0", "constants": "constants.pkl"}
FORMS = (zipped, legacy, bytes)


def _calls() -> Iterator[tuple[str, bytes]]:
    ways = (reduced, stacked, instanced, objected, beside_weights)
    for number, name in enumerate(CALLS):
        way, form = ways[number % len(ways)], FORMS[number % len(FORMS)]
        yield f"{name.replace(' ', '.')}-{way.__name__}-{form.__name__}", form(way(name))
    for way in ways:
        for form in FORMS:
            yield f"os.system-{way.__name__}-{form.__name__}", form(way("os system"))


def _tricks() -> Iterator[tuple[str, bytes]]:
    """Ways around a reader that looks for a REDUCE after a name it knows."""
    yield "a result is called", zipped(b"\x80\x02" + _global("collections OrderedDict") + b")R(tR.")
    yield "attributes of a module are set", zipped(b"\x80\x02" + _global("torch nn") + b"}X\x01\x00\x00\x00aK\x01sb.")
    yield "named and not called", zipped(b"\x80\x02" + _global("antigravity fly") + b".")
    yield "called before the pickle breaks", zipped(reduced("os system")[:-1] + b"\xff")
    yield "called and taken from the stack again", zipped(reduced("os system")[:-1] + b"0}.")
    yield "an extension", zipped(b"\x80\x02\x82\x01)R.")
    yield "a persistent id that is none", zipped(b"\x80\x02X\x01\x00\x00\x00aQ.")
    yield "in constants.pkl", zipped(b"\x80\x02}.", constants=reduced("os system"))
    yield "two data.pkl", _twice()
    yield "after the first pickle of a legacy file", MAGIC + reduced("os system")
    yield "a class that is built", zipped(b"\x80\x02}X\x01\x00\x00\x00a" + _global("project.model Net") + b")\x81}bs.")
    yield "a tensor subclass of somebody", zipped(b"\x80\x02" + _global("project Net") + b")\x81.")
    yield "packed with deflate", _deflated(reduced("os system"))


def _twice() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02}.")
        file.writestr("archive/data.pk_", reduced("os system"))
    return out.getvalue().replace(b"data.pk_", b"data.pkl")


def _deflated(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", data + b" " * 500)
    return out.getvalue()


def _weights() -> bytes:
    """One tensor of 10 numbers."""
    said = b"\x80\x02}X\x01\x00\x00\x00w" + _global("torch._utils _rebuild_tensor_v2") + b"((X\x07\x00\x00\x00storage"
    said += (
        _global("torch FloatStorage") + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\nt" + b"QK\x00K\n\x85K\x01\x85\x89"
    )
    return said + _global("collections OrderedDict") + b")RtRs."


def _bombs() -> Iterator[tuple[str, bytes]]:
    """What takes memory or time out of all proportion, and what says other sizes than it has."""
    deep = b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b"."
    yield "lists within lists", zipped(deep)
    yield "tuples within tuples as a key", zipped(b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"K\x01s.")
    shared = b"\x80\x02]q\x00" + b"".join(b"](h%ch%ceq%c" % (n, n, n + 1) for n in range(40)) + b"."
    yield "a walk would meet 2^40 lists", zipped(shared)
    yield "a memo slot of 2^31", zipped(b"\x80\x02K\x01r\xff\xff\xff\x7f.")
    yield "a text of 2 GB that is not there", zipped(b"\x80\x02X\xff\xff\xff\x7fabc.")
    yield "a negative length", zipped(b"\x80\x02T\xff\xff\xff\xffabc.")
    yield "numbers whose hashes meet", zipped(b"\x80\x02}(" + _meeting() + b"u.")
    yield "one list copied a thousand times", zipped(_copied())
    yield "one text encoded a thousand times", zipped(_encoded())
    yield (
        "a tensor beyond its storage",
        zipped(_weights().replace(b"K\x00K\n\x85", b"K\x00J\x00\x00\x00\x7f\x85"), data__0=bytes(40)),
    )
    yield "a storage that is shorter", zipped(_weights(), data__0=bytes(20))
    yield "a storage that is not there", zipped(_weights())
    yield (
        "a directory beyond the end",
        zipped(_weights(), data__0=bytes(40))[:-8] + b"\xff\xff\xff\x7f\x00\x00\x00\x00"[:8],
    )
    whole = zipped(_weights(), data__0=bytes(40))
    yield "cut off", whole[: len(whole) * 2 // 3]
    yield "a zip bomb", _bomb()
    yield "zeros", bytes(5000)
    yield "nothing", b""
    yield "a pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    yield "a page", b"<!DOCTYPE html><html><body>403</body></html>"


def _meeting() -> bytes:
    """Integers that Python hashes to the same number."""
    values = (n * (2**61 - 1) for n in range(1, 3000))
    return b"".join(b"\x8a\x0a" + each.to_bytes(10, "little", signed=True) + b"N" for each in values)


def _copied() -> bytes:
    pairs = b"](" + b"](K\x01K\x02e" * 1000 + b"e"
    return b"\x80\x02" + pairs + b"q\x00" + (_global("collections OrderedDict") + b"h\x00\x85R0") * 1000 + b"."


def _encoded() -> bytes:
    text = b"X" + struct.pack("<I", 10**6) + b"a" * 10**6 + b"q\x00"
    call = _global("_codecs encode") + b"h\x00X\x06\x00\x00\x00latin1\x86R"
    return b"\x80\x02" + text + (call + b"q\x01") * 1000 + b"."


def _bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", bytes(50_000_000))
    return out.getvalue()


def _headers() -> Iterator[tuple[str, bytes]]:
    def made(header: Any, size: int = 8) -> bytes:
        data = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(data)) + data + bytes(size)

    row = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    yield "a header beyond the end", struct.pack("<Q", 10**7) + b'{"a":1}'
    yield "a header that is no JSON", made(b'{"a": ' + b"[" * 100)
    yield "lists within lists in a header", made(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    yield "tensors that overlap", made({"a": row, "b": row})
    yield "a tensor of another size", made({"a": {**row, "shape": [3]}})
    yield "offsets that run backwards", made({"a": {**row, "data_offsets": [8, 0]}})
    yield "a shape below nothing", made({"a": {**row, "shape": [-2]}})
    yield "a shape of a thousand dimensions", made({"a": {**row, "shape": [1] * 1000}})
    yield "data behind the last tensor", made({"a": row}, 4000)
    yield "data that are cut off", made({"a": row}, 3)


HOSTILE: dict[str, bytes] = {name: data for part in (_calls, _tricks, _bombs, _headers) for name, data in part()}
"""By name."""


def _linked(folder: Path) -> Path:
    """A folder whose index leads out of it."""
    home = folder / "leads-out"
    home.mkdir()
    (home / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../../../etc/passwd"}}))
    (home / "model-1.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    return home


def _half(folder: Path) -> Path:
    """A save that ended before its metadata."""
    home = folder / "half"
    home.mkdir()
    (home / "__0_0.distcp").write_bytes(bytes(100))
    return home


FOLDERS = {"leads out": _linked, "half a save": _half}
SEEDS = [way(name) for way in (reduced, stacked, instanced, objected, beside_weights) for name in CALLS[:20]]
SEEDS += [b"\x80\x02}X\x01\x00\x00\x00a" + _global("project.model Net") + b")\x81}bs."]
