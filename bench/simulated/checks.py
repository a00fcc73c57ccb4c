"""Whether a job's ledgers agree with what is declared to be true of it.

A check is a name, some with an argument: "limit:sync". It gets the job, its truths by rank and the argument, and
returns what speaks against it, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from corpus import statement

from simulated.jobs import Job, run
from simulated.truth import SKIP, SPARED, Truth
from torchtriage.simulation import Collective, Copy

MOST = 0.8
"""Of the time that the host waits, what must be spent on the declared lines."""
LITTLE = 0.05
"""Of a step, what a cause may cost in a job that is healthy in this respect."""
SURE = 0.22
"""Of a step, what the declared cause must cost."""
APART = 0.8
"""What the second of the causes may cost, of the first."""
FULL, ROOMY = 0.91, 0.85
"""Shares of a device's memory: at a peak that fills it, and at one that does not."""
SLOWER, SAME = 1.12, 0.03

Check = Callable[[Job, Sequence[Truth], str], str | None]


def disagreements(job: Job, truths: Sequence[Truth]) -> Iterator[str]:
    """Each check that the ledgers of JOB do not bear out, with the figures; nothing when all is as declared."""
    if not truths:
        yield "left no ledger"
        return
    if truths[0].steps > SKIP + 2 and (off := max(each.fidelity for each in truths)) > 0.01:
        yield f"the replay is off by {off:.1%}"
    for name in job.checks:
        check, _, argument = name.partition(":")
        if said := CHECKS[check](job, truths, argument):
            yield f"{name}: {said}"


def _limit(job: Job, truths: Sequence[Truth], cause: str) -> str | None:
    truth = truths[0]
    rivals = SPARED if cause in SPARED else ("launch", "kernel")
    first, second = sorted((truth.gains.get(each, 0.0) for each in rivals), reverse=True)[:2]
    if truth.limit == cause and first > SURE and second < APART * first:
        return None
    return f"is {truth.limit}, {_shown(truth.gains)}"


def _shown(gains: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in sorted(gains.items(), key=lambda row: -row[1]))


def _gain(job: Job, truths: Sequence[Truth], cause: str) -> str | None:
    return None if truths[0].gains.get(cause, 0) > SURE else _shown(truths[0].gains)


def _sum(job: Job, truths: Sequence[Truth], causes: str) -> str | None:
    total = sum(truths[0].gains.get(cause, 0) for cause in causes.split("+"))
    return None if total > 0.3 else _shown(truths[0].gains)


def declared(job: Job) -> set[int]:
    """All lines of the statements that JOB's lines are in."""
    return {line for each in job.lines for line in statement(job.script, each)}


def _on_lines(job: Job, found: Mapping[int, float]) -> str | None:
    lines = declared(job)
    here = sum(spent for line, spent in found.items() if line in lines)
    total = sum(found.values())
    return None if total and here >= MOST * total else f"{here / (total or 1):.0%} there; {found}"


