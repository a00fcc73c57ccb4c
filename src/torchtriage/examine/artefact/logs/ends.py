"""What the end of a job began with, and how that is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from signal import Signals

from msgspec.structs import replace

from torchtriage.core.end import End
from torchtriage.core.evidence import Inconclusive, Place
from torchtriage.examine.artefact.logs.marks import CAUSE, KILLED, LAUNCHER, NOISE, WAITED
from torchtriage.examine.artefact.logs.said import Exit, Logs, Said
from torchtriage.examine.artefact.logs.tracebacks import ERROR

END = "log/end"
"""The detector that cannot tell what came after a job broke off."""
ON = 200
"""Lines after an error from which on a log is said to go on: the launcher's own words are fewer."""
_MEMORY = re.compile(r"ut of memory|oom|OOM|out-of-memory|memory limit")
_RESIDENT = re.compile(r"\b(anon|shmem)-rss:(\d{1,15})kB")
_OTHERS = (
    (re.compile(r"TIME LIMIT"), "Ask for a longer limit (--time), or save often enough to go on from there."),
    (
        re.compile(r"PREEMPTION|REQUEUE|NODE FAILURE"),
        "The cluster took the machine: save on a signal before that (--signal), and go on from there.",
    ),
    (
        re.compile(r"NVRM: Xid"),
        "Have the device looked at (nvidia-smi -q, dcgmi diag -r 3), and leave its host out until then.",
    ),
    (
        re.compile(r"\b137\b"),
        "137 is 128 + 9: something sent SIGKILL, most often because memory was out. See `kubectl describe pod` "
        "(OOMKilled), `dmesg`, `sacct -o State,MaxRSS`, and read what they say together with this log.",
    ),
)
_BY = "the process was ended by "
_TYPED = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:: (?P<says>.*)|:?\s*$)")
_BY_HAND = re.compile(r"KeyboardInterrupt|got signal: 2\b|SIGINT")


def kills(exits: Sequence[Exit], said: Sequence[Said]) -> Iterator[Said]:
    """Processes that a signal ended: a kernel's or scheduler's word of the same process explains it."""
    for each in exits:
        if each.code >= 0 or each.code == -15:
            continue
        by = next((one for one in said if one.pid is not None and one.pid == each.pid), None)
        why = f": {by.headline} ({by.path}:{by.line})" if by else ""
        text = f"{_BY}{signal(-each.code)}{why}"
        yield Said(each.path, each.line, each.rank, "ended", text, tier=CAUSE if by else KILLED, pid=each.pid)


