"""Why ranks wait for each other in vain: who is missing where, who asks for something else, whose steps are over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Call, Collective
from torchtriage.examine.run.ranks.stood import TIMEOUT, Stand, stands
from torchtriage.examine.run.record import RunRecord

from . import launch
from .asked import EQUAL, MOST, differ, lasting, named, number_of, own_of, settled, short, unit, unlike, what_of, where

WAITING = ("waits", "lost")  # for other ranks, or until it was clear that they would not come
TO_ONE = ("send", "isend", "recv", "irecv")


class Meeting(NamedTuple):
    """A collective that does not come about. waiting: for those that are missing, or that ask for something else."""

    group: str
    seq: int
    op: str
    ranks: tuple[int, ...]
    waiting: tuple[Stand, ...]
    missing: tuple[Stand, ...]
    absent: tuple[int, ...]  # ranks without a record


@detector("run/collective-on-some-ranks")
def collective_on_some_ranks(record: RunRecord) -> Iterator[Sighting]:
    """Some ranks wait in a collective that others do not reach, or that others call in another way."""
    at = stands(record)
    if len(at) < 2 or _died(at) or _uneven(at):
        return
    if behind := [pair for pair in _behind(at) if _left_out(*pair)]:
        yield from _of_steps_left_out(behind)
    elif apart := _apart(at):
        yield from apart
    elif (meeting := _meeting(at)) is not None:
        yield from _of_missing(meeting)
    else:
        yield from _sudden(at)
        yield from _both_sudden(at)
        yield from _roots(at)
        yield from _partners(at)


@detector("run/uneven-steps")
def uneven_steps(record: RunRecord) -> Iterator[Sighting]:
    """The steps of one rank are over while others wait for it in their next one."""
    at = stands(record)
    if _died(at):
        return
    for trains, over in _uneven(at):
        path, line = trains.place
        done, more = over.begun, trains.begun
        how = "its process has ended" if over.how == "ended" else f"it {where(over)}"
        fact = f"rank {trains.rank} waits in its step {more} for the ranks it averages with"
        if trains.cut_off:
            fact = f"rank {trains.rank} was in its step {more} when its process ended at once"
        fact += f"; rank {over.rank} was done after {done} steps: {how}"
        yield Sighting(Place(path=path, line=line, rank=trains.rank, step=trains.step), fact, more - done, "steps")
        path, line = over.place
        if path is not None and over.how != "ended":
            place = Place(path=path, line=line, rank=over.rank, step=over.step)
            yield Sighting(place, f"rank {over.rank} was here, past its last step", more - done, "steps")


@detector("run/collective-timeout")
def collective_timeout(record: RunRecord) -> Iterator[Sighting]:
    """A rank gave up waiting for the others in a collective, and nothing tells where those were."""
    at = stands(record)
    late = [each for each in at.values() if each.error and TIMEOUT.search(each.error.message)]
    if not late or _died(at) or _uneven(at) or any(True for _ in collective_on_some_ranks.look(record)):
        return
    if launch.unmet(record):
        return  # there was no group yet: launch-environment says so
    for each in late:
        entry, (path, line) = each.awaited, each.place
        what = number_of(entry) if entry else "waiting for the others"
        others = sorted(set((each.groups.get(entry["group"]) if entry else None) or at) - {each.rank})
        fact = f"rank {each.rank} gave up in {what} with {named(others)}: {short(each.error)}"
        yield Sighting(Place(path=path, line=line, rank=each.rank, step=each.step), fact)
        for rank in (other for other in others if other in at and at[other].how == "moves"):
            yield from _there(at[rank])


def _died(at: dict[int, Stand]) -> list[Stand]:
    """Ranks whose own end explains why others wait: with an error, or without a word and out of no collective."""
    failed = [each for each in at.values() if each.how == "failed"]
    waits = any(each.how in WAITING for each in at.values())
    silent = [each for each in at.values() if each.how == "silent" and waits and not list(_sudden(at))]
    return failed + silent


def _meeting(at: dict[int, Stand]) -> Meeting | None:
    """The first collective that some wait in and not all of its group have reached."""
    waits = [(each, entry) for each in at.values() if each.how in WAITING and (entry := each.awaited) is not None]
    for waiting, entry in sorted(waits, key=lambda pair: pair[1].get("created") or 0):
        group, seq = entry["group"], entry["seq"]
        ranks = tuple(waiting.groups.get(group) or sorted(at))
        missing = [at[rank] for rank in ranks if rank in at and at[rank].last.get(group, 0) < seq]
        if any(each.how not in {"waits", "still", "ended", "lost", "seen", "past"} for each in missing):
            continue  # it works, or nobody knows
        if any(each.how == "seen" for each in missing):
            continue
        absent = tuple(rank for rank in ranks if rank not in at)
        if missing:
            same = [each for each, other in waits if (other["group"], other["seq"]) == (group, seq)]
            return Meeting(group, seq, entry["op"], ranks, tuple(same), tuple(missing), absent)
    return None


def _of_missing(meeting: Meeting) -> Iterator[Sighting]:
    """Those that are missing first: there is the cause."""
    name = f"{meeting.op} number {meeting.seq} of group {meeting.group}"
    first = meeting.waiting[0]
    waits = f"{named([each.rank for each in meeting.waiting])} of {named(meeting.ranks)}"
    waits += " waits" if len(meeting.waiting) == 1 else " wait"
    for each in meeting.missing[:MOST]:
        path, line = each.place
        if path is not None and each.how != "ended":
            place = Place(path=path, line=line, rank=each.rank, step=each.step)
            fact = f"rank {each.rank} {where(each)}; it has not reached {name}, in which {waits}"
            yield Sighting(place, fact, each.seconds or None, unit(each))
    path, line = _asked(first, meeting)
    told = "; ".join(f"rank {each.rank} {where(each)}" for each in meeting.missing[:MOST])
    place = Place(path=path, line=line, rank=first.rank, step=first.step)
    yield Sighting(place, f"{waits} in {name}, {lasting(first)}: {told}", first.seconds or None, unit(first))


def _of_steps_left_out(pairs: list[tuple[Stand, Stand]]) -> Iterator[Sighting]:
    """A rank that passed over a batch, so that its collectives met those of the others' next step."""
    for trains, over in pairs:
        fewer = trains.begun - over.begun
        steps = f"{fewer} step" + "s" * (fewer != 1)
        fact = f"rank {over.rank} has had {over.batches} batches and made {over.begun} backward passes, rank "
        fact += f"{trains.rank} {trains.batches} and {trains.begun}: {steps} left out on rank {over.rank} alone, and "
        fact += f"every later collective met the wrong one; it {where(over)}"
        for each, told in ((trains, fact), (over, f"rank {over.rank} {where(over)}, past its last step")):
            path, line = each.place
            yield Sighting(Place(path=path, line=line, rank=each.rank, step=each.step), told, fewer, "steps")


