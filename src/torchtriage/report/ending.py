"""How a job ended badly, as every report tells it: in the verdict, beside the line that raised it, and what to do."""

from __future__ import annotations

from msgspec import Struct, convert

from torchtriage.core.case import Case
from torchtriage.core.end import End
from torchtriage.core.evidence import Place
from torchtriage.core.finding import Finding
from torchtriage.report.text import count, line

SHOWN = 12
"""Lines of a message that are shown: load_state_dict and DistributedDataParallel list what they miss."""
HEAD = 160
"""Characters of an error's first line that the verdict takes, two lines of a terminal; the rest follows below it."""
_KILLED = (
    "Find out what sent SIGKILL. Most often it is the kernel or the container's memory limit: "
    "`dmesg -T | grep -i kill`, `kubectl describe pod` (OOMKilled), `sacct -o State,MaxRSS`."
)
_BY_SIGNAL = {
    "SIGKILL": _KILLED,
    "SIGTERM": "A scheduler, a launcher or a user ended the job: see the scheduler's log (preemption, time limit). "
    "Save a checkpoint on SIGTERM to resume from there.",
    "SIGINT": "The job was interrupted.",
    "SIGHUP": "The terminal was closed: start the job with nohup, in tmux, or through a scheduler.",
    "SIGSEGV": "Native code crashed. Run it again with PYTHONFAULTHANDLER=1 for the Python lines; suspect extensions "
    "that were built for another version of torch.",
    "SIGABRT": "Native code aborted: its last lines on stderr name the check that failed.",
    "SIGBUS": "Memory that is backed by a file was not there: a full /dev/shm (DataLoader workers; docker's "
    "--shm-size), or a file that was truncated while it was mapped.",
}
_NAMELESS = {"exception": "error", "signal": "ended from outside"}
_UNKNOWN = "No fault page describes this message. Fix what it names at that line; the traceback above shows the calls."


class Ending(Struct, frozen=True):
    """title: the exception, signal or exit code. do: the next step, "" where a finding's remedies say it."""

    title: str
    place: str
    excerpt: str
    message: tuple[str, ...]
    met: str
    do: str


def end_of(case: Case) -> End | None:
    """The end among the measurements of CASE."""
    told = case.measurements.get("end")
    return convert(told, End, strict=False) if isinstance(told, dict) else None


def ending(case: Case) -> Ending | None:
    """The block that stands before the findings."""
    end = end_of(case)
    if end is None:
        return None
    cause = next((each for each in case.findings if each.fault.slug == end.cause), None)
    is_whole = len(end.message.splitlines()) < 2 and _first(line(end.headline)) == line(end.headline)
    if cause is not None and _is_message(cause, end) and is_whole:
        return None  # the verdict says it
    lines = [line(each) for each in end.message.splitlines() if each.strip()]
    more = [f"and {count(len(lines) - SHOWN, 'more line')}"] if len(lines) > SHOWN else []
    more += [f"{count(end.followed, 'message')} of others only follow from it"] if end.followed else []
    return Ending(
        _title(end),
        _found(end),
        line(end.place.anchor or "") if end.place else "",
        (*lines[:SHOWN], *more),
        line(end.operands),
        "" if end.cause else _advice(end),
    )


def verdict(case: Case, end: End) -> str:
    """What ended the job and why, in one or two sentences; other findings are counted."""
    cause = next((each for each in case.findings if each.fault.slug == end.cause), None)
    others = len(case.findings) - bool(cause)
    more = f" {count(others, 'other finding' if cause else 'finding')} below." if others else ""
    if cause is None:
        return f"{_ended(end)}{_moment(end)}{_message(end)}.{more}"
    if end.cause in end.faults or _is_message(cause, end):
        head = _first(line(end.headline or _title(end)))
        return f"{line(cause.fault.title)} ({end.cause}): {_found(end)}{_moment(end)}. {_closed(head)}{more}"
    place = cause.evidence[0].place
    found = f": {line(str(place))}" if place.path else ""
    return f"{line(cause.fault.title)} ({end.cause}){found}. {_ended(end)}{_moment(end)}{_message(end)}.{more}"


def _first(text: str) -> str:
    """TEXT, or of a long one its first sentences: allocators and loaders put a paragraph into their first line."""
    if len(text) <= HEAD:
        return text
    cut = text.rfind(". ", 0, HEAD)
    return text[: cut + 1] if cut > 0 else f"{text[:HEAD].rpartition(' ')[0] or text[:HEAD]} …"


def _closed(sentence: str) -> str:
    return sentence if sentence.endswith(("…", "!", "?")) else f"{sentence.rstrip('.')}."


def _is_message(cause: Finding, end: End) -> bool:
    """Whether CAUSE was found in the message itself."""
    return any(each.detector.startswith("log/") and each.place == end.found_at for each in cause.evidence)


def _title(end: End) -> str:
    code = f" (exit code {end.code})" if end.kind == "signal" and end.code is not None else ""
    return f"exit code {end.code}" if end.kind == "exit" else f"{end.type or _NAMELESS[end.kind]}{code}"


def _where(end: End) -> str:
    """The user's line, with the module and the rank, as far as they are known."""
    place = end.place or Place()
    words = [f"{place.path}:{place.line}" if place.line else place.path] if place.path else []
    words += [f"module {place.module}"] if place.module else []
    words += [f"rank {place.rank}"] if place.rank or (place.rank == 0 and not words) else []
    return line(", ".join(words))


def _found(end: End) -> str:
    """The user's line, else the line of a log, else the job as a whole."""
    return _where(end) or line(str(end.found_at or Place()))


def _ended(end: End) -> str:
    where = _where(end)
    at = f" {'at' if end.place and end.place.path else 'on'} {where}" if where else ""
    if end.kind == "signal":
        return f"The job was ended by {_title(end)}{at}" if end.type else f"The job was ended from outside{at}"
    if end.kind == "exit":
        return f"The job ended itself with exit code {end.code}{at}"
    return f"The job ended with {end.type or 'an error'}{at}"


def _moment(end: End) -> str:
    if end.is_trained is None:
        return ""
    if not end.is_trained or end.place is None or end.place.step is None:
        return "" if end.is_trained else ", before its first training step"
    return f", at step {end.place.step}"


def _message(end: End) -> str:
    return f": {_first(line(end.summary))}".rstrip(".") if end.summary else ""


def _advice(end: End) -> str:
    if end.do:
        return line(end.do)
    if end.kind == "signal":
        return _BY_SIGNAL.get(end.type, f"Find out what sent {end.type}: the scheduler's log, the kernel's (dmesg).")
    if end.kind == "exit":
        return "The program chose to end: see the condition above that line, and what it printed before."
    return _UNKNOWN
