"""One dump, as torch 2.4 to 2.13 write it (versions 2.1 to 2.10), brought into rows of known kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from torchtriage.examine.artefact.frames import Frame, own

LATEST, MOST = 256, 2000
"""Collectives of a dump that are kept: the last ones, and from the first on that is under way at most so many. The
recorder itself keeps 2000 unless it is told otherwise."""
_LONG = 200  # characters of a name; of a path five times as many
_WIDE = 64  # tensors of a collective, dimensions of a tensor
_RANK = re.compile(r"\d+")
_PEER = re.compile(r"(\d+)\s*(->|<-)\s*(\d+)")


def plain(dump: Any, size: int) -> dict[str, Any]:
    """{"version", "groups": {name: {"desc", "ranks"}}, "last": {group: number}, "entries": rows}.

    SIZE: of the file in bytes; it cannot hold more entries than that. Raises ValueError for what is no dump.
    """
    if not isinstance(dump, dict) or not ({"pg_config", "entries", "pg_status"} & dump.keys()):
        raise ValueError("a pickle, but no Flight Recorder dump: neither pg_config nor pg_status nor entries is there")
    entries = dump.get("entries") or []
    if not isinstance(entries, list) or len(entries) > size:
        raise ValueError("entries is no list of collectives")
    known = [each for each in entries if isinstance(each, dict) and _group(each) and each.get("profiling_name")]
    rows = [_row(each) for each in _latest(known)]
    return {
        "version": _words(dump.get("version"), _LONG),
        "groups": dict(_groups(dump.get("pg_config"))),
        "last": _last(known, dict(_enqueued(dump.get("pg_status")))),
        "entries": rows,
        "passed": len(entries) - len(known),
    }


def _latest(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last LATEST, and all from the first on that is under way, in the order in which they were asked for."""
    entries = sorted(entries, key=lambda entry: _whole(entry.get("time_created_ns")))
    waits = next((at for at, entry in enumerate(entries) if _pending(entry)), len(entries))
    return entries[max(min(waits, len(entries) - LATEST), 0) :][:MOST]


def _pending(entry: dict[str, Any]) -> bool:
    return not entry.get("retired") and entry.get("state") != "completed"


def _group(entry: dict[str, Any]) -> str:
    """The name of its group; "" where it has none."""
    group = entry.get("process_group")
    return _words(group[0], _LONG) if isinstance(group, list | tuple) and group else ""


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    named = str(entry["profiling_name"])[:_LONG] if isinstance(entry["profiling_name"], str) else "unknown"
    said = named.partition(":")[2] or named
    frame = own(_frames(entry.get("frames")))
    return {
        "group": _group(entry), "seq": _number(entry), "p2p": bool(entry.get("is_p2p")),
        "op": said.split(" ")[0], "peers": _peers(said), "created": _whole(entry.get("time_created_ns")),
        "sizes": _sizes(entry.get("input_sizes")), "dtypes": _listed(entry.get("input_dtypes")),
        "pending": _pending(entry), "path": frame.path if frame else "", "line": frame.line if frame else 0,
        "function": frame.function if frame else "",
    }  # fmt: skip


def _number(entry: dict[str, Any]) -> int:
    """Within its group, of sends and receives or of collectives."""
    number = entry.get("p2p_seq_id") if entry.get("is_p2p") else entry.get("collective_seq_id", entry.get("seq_id"))
    return _whole(number)


def _peers(said: str) -> list[int]:
    """Source and goal of a send or recv: "send 0->1", "recv 1<-0"."""
    found = _PEER.search(said[:_LONG])
    if found is None:
        return []
    one, way, other = int(found[1][:9]), found[2], int(found[3][:9])
    return [one, other] if way == "->" else [other, one]


def _frames(told: Any) -> Iterator[Frame]:
    for each in told[:500] if isinstance(told, list | tuple) else ():
        if isinstance(each, dict):
            path, name = _words(each.get("filename"), 5 * _LONG), _words(each.get("name"), _LONG)
            yield Frame(path, _whole(each.get("line")), name)


def _groups(told: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Gloo writes one group without a name and without ranks: it tells nothing and is left out."""
    for name, group in [*told.items()][:MOST] if isinstance(told, dict) else ():
        if isinstance(group, dict):
            ranks = [int(each[:9]) for each in _RANK.findall(_words(group.get("ranks"), 2**20))]
            if ranks or name:
                desc = _words(group.get("desc"), _LONG)
                yield _words(group.get("name") or name, _LONG), {"desc": desc, "ranks": ranks}


def _last(entries: list[dict[str, Any]], enqueued: dict[str, int]) -> dict[str, int]:
    """The number of each group's last collective: the ring may have lost it, the status of the group has not."""
    last: dict[str, int] = {}
    for entry in entries:
        group, pg_id = _group(entry), str(_whole(entry.get("pg_id")))
        number = 0 if entry.get("is_p2p") else max(_number(entry), enqueued.get(pg_id, 0))
        last[group] = max(last.get(group, 0), number)
    return last


def _enqueued(told: Any) -> Iterator[tuple[str, int]]:
    for name, status in [*told.items()][:MOST] if isinstance(told, dict) else ():
        if isinstance(status, dict):
            yield _words(name, _LONG), _whole(status.get("last_enqueued_collective"))


def _sizes(told: Any) -> list[list[int]]:
    rows = told[:_WIDE] if isinstance(told, list | tuple) else ()
    return [[_whole(size) for size in each[:_WIDE]] for each in rows if isinstance(each, list | tuple)]


def _listed(told: Any) -> list[str]:
    return [_words(each, _LONG) for each in told[:_WIDE]] if isinstance(told, list | tuple) else []


def _words(value: Any, most: int) -> str:
    """VALUE as a string; of containers nothing, which could be endless."""
    if isinstance(value, list | tuple) and len(value) < MOST:
        return " ".join(str(each)[:20] for each in value if isinstance(each, int | str))[:most]
    return str(value)[:most] if isinstance(value, str | int | float) else ""


def _whole(value: Any) -> int:
    """VALUE as a number below 2**63; JSON has some of them as strings. 0 for what is none."""
    if isinstance(value, str):
        digits = value[:20].lstrip("-")
        value = int(value[:20]) if digits.isascii() and digits.isdigit() else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else 0
