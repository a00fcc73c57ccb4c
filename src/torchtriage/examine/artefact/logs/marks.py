"""Lines that say by themselves that something ended, and how near to the cause they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torchtriage.examine.artefact.logs.tracebacks import ERROR

CAUSE, KILLED, WAITED, LOST, LAUNCHER, NOISE = range(6)

_TIERS = (
    (
        CAUSE,  # also where only the watchdog of NCCL says it, in the words of a lost peer
        re.compile(
            r"(?:CUDA|HIP) error: (?:an illegal|misaligned|uncorrectable|device-side|unspecified launch)|"
            # the store of the first rank, in the class that also tells of lost peers
            r"EADDRINUSE|[Aa]ddress already in use"
        ),
    ),
    (
        LAUNCHER,
        re.compile(
            r"ChildFailedError|ProcessRaisedException|SignalException|closing signal|death signal|KeyboardInterrupt|"
            r"exitcode|killed by signal: (?:Terminated|Interrupt)|terminated with exit code|signal SIGTERM|"
            r"returned non-zero exit status|terminated with the following error"
        ),
    ),
    (
        LOST,
        re.compile(
            r"by peer|[Bb]roken ?[Pp]ipe|communicator was aborted|ncclRemoteError|recvValue failed|sendBytes failed|"
            r"[Cc]onnection ?[Rr]e(?:fused|set)|Connection was likely closed|operations have failed or timed out|"
            r"eartbeat|^terminate called.*::Dist|watchdog thread terminated|entire process down|DistNetworkError|"
            r"aborted due to"
        ),
    ),
    (WAITED, re.compile(r"[Tt]imed out|[Tt]ime ?out|Watchdog|watchdog")),
    (
        KILLED,
        re.compile(r"ncclSystemError|ncclInternalError|terminated with signal|died with <Signals|exited unexpectedly"),
    ),
)
_EXCEPTION = re.compile(r"(?:[a-z_]\w{0,60}\.){0,8}(?:exc|errors|exceptions|zipfile)\.[A-Z]\w{1,60}: ")
"""Classes of errors that are not called so: torch._dynamo.exc.Unsupported, zipfile.BadZipFile."""
HANDLER = re.compile(
    r"^[^'\"`]{0,160}?\b(?:[Rr]eceived|[Cc]aught|[Gg]ot|[Ii]nterrupted by)\W{1,3}"
    r"(?:signal\W{1,3})?SIG(?:TERM|HUP|XCPU|USR[12])\b"
)
"""The words of a handler of the program's own, which saves and leaves."""
_OURS = re.compile(r"python|^pt_|torch|ray|accelerate|deepspeed|train", re.IGNORECASE)
"""Names of processes, as the kernel gives them, that may belong to a training; it ends others as well."""
_HARDWARE = frozenset({48, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120})
"""Xids that NVIDIA's list calls errors of the device or its links; 13, 31, 43 and 45 come of what a program did."""


@dataclass(frozen=True)
class Mark:
    """What one line says. rank, pid: where the line names them."""

    kind: str
    tier: int
    rank: int | None = None
    pid: int | None = None


def tier_of(text: str) -> int:
    """How near to the cause an error of these words stands, from what torch, gloo, NCCL and the launcher say."""
    return next((tier for tier, pattern in _TIERS if pattern.search(text)), CAUSE)


def mark(text: str) -> Mark | None:
    """What TEXT, a line without its rank, says of an end; None for the most of lines."""
    for word, pattern, kind, tier in _MARKS:
        if word in text and (found := pattern.search(text)):
            groups = found.groupdict()
            rank, pid = (int(value) if (value := groups.get(name)) else None for name in ("rank", "pid"))
            return Mark(kind, _moved(tier, groups, text), rank, pid)
    if _EXCEPTION.match(text):
        return Mark("raised", tier_of(text))
    if ERROR.match(text) and "Warning" not in text.split(":", 1)[0]:
        return Mark("raised", tier_of(text))
    return None


def _moved(tier: int, groups: dict[str, str | None], text: str) -> int:
    """The tier of a mark, by what its line says beside."""
    if xid := groups.get("xid"):
        return CAUSE if int(xid) in _HARDWARE else KILLED
    if (name := groups.get("name")) is not None and not _OURS.search(name):
        return NOISE
    if (how := groups.get("how")) is not None:
        return LAUNCHER if how in {"Terminated", "Killed"} or how.startswith("Exited") else KILLED
    return tier_of(text) if tier < 0 else tier


