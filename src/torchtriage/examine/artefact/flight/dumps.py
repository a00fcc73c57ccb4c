"""Dumps of several ranks as the record of a run in which each rank has come to stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.flight.files import NAME, Dump, dumps
from torchtriage.examine.detector import CannotSee, view
from torchtriage.examine.run.job.events import Call, Hang, to_row
from torchtriage.examine.run.lines import Row
from torchtriage.examine.run.ranks.stood import Stand, stands
from torchtriage.examine.run.record import RankRecord, RunRecord

_SHOWN = 64  # ranks
_UNBLOCK = "Look for them on their hosts; a process that was killed writes none, its log tells why."


@dataclass(frozen=True)
class Dumps:
    """What the ranks' dumps show, as the events that a run's record has of ranks that stand still.

    world: how many ranks the job had, as far as the dumps or their names tell. absent: ranks without a dump.
    """

    record: RunRecord
    paths: Mapping[int, str]
    world: int
    absent: tuple[int, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = field(default=())


@view(Dumps, of=Dumps)
def _whole(subject: Dumps) -> Iterator[Dumps]:
    if not subject.record.ranks:
        raise CannotSee("no dump could be read", "Dump them again: TORCH_NCCL_DUMP_ON_TIMEOUT=1 writes them.")
    yield subject


def read(paths: Sequence[str]) -> Dumps:
    """The dumps at PATHS, one for each rank of a job."""
    found, unseen = dumps(paths)
    _told_apart(found)
    groups = _groups(found)
    world = max([len(_default(groups)), *(dump.rank + 1 for dump in found)], default=0)
    absent = tuple(sorted(set(_default(groups) or range(world)) - {dump.rank for dump in found}))
    record = RunRecord(tuple(RankRecord(dump.rank, (to_row(_event(dump, groups)),)) for dump in found))
    whole = Dumps(record, {dump.rank: dump.path for dump in found}, world, absent if found else ())
    return Dumps(record, whole.paths, world, whole.absent, (*unseen, *_untold(whole)))


def _groups(found: Sequence[Dump]) -> dict[str, list[int]]:
    """The ranks of each group by its name: from the configuration; where none is told, those that used it."""
    told: dict[str, set[int]] = {}
    known = {name: set(group["ranks"]) for dump in found for name, group in _named(dump).items() if group["ranks"]}
    for dump in found:
        for row in dump.told["entries"]:
            if row["group"] not in known:
                everyone = {each.rank for each in found} if row["group"] == "0" else {dump.rank}
                told.setdefault(row["group"], set()).update(everyone)
    return {name: sorted(ranks) for name, ranks in (told | known).items()}


def _named(dump: Dump) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = dump.told["groups"]
    return groups


def _told_apart(found: Sequence[Dump]) -> None:
    """Groups of one name and of other ranks are others: ranks that make groups by themselves count them anew."""
    ranks: dict[str, set[tuple[int, ...]]] = {}
    for dump in found:
        for name, group in _named(dump).items():
            ranks.setdefault(name, set()).add(tuple(group["ranks"]))
    for dump in found:
        several = {
            name: f"{name} of ranks {', '.join(map(str, group['ranks'][:8]))}"
            for name, group in _named(dump).items()
            if len(ranks[name]) > 1
        }
        dump.told["groups"] = {several.get(name, name): group for name, group in _named(dump).items()}
        dump.told["last"] = {several.get(name, name): number for name, number in dump.told["last"].items()}
        for row in dump.told["entries"]:
            row["group"] = several.get(row["group"], row["group"])


def _default(groups: Mapping[str, list[int]]) -> list[int]:
    """All ranks of the job: the group that torch makes first is called 0."""
    return groups.get("0", [])


def _event(dump: Dump, groups: Mapping[str, list[int]]) -> Hang:
    """As run/job/ranks/hangs.py writes them; `past`: no collective is under way."""
    rows = dump.told["entries"]
    pending = [row for row in rows if row["pending"]]
    meets = [row for row in pending if not row["p2p"]]
    return Hang(
        why="dump",
        state="waits" if pending else "past",
        collectives=rows,
        last=dump.told["last"],
        groups=groups,
        call=_call(pending[0], groups) if pending and not meets else None,
        stack=_stack(pending[0]) if pending else (),
    )


def _stack(row: Row) -> list[tuple[str, int, str, list[int]]]:
    return [(row["path"], row["line"], row["function"], [])] if row["path"] else []


def _call(row: Row, groups: Mapping[str, list[int]]) -> Call:
    """A send or recv as a call, its partner as a rank of the job."""
    call = Call(op=row["op"], group=row["group"])
    if row["peers"]:
        source, goal = row["peers"]
        ranks, is_send = groups.get(row["group"]) or [], "send" in row["op"]
        partner = goal if is_send else source
        call["dst" if is_send else "src"] = ranks[partner] if partner < len(ranks) else partner
    return call


def _untold(subject: Dumps) -> Iterator[Inconclusive]:
    at = stands(subject.record)
    if subject.absent:
        names = ", ".join(map(str, subject.absent[:8])) + (" and more" if len(subject.absent) > 8 else "")
        waiting = {_awaited(each) for each in at.values() if each.how == "waits"} - {""}
        held = f"; those that did wait in {waiting.pop()}" if len(waiting) == 1 else ""
        of = f"{len(subject.absent)} of {subject.world} ranks left no dump: {names}"
        yield Inconclusive("dump/ranks", f"{of}{held}", _UNBLOCK)
    elif len(at) == 1:
        yield Inconclusive("dump/ranks", "one dump tells one side of each collective", f"Give all ranks'. {NAME}")
    elif at and len({_awaited(each) for each in at.values()}) == 1 and all(each.awaited for each in at.values()):
        said = f"all {len(at)} ranks are in {_awaited(at[min(at)])} and ask for the same: whether it lasts too long"
        do = "The log tells what timed out; one that all are in and none ends points at the network or a device."
        yield Inconclusive("dump/collective-timeout", f"{said}, the dumps do not tell", do)


def _awaited(stand: Stand) -> str:
    entry = stand.awaited
    return f"{entry['op']} number {entry['seq']} of group {entry['group']}" if entry is not None else ""


def measurements(subject: Dumps) -> dict[str, Any]:
    """world_size, dumps, absent, and for each rank where it waits and the number of its last collective by group."""
    at = stands(subject.record)
    return {
        "world_size": subject.world,
        "dumps": len(at),
        "absent": list(subject.absent[:_SHOWN]),
        "each": [_each(stand, subject.paths[rank]) for rank, stand in [*at.items()][:_SHOWN]],
    }


def _each(stand: Stand, path: str) -> dict[str, Any]:
    entry, call = stand.awaited, stand.call or Call()
    place, line = stand.place
    return {
        "rank": stand.rank,
        "file": path,
        "collectives": len(stand.collectives),
        "last": stand.last,
        "waits_in": entry["op"] if entry else call.get("op"),
        "seq": entry["seq"] if entry else None,
        "group": entry["group"] if entry else call.get("group"),
        "path": place,
        "line": line,
    }
