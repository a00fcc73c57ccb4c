"""What the end of a job began with, and how that is told."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from signal import Signals

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.logs.marks import CAUSE, KILLED, LAUNCHER, NOISE, WAITED
from torchtriage.examine.artefact.logs.said import Exit, Logs, Said

END = "log/end"
"""The detector that cannot tell what came after a job broke off."""
ON = 200
"""Lines after an error from which on a log is said to go on: the launcher's own words are fewer."""
_BY_HAND = re.compile(r"KeyboardInterrupt|got signal: 2\b|SIGINT")


def kills(exits: Sequence[Exit], said: Sequence[Said]) -> Iterator[Said]:
    """Processes that a signal ended: a kernel's or scheduler's word of the same process explains it."""
    for each in exits:
        if each.code >= 0 or each.code == -15:
            continue
        by = next((one for one in said if one.pid is not None and one.pid == each.pid), None)
        why = f": {by.headline} ({by.path}:{by.line})" if by else ""
        text = f"the process was ended by {signal(-each.code)}{why}"
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


def told(logs: Logs, lines: Mapping[str, int]) -> Iterator[Inconclusive]:
    """The end in one sentence, and the way out. LINES: how many each file has."""
    first = logs.cause
    if first is None:
        return
    last = max(each.line for each in logs.said if each.path == first.path)
    after = lines.get(first.path, 0) - last
    goes_on = after > ON and not logs.exits
    also = f"; {logs.followed} more follow from that" if logs.followed else ""
    also += f"; the log goes on for {after:,} lines after it" if goes_on else ""
    yield Inconclusive(
        "logs" if goes_on else END, f"{_who(first)}{first.headline}{_means(first)}{also}", _way_out(first)
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


def _way_out(said: Said) -> str:
    if _BY_HAND.search(said.text):
        return "What the log shows until then has been judged."
    if said.tier == CAUSE and said.kind == "raised":
        return "`torchtriage ask` says where the message leads; what the log shows until then has been judged."
    if said.tier == WAITED:
        return "See what the ranks that are not named did meanwhile: their logs, or a Flight Recorder dump of each."
    if said.tier == KILLED:
        return "See what ended it: the kernel's log (dmesg), the scheduler's, the host's memory. Read those logs too."
    if said.tier == CAUSE:
        return "Give the job what it lacked, or let it save before; what the log shows until then has been judged."
    return "The logs of the other ranks tell what came before: read them together with this one."