def signal(number: int) -> str:
    """The name of a signal."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def cause(logs: Logs) -> Said | None:
    """What stands nearest to the cause: of the rank whose end the launcher observed first, else what came first.

    Between files nothing tells the order of their lines: there, a traceback with a line of the user's code comes
    before an error without.
    """
    root = next((each.rank for each in logs.exits if each.is_root), None)
    ended = [each for each in logs.said if each.kind != "warned" and each.tier < NOISE]
    told = [each for each in ended if not (each.tier == LAUNCHER and each.kind == "raised")] or ended
    if not told:
        return None
    nearest = min(each.tier for each in told)
    near = [each for each in told if each.tier == nearest]
    of_root = [each for each in near if root is not None and each.rank == root]
    if len({each.path for each in near}) > 1 and not of_root:
        near.sort(key=lambda each: each.frame is None)
    return (of_root or near)[0]


def end(logs: Logs, lines: Mapping[str, int] | None = None) -> End | None:
    """How the job of LOGS failed; None where they show no failure, where the user stopped it, or where it still runs.

    LINES: how many each file has; None where the job wrote the errors down itself.
    """
    first = logs.cause
    if first is None or _BY_HAND.search(first.text) or (lines is not None and _goes_on(logs, lines)):
        return None
    frame, exits = first.frame, logs.exits
    raised_at = Place(frame.path, frame.line, anchor=frame.code or None) if frame else Place()
    kind, message = _split(first)
    is_outside = first.kind == "ended"
    code = next((each.code for each in sorted(exits, key=lambda one: (one.rank != first.rank, not one.is_root))), None)
    if is_outside:
        kind = signal(-code) if code is not None and code < 0 else ""
        message = first.text.removeprefix(f"{_BY}{kind}").removeprefix(": ") if kind else first.text
    return End(
        "signal" if is_outside else "exception",
        kind,
        message,
        first.at or replace(raised_at, rank=first.rank),
        128 - code if code is not None and code < 0 else code,
        next((each.says for each in first.decoded if each.says), ""),
        first.met,
        tuple(dict.fromkeys(fault for each in first.decoded for fault in each.faults[:1])),
        first.place,
        do=_way_out(first, out_of_memory(logs)) if first.kind != "raised" or first.tier != CAUSE else "",
        followed=logs.followed,
    )


def out_of_memory(logs: Logs) -> Said | None:
    """What the kernel or a scheduler says of memory that ran out."""
    return next((each for each in logs.said if each.kind == "ended" and _MEMORY.search(each.text)), None)


def _split(said: Said) -> tuple[str, str]:
    """The type of an error, without its modules, and its message; a native message has no type."""
    head, _, rest = said.text.strip().partition("\n")
    found = ERROR.match(head) or _TYPED.match(head)
    if said.kind != "raised" or found is None:
        return "", said.text.strip()
    return found["type"].rpartition(".")[2], "\n".join(part for part in ((found["says"] or "").strip(), rest) if part)


def _goes_on(logs: Logs, lines: Mapping[str, int]) -> bool:
    """Whether the log goes on for long after its last error: that one did not end the job."""
    first = logs.cause
    if first is None or logs.exits:
        return False
    last = max((each.line for each in logs.said if each.path == first.path), default=first.line)
    return lines.get(first.path, 0) - last > ON


def told(logs: Logs, lines: Mapping[str, int]) -> Iterator[Inconclusive]:
    """The end in one sentence, and the way out. LINES: how many each file has."""
    first = logs.cause
    if first is None:
        return
    last = max(each.line for each in logs.said if each.path == first.path)
    after = lines.get(first.path, 0) - last
    goes_on = _goes_on(logs, lines)
    also = f"; {logs.followed} more follow from that" if logs.followed else ""
    also += f"; the log goes on for {after:,} lines after it" if goes_on else ""
    yield Inconclusive(
        "logs" if goes_on else END,
        f"{_who(first)}{first.headline}{_means(first)}{_held(first)}{also}",
        _way_out(first, out_of_memory(logs)),
    )


def _who(said: Said) -> str:
    spot = f"{said.path}:{said.line}"
    if said.rank is None and said.kind == "ended":
        return f"the words of the host or its scheduler ({spot}): "
    who = f"rank {said.rank}" if said.rank is not None else "the job"
    by = " stopped by hand" if _BY_HAND.search(said.text) else ""
    return f"{who} ended{by} ({spot}){f' at {said.frame}' if said.frame else ''}: "


def _means(said: Said) -> str:
    """The message in plain words, where its figures were worked out."""
    says = next((each.says for each in said.decoded if each.says), "")
    return f" ({says})" if says else ""


def _held(said: Said) -> str:
    """What the process held as the kernel ended it."""
    sizes = {name: int(size) / 2**20 for name, size in _RESIDENT.findall(said.text)}
    if said.kind != "ended" or not sizes.get("anon", 0.0) + sizes.get("shmem", 0.0):
        return ""
    shared = f", and {sizes['shmem']:.1f} GiB of shared memory" if sizes.get("shmem", 0.0) >= 0.1 else ""
    return f" (it held {sizes.get('anon', 0.0):.1f} GiB of its own{shared})"


def _way_out(said: Said, no_memory: Said | None) -> str:
    if _BY_HAND.search(said.text):
        return "What the log shows until then has been judged."
    if said.kind == "ended" and (do := _from_outside(said, no_memory)):
        return do
    if said.tier == CAUSE and said.kind == "raised":
        return "`torchtriage ask` says where the message leads; what the log shows until then has been judged."
    return _BY_TIER.get(
        said.tier, "The logs of the other ranks tell what came before: read them together with this one."
    )


def _from_outside(said: Said, no_memory: Said | None) -> str:
    """What to do about a host, a cluster or a device that ended the job; "" where it is not known which did."""
    if _MEMORY.search(said.text) or (said.tier == KILLED and no_memory is not None):
        return (
            "The host or its container had no memory left. Ask for more of it (--mem, limits.memory), or take less: "
            "fewer DataLoader workers (each holds its own copy and prefetch_factor batches), nothing kept over the "
            "steps. `torchtriage run -- …` tells whether memory grows (measurements.memory.rss, memory-growth)."
        )
    return next((do for words, do in _OTHERS if words.search(said.text)), "")


_BY_TIER = {
    WAITED: "See what the ranks that are not named did meanwhile: their logs, or a Flight Recorder dump of each.",
    KILLED: "See what ended it: the kernel's log (dmesg), the scheduler's, the host's memory. Read those logs too.",
    CAUSE: "Give the job what it lacked, or let it save before; what the log shows until then has been judged.",
}