_MARKS = tuple(
    (word, re.compile(pattern), kind, tier)
    for word, pattern, kind, tier in (
        (
            "ut of memory",
            r"ut of memory: Kill(?:ed)? process (?P<pid>\d{1,9})(?: \((?P<name>[^)]{1,40})\))?",
            "ended",
            CAUSE,
        ),
        ("oom-kill:", r"oom-kill:.{0,300}task=(?P<name>[^,]{1,40}),pid=(?P<pid>\d{1,9})", "ended", CAUSE),
        ("kill", r"[Dd]etected \d+ oom[-_]kill event", "ended", CAUSE),
        ("out-of-memory", r"cgroup out-of-memory handler", "ended", CAUSE),
        ("OOMKilled", r"OOMKilled", "ended", CAUSE),
        ("Exceeded", r"Exceeded (?:job|step) memory limit", "ended", CAUSE),
        (" DUE TO ", r"CANCELLED AT .{0,60}DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)", "ended", CAUSE),
        ("CANCELLED", r"slurmstepd: error: .*CANCELLED AT", "ended", LAUNCHER),
        ("srun", r"srun: error: \S+: tasks? (?P<rank>\d{1,6})[^:]{0,80}: (?P<how>[A-Z].{1,60})", "ended", KILLED),
        ("NVRM", r"NVRM: Xid \([^)]{1,60}\): (?P<xid>\d{1,4})", "ended", CAUSE),
        ("Fatal Python", r"Fatal Python error: ", "native", -1),
        ("terminate called", r"^terminate called after", "native", LOST),
        (
            "terminated with code",
            r"^\[rank: (?P<rank>\d{1,6})\] Child process with PID (?P<pid>\d{1,9}) terminated with code -(?!15\b)\d",
            "ended",
            KILLED,
        ),
        (
            "137",
            r"(?:[Ee]xit(?:ed)?(?: with)? [Cc]ode:? {0,12}|[Ee]xited with code |terminated with exit code )137\b",
            "ended",
            KILLED,
        ),
        ("return code", r"exits with return code = -(?!15\b)\d", "ended", KILLED),
        ("what()", r"^\s*what\(\): ", "native", -1),
        ("Killed", r"^(?:[^'\"`]{1,160}: line \d{1,9}: +)?(?:\d{1,9} )?Killed(?: {2,40}\S.{0,200})?$", "ended", KILLED),
        (
            "killed",
            r"^(?:\w{0,8}sh: killed |\[\d{1,4}\] {1,4}[+-]? {0,4}(?P<pid>\d{1,9}) killed ) {1,20}\S",
            "ended",
            KILLED,
        ),
        (
            "out of memory",
            r"^\W{0,4}(?:CUDA|HIP|XPU|NPU|MPS backend) out of memory(?:\. Tried to allocate| \(MPS allocated)",
            "native",
            CAUSE,
        ),
        (
            "DataLoader worker",
            r"^\W{0,4}DataLoader worker \(pid\(?s?\)? [\d, ]{1,80}\) (?:is killed|exited)",
            "native",
            CAUSE,
        ),
        ("EADDRINUSE", r"EADDRINUSE", "native", CAUSE),
        ("us error", r"Unexpected bus error encountered in worker", "native", CAUSE),
        (
            "fault",
            r"(?:^|: line \d{1,9}: +\d{1,9} )Segmentation fault|Segmentation fault(?: *\(core dumped\))?\s*$",
            "ended",
            KILLED,
        ),
        (
            "SIG",
            HANDLER.pattern,
            "ended",
            LAUNCHER,
        ),
        (
            "error: ",  # argparse
            r"^[\w./-]{1,80}: error: (?:argument |the following arguments |unrecognized arg|one of the arg|ambiguous)",
            "native",
            CAUSE,
        ),
        (
            "Error: ",  # click
            r"^Error: (?:Invalid value|No such option|Missing (?:option|argument|parameter)|Got unexpected extra)",
            "native",
            CAUSE,
        ),
        ("Python.h", r"fatal error: Python\.h: No such file", "native", CAUSE),
        ("nccl", r"^nccl[A-Z]\w{1,30}(?:Error|Usage|Argument): ", "native", -1),
        ("us error", r"Bus error(?: *\(core dumped\))?\s*$", "ended", KILLED),
        ("core dumped", r"(?:Aborted|Illegal instruction) *\(core dumped\)\s*$", "ended", KILLED),
        ("ssertion", r"ssertion `[^`']{1,200}['`] failed", "native", CAUSE),
        (".cpp:", r"(?:^|\] ?)\[?[EF](?:\d{4} [\d:.]+)? .{0,120}\.cpp:\d+\]", "native", -1),
        ("atchdog", r"Watchdog caught collective operation timeout", "native", WAITED),
        ("NCCL WARN", r"NCCL WARN ", "native", LOST),
        ("No space left", r"No space left on device", "native", CAUSE),
        ("Warning: ", r"\w+Warning: ", "warned", CAUSE),
        ("torch._dynamo", r"torch\._dynamo hit config", "warned", CAUSE),
    )
)
