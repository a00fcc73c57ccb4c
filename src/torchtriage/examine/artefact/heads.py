"""The kind of a file from its first 64 KiB."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from torchtriage.examine.artefact.coded import utf8
from torchtriage.examine.artefact.crc import masked
from torchtriage.examine.artefact.opened import Opened, Unreadable
from torchtriage.examine.artefact.places import Place

UNKNOWN = "unknown"
HEAD = 2**16
_FIRST = 2**12  # of a zip file these are enough, and a checkpoint is opened to read little of it
Kind = tuple[str, str]

_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the number before the pickles of torch.save until 1.5
_SNAPSHOT = (b"segment_type", b"total_size", b"segment_alloc")
_FLIGHT = (b"pg_config", b"profiling_name", b"comm_lib_version", b"nccl_comm_state", b"pg_status")
_TRACE = (b'"traceEvents"', b'"deviceProperties"', b'"displayTimeUnit"', b'"distributedInfo"', b'"baseTimeNanoseconds"')
_STATE = (b"state_dict", b"torch", b"OrderedDict", b"param_groups")
_EVENT = re.compile(rb'\A\s*\[\s*\{[^{}]{0,2000}"ph"\s*:')
_RECORD = re.compile(rb'\{"kind":"(?:start|attached|torch|setup)","(?:step|pid)":')
_OPENS = re.compile(rb"\{\s*[\"}]|\[\s*[\[{\]]")
_LINES = re.compile(rb"\{[^\n]*\}\s*\n\s*\{")
_SOURCE = re.compile(rb"^(?:import \w[\w.]*|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:])", re.MULTILINE)
_LOGGED = re.compile(
    rb"Traceback \(most recent|\b(?:Error|Exception)\b: |\b(?:INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b|"
    rb"\bepoch\b|\bloss\s*[:=]|\bstep\s*[:=]?\s*\d|^\d{4}-\d\d-\d\d|^\[?(?:rank|default)\d",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER = re.compile(rb"\A[\w./ -]+(?:,[\w./ -]+)+\r?\n")
_COUNTED = re.compile(rb"(?:\A|,)(?:step|epoch|global_step)(?=[,\r\n])", re.IGNORECASE)
_STORED = frozenset((".pt", ".pth", ".ckpt", ".safetensors", ".distcp"))
# fmt: off
_OTHER_TEXT = frozenset((
    ".c", ".cc", ".cfg", ".cmake", ".conf", ".cpp", ".css", ".csv", ".cu", ".cuh", ".go", ".h", ".hpp", ".html", ".ini",
    ".ipynb", ".j2", ".java", ".js", ".json", ".jsonl", ".lock", ".md", ".py", ".pyi", ".pyx", ".rs", ".rst", ".sbatch",
    ".sh", ".slurm", ".sql", ".svg", ".toml", ".ts", ".tsv", ".xml", ".yaml", ".yml",
))
# fmt: on


def head(place: Place) -> Kind:
    """The kind of the file at PLACE, and where that is UNKNOWN what was found instead."""
    try:
        with Opened(place.path) as file:
            data = file.read(_FIRST)
            data += b"" if data.startswith(b"PK\x03\x04") else file.read(HEAD - len(data))
            if not data:
                if not file.broken and PurePath(place.path).suffix.lower() in _STORED:
                    return "checkpoint", ""
                return UNKNOWN, f"nothing can be read: {file.broken}" if file.broken else "the file is empty"
    except Unreadable as error:
        return UNKNOWN, error.why
    read = next(utf8([data]))
    data = read if b"\n" in read else data  # two bytes that look like a mark may begin anything
    for told in _SIGNS:
        if kind := told(data):
            return kind
    return _text(data, place)


def _zipped(data: bytes) -> Kind | None:
    if not data.startswith(b"PK\x03\x04"):  # places.py takes those apart that are not torch's own
        return None
    if b"/data.pkl" in data:
        return "checkpoint", ""
    return UNKNOWN, "a zip file inside another, or at a URL: unpack it"


def _safetensors(data: bytes) -> Kind | None:
    """A JSON object after its length."""
    size = int.from_bytes(data[:8], "little")
    return ("checkpoint", "") if 2 <= size <= 100_000_000 and data[8:10] in (b'{"', b"{}", b"{ ") else None


def _pickled(data: bytes) -> Kind | None:
    if data.startswith(_LEGACY):
        return "checkpoint", ""
    if len(data) < 3 or data[0] != 0x80 or data[1] not in range(2, 6):
        return None
    if b"device_traces" in data or (b"segments" in data and any(word in data for word in _SNAPSHOT)):
        return "snapshot", ""
    if any(word in data for word in _FLIGHT):
        return "flight", ""
    if any(word in data for word in _STATE) or _names(data):
        return "checkpoint", ""  # what else it names is told, and nothing of it is run
    return UNKNOWN, "a pickle that holds neither a memory snapshot nor a Flight Recorder dump nor a checkpoint"


def _events(data: bytes) -> Kind | None:
    """A TFRecord says the checksum of its length; four bytes agree by chance once in 4 billion files."""
    is_record = len(data) >= 12 and masked(data[:8]) == int.from_bytes(data[8:12], "little")
    return ("curves", "") if is_record else None


def _json(data: bytes) -> Kind | None:
    body = data.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not _OPENS.match(body):
        return None
    return _of_json(data, body)


def _of_json(data: bytes, body: bytes) -> Kind:
    """BODY: what follows the blanks."""
    if any(word in data for word in _TRACE) or _EVENT.match(body):
        return "trace", ""
    if body.startswith(b"{") and sum(b'"%s"' % word in data for word in (*_FLIGHT, b"entries")) >= 2:
        return "flight", ""
    if b'"log_history"' in data:  # the trainer_state.json of transformers
        return "curves", ""
    if ours := _ours(data, body):
        return UNKNOWN, ours
    is_error = b'"py_callstack"' in data or (b'"message"' in data and b'"extraInfo"' in data)  # torchelastic's
    if is_error or _LINES.match(body):
        return "logs", ""
    return UNKNOWN, f"JSON without traceEvents, pg_config or entries; it begins with {_shown(data)}"


def _ours(data: bytes, body: bytes) -> str:
    """What torchtriage wrote itself, and who reads it; "" for all else."""
    if _RECORD.match(body):
        return "the record of one rank of a `torchtriage run`: name its folder, on this machine"
    return "a case of torchtriage: `torchtriage report` shows it" if is_case(data) else ""


def is_case(data: bytes) -> bool:
    """Whether DATA begins as a case.json does."""
    return b'"kind"' in data[:200] and b'"schema"' in data[:200]


def _table(data: bytes) -> Kind | None:
    line = _HEADER.match(data)
    return ("curves", "") if line and _COUNTED.search(line[0]) else None


def _taped(data: bytes) -> Kind | None:
    if data[257:262] != b"ustar" or b"pickle\0" not in data[:1024]:
        return None
    return UNKNOWN, "a tar file, as torch wrote before 0.1.10: load it with an old version and save it again"


def _older(data: bytes) -> Kind | None:
    """A pickle of the text protocol: it has no mark at its beginning, and is known by what it calls."""
    return ("checkpoint", "") if data[:1] in _OLD and _names(data, calls=True) else None


def _names(data: bytes, calls: bool = False) -> bool:
    """Whether a pickle names anything, or CALLS it: a text may begin as one that names something, by chance."""
    from torchtriage.examine.artefact.pickle.machine import Machine
    from torchtriage.examine.artefact.pickle.nodes import Broken

    machine = Machine(data, {})
    try:
        machine.run()
    except Broken:
        return bool(machine.called if calls else machine.names)
    return bool(machine.names)


def _missing(data: bytes, place: Place) -> Kind | None:
    """Where a checkpoint should be by its name: zeros, a pointer of Git LFS, a page of HTML, bytes of no known form."""
    if PurePath(place.path).suffix.lower() not in _STORED:
        return None
    text = data.lstrip()[:40]
    is_other = text.startswith((b"<", b"version https://git-lfs")) or not data.strip(b"\0") or _is_loud(data)
    return ("checkpoint", "") if is_other else None


def _is_loud(data: bytes) -> bool:
    sample = data[: HEAD - 4]
    return sum(byte < 32 and byte not in b"\t\n\r\x08\x0c\x1b" for byte in sample) > len(sample) // 200


_OLD = frozenset(bytes([code]) for code in b"(ci]}l")
_SIGNS: tuple[Callable[[bytes], Kind | None], ...] = (
    _zipped, _events, _safetensors, _pickled, _json, _table, _taped, _older,
)  # fmt: skip


def _text(data: bytes, place: Place) -> Kind:
    """A log is any text; of what lies in a folder, such that is not written for something else."""
    if missing := _missing(data, place):
        return missing
    if _is_loud(data):
        return UNKNOWN, f"not text, and none of the formats that are read; it begins with {_shown(data)}"
    is_log = _LOGGED.search(data) is not None
    if _SOURCE.search(data) and (not is_log or place.path.endswith((".py", ".pyi"))):
        return UNKNOWN, "Python source: `torchtriage check` reads it, `torchtriage run` runs it"
    if place.folder and not is_log and PurePath(place.path).suffix.lower() in _OTHER_TEXT:
        return UNKNOWN, "text that is no log"
    return "logs", ""


def _shown(data: bytes) -> str:
    return repr(data[:16])[1:]