def _apart(at: dict[int, Stand]) -> list[Sighting]:
    """The first number at which ranks of a group asked for different things."""
    keys: dict[tuple[str, int], list[tuple[Stand, Collective]]] = {}
    if not any(each.how in WAITING for each in at.values()):
        return []
    for each in at.values():
        for key, entry in each.entries.items():
            keys.setdefault(key, []).append((each, entry))
    for key in sorted(keys, key=lambda each: (each[0], each[1])):
        asked = keys[key]
        unlike = next((pair for pair in asked[1:] if differ(asked[0][1], pair[1])), None)
        if unlike is not None:
            return list(_told_apart(key, asked[0], unlike))
    return []


def _told_apart(
    key: tuple[str, int], one: tuple[Stand, Collective], other: tuple[Stand, Collective]
) -> Iterator[Sighting]:
    order = one[0].entries.get((key[0], key[1] + 1))
    swapped = order is not None and not differ(order, other[1]) and differ(order, one[1])
    for (each, entry), (against, counter) in ((one, other), (other, one)):
        path, line = (entry.get("path") or None, entry.get("line") or None)
        if path is None:
            path, line = each.place
        fact = f"number {key[1]} of group {key[0]} is {what_of(entry)} on rank {each.rank}, "
        fact += f"{what_of(counter)} on rank {against.rank}"
        fact += ": the same collectives in another order" if swapped else ""
        yield Sighting(Place(path=path, line=line, rank=each.rank, step=each.step), fact)