def _waits(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    return _on_lines(job, truths[0].waits)


def _transfers(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    return _on_lines(job, truths[0].transfers)


def _bounce(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    both = dict(truths[0].waits)
    for line, spent in truths[0].transfers.items():
        both[line] = both.get(line, 0) + spent
    return _on_lines(job, both)


def _pinned(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    return None if truths[0].pinned else "pageable"


def _pageable(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    return "pinned" if truths[0].pinned else None


def _peak(job: Job, truths: Sequence[Truth], holder: str) -> str | None:
    truth = truths[0]
    is_so = truth.resting > 0.55 if holder == "states" else truth.resting < 0.45
    full = truth.peak / job.memory
    return None if is_so and full > FULL and not truth.error else f"{full:.1%} full, {truth.resting:.0%} rests"


def _ends(job: Job, truths: Sequence[Truth], error: str) -> str | None:
    return None if truths[0].error == error else f"ended with {truths[0].error}"


def _fragmented(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    last = truths[0].out_of_memory
    if last is None:
        return "no allocation failed"
    unused = last.reserved - last.allocated
    return None if unused > last.bytes and unused > 0.12 * job.memory else f"{unused} unused, {last.bytes} asked for"


def _at(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    return None if truths[0].line in declared(job) else f"at line {truths[0].line}"


def _growth(job: Job, truths: Sequence[Truth], at_least: str) -> str | None:
    grown = truths[0].growth
    return None if grown > 0 and grown >= 0.9 * int(at_least) else f"{grown} bytes a step"


def _autocast(job: Job, truths: Sequence[Truth], effect: str) -> str | None:
    with run(job, autocast=False) as ran:
        without = ran.truths()[0].period
    ratio = truths[0].period / without
    right = {"slower": ratio > SLOWER, "faster": ratio < 1 / SLOWER, "same": abs(ratio - 1) < SAME}[effect]
    return None if right else f"{ratio:.3f} times as long with it"


def _unordered(job: Job, truths: Sequence[Truth], kind: str) -> str | None:
    """Copies of that KIND on the declared lines are behind the host, which does not wait for them."""
    truth, lines = truths[0], declared(job)
    copies = [each for each in truth.ledger.copies if each.step >= SKIP and each.kind == kind and each.line in lines]
    loose = [each for each in copies if _is_loose(each, truth)]
    return None if copies and len(loose) > len(copies) / 2 else f"{len(loose)} of {len(copies)} copies"


def _is_loose(copy: Copy, truth: Truth) -> bool:
    waits = any(wait.begun <= copy.end <= wait.ended for wait in truth.ledger.synchronisations if wait.waited)
    return copy.non_blocking and copy.pinned and copy.end > copy.launched and not waits


def _streams(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    """Batches are copied on another stream, and no kernel begins because a copy has ended."""
    ledger = truths[0].ledger
    computing = {each.stream for each in ledger.kernels}
    copies = [each for each in ledger.copies if each.kind == "host-to-device" and each.step >= SKIP]
    apart = sum(each.stream not in computing for each in copies)
    ordered = {each.end for each in copies} & {each.start for each in ledger.kernels}
    is_so = apart > 0.9 * len(copies) > 0 and not ordered
    return None if is_so else f"{apart} of {len(copies)} apart, {len(ordered)} waited for"


def _waits_at_most(job: Job, truths: Sequence[Truth], share: str) -> str | None:
    return None if truths[0].gains["sync"] <= float(share) else _shown(truths[0].gains)


def _quiet(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    truth = truths[0]
    costly = {name: share for name, share in truth.gains.items() if name not in {"kernel", "launch"} and share > LITTLE}
    if costly or truth.error or truth.growth > 0 or truth.peak > ROOMY * job.memory or not truth.gains:
        return f"{_shown(costly)}; {truth.error}; {truth.growth} a step; peak {truth.peak / job.memory:.0%}"
    return None


def _late(job: Job, truths: Sequence[Truth], rank: str) -> str | None:
    """The collectives of the others wait for RANK, by a fifth of a step and more, and its own for nobody."""
    own = truths[int(rank)].lateness
    others = [each.lateness / each.period for number, each in enumerate(truths) if number != int(rank)]
    steps = truths[0].period
    return None if others and min(others) > 0.2 and own < 0.05 * steps else f"others {others}, itself {own / steps:.2f}"


def _hidden(job: Job, truths: Sequence[Truth], _: str) -> str | None:
    truth = truths[0]
    rows: list[Collective] = [each for each in truth.ledger.collectives if each.step >= SKIP]
    spent = sum(each.end - each.start for each in rows) / (truth.period * (truth.steps - SKIP))
    exposed = truth.gains["communication"] + truth.gains["peer"]
    return None if spent > LITTLE > exposed else f"{spent:.1%} of the step, of which {exposed:.1%} exposed"


CHECKS: dict[str, Check] = {
    "limit": _limit,
    "gain": _gain,
    "sum": _sum,
    "waits": _waits,
    "transfers": _transfers,
    "bounce": _bounce,
    "pinned": _pinned,
    "pageable": _pageable,
    "peak": _peak,
    "ends": _ends,
    "fragmented": _fragmented,
    "at": _at,
    "growth": _growth,
    "autocast": _autocast,
    "unordered": _unordered,
    "streams": _streams,
    "waits-at-most": _waits_at_most,
    "quiet": _quiet,
    "late": _late,
    "hidden": _hidden,
}