def _sudden(at: dict[int, Stand]) -> Iterator[Sighting]:
    """A process that ended at once in one collective while another rank was in a different one."""
    for silent in (each for each in at.values() if each.how == "silent"):
        last = silent.meeting
        if last is None or last.done:
            continue
        for other in (each for each in at.values() if each.how in WAITING):
            entry = other.awaited
            if entry is not None and unlike(last, entry, other):
                path, line = other.place
                place = Place(path=path, line=line, rank=other.rank, step=other.step)
                mine = Place(path=last.path or None, line=last.line or None, rank=silent.rank)
                fact = f"rank {silent.rank} was in {own_of(last)} when its process ended at once, while rank "
                fact += f"{other.rank} was in {what_of(entry)}: what came was not what it waited for"
                yield Sighting(mine, fact)
                yield Sighting(place, f"rank {other.rank} was in {what_of(entry)}")
                return


def _both_sudden(at: dict[int, Stand]) -> Iterator[Sighting]:
    """Two ranks, alone in their job, that both ended at once within a call of the same number, but not the same call.

    Of more ranks, two may belong to different groups: then numbers say nothing.
    """
    last = [each.meeting for each in at.values() if each.how == "silent" and each.meeting is not None]
    if len(at) != 2 or len(last) != 2 or any(each.done for each in last) or last[0].n != last[1].n:
        return
    asked = [(each.op, each.size, each.dtype) if each.op in EQUAL else each.op for each in last]
    if asked[0] != asked[1]:
        told = [own_of(each) for each in last]
        for each, (mine, other) in zip(at.values(), (told, told[::-1]), strict=True):
            path, line = each.place
            fact = f"rank {each.rank} was in {mine} when its process ended at once, while the other was in {other}"
            yield Sighting(Place(path=path, line=line, rank=each.rank), fact)


def _roots(at: dict[int, Stand]) -> Iterator[Sighting]:
    """Ranks that are in the same collective and name different ranks as its source or goal."""
    roots: dict[tuple[str, int], list[tuple[Stand, int]]] = {}
    for each in (each for each in at.values() if each.how in WAITING):
        entry, call = each.awaited, each.call or Call()
        named = (call.get("group_src"), call.get("src"), call.get("group_dst"), call.get("dst"))
        root = next((rank for rank in named if rank is not None), None)
        if entry is not None and root is not None and call.get("op") not in TO_ONE:
            roots.setdefault((entry["group"], entry["seq"]), []).append((each, root))
    for (group, seq), several in roots.items():
        if len({root for _, root in several}) > 1:
            said = ", ".join(f"rank {root} on rank {each.rank}" for each, root in several[:MOST])
            for each, _ in several[:MOST]:
                path, line = each.place
                op = (each.call or Call()).get("op")
                fact = f"{op} number {seq} of group {group} has another source or goal on each: {said}"
                yield Sighting(Place(path=path, line=line, rank=each.rank, step=each.step), fact)


def _partners(at: dict[int, Stand]) -> Iterator[Sighting]:
    """Waits that the recorder does not know: a send or recv without its other half, a group that not all make."""
    for each in (each for each in at.values() if each.how in WAITING and each.awaited is None):
        if not each.call:
            continue
        op, peer, (path, line) = each.call.get("op", ""), _peer(each.call), each.place
        place = Place(path=path, line=line, rank=each.rank, step=each.step)
        if op in TO_ONE and peer is not None:
            partner = at.get(peer)
            if partner is not None and settled(partner) and not _answers(partner, each, op):
                to = "to" if "send" in op else "from"
                fact = f"rank {each.rank} waits in {op} {to} rank {peer}, {lasting(each)}; rank {peer} {where(partner)}"
                yield Sighting(place, fact, each.seconds or None, unit(each))
                yield from _there(partner)
        elif op not in TO_ONE:
            others = [other for other in at.values() if other is not each and (other.call or Call()).get("op") != op]
            if others and all(settled(other) for other in others):
                told = "; ".join(f"rank {other.rank} {where(other)}" for other in others[:MOST])
                fact = f"rank {each.rank} waits in {op}, {lasting(each)}: {told}"
                yield Sighting(place, fact, each.seconds or None, unit(each))
                yield from (sighting for other in others[:MOST] for sighting in _there(other))


def _there(stand: Stand) -> Iterator[Sighting]:
    path, line = stand.place
    if path is not None and stand.how != "ended":
        place = Place(path=path, line=line, rank=stand.rank, step=stand.step)
        yield Sighting(place, f"rank {stand.rank} {where(stand)}")


def _answers(partner: Stand, waiting: Stand, op: str) -> bool:
    """Whether PARTNER is in the other half of what WAITING is in."""
    call = partner.call or Call()
    half = ("recv", "irecv") if "send" in op else ("send", "isend")
    return call.get("op") in half and _peer(call) == waiting.rank


def _peer(call: Call) -> int | None:
    """The other rank of a send or recv."""
    named = (call.get("dst"), call.get("src"), call.get("group_dst"), call.get("group_src"))
    return next((rank for rank in named if rank is not None), None)


def _left_out(trains: Stand, over: Stand) -> bool:
    """Whether a rank that is behind has been given as many batches: it made no step of one of them."""
    return over.batches >= trains.batches > 0 and over.how != "ended"


def _uneven(at: dict[int, Stand]) -> list[tuple[Stand, Stand]]:
    """Ranks that wait within a step, each with one whose steps are over and were fewer."""
    return [(trains, over) for trains, over in _behind(at) if not _left_out(trains, over)]


def _behind(at: dict[int, Stand]) -> list[tuple[Stand, Stand]]:
    """Ranks that wait within a step, or were cut off there, each with one that has left the loop after fewer."""
    found: list[tuple[Stand, Stand]] = []
    for trains in (each for each in at.values() if (each.how in WAITING or each.cut_off) and each.loops):
        others = trains.groups.get(trains.awaited["group"] if trains.awaited else "") or list(at)
        fewer = [at[each] for each in others if each in at and at[each].begun < trains.begun]
        found += [(trains, over) for over in fewer if over.how == "ended" or (_met(over) and _left(trains, over))]
    return found[:MOST]


def _left(trains: Stand, over: Stand) -> bool:
    """Whether a rank is out of a loop in which the other trains: one in which it updates, as far as that is known."""
    left = trains.loops - over.loops
    return bool(left & trains.rounds if trains.rounds else left)


def _met(stand: Stand) -> bool:
    """Whether a rank went on to another meeting: one that stands outside of any may have steps left."""
    if stand.how == "silent":
        return stand.meeting is not None and not stand.meeting.done
    return stand.how in {"waits", "lost"} and bool(stand.stack)


def _asked(stand: Stand, meeting: Meeting) -> tuple[str | None, int | None]:
    """The line that asked for the collective, else where the rank stands."""
    entry = stand.entries.get((meeting.group, meeting.seq))
    return (entry.get("path"), entry.get("line")) if entry and entry.get("path") else stand.place
