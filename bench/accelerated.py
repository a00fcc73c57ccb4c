"""How much of what a simulated accelerator shows `run` tells: the limit of the steps, its line, times and bytes.

    python bench/accelerated.py [--jobs FILE] [--only ID…] [--class NAME] [--seed N] [--all-output]
    python bench/accelerated.py --truth [--jobs FILE] [--only ID…] [--class NAME]

bench/accelerated.jsonl is held out: 48 jobs and 20 healthy ones, by people who had not seen the readings, frozen before
these were judged by it; only its sums are looked at. Each job runs twice on the device `sim`, in virtual time. The
first run is nobody's: what limits its steps, which lines wait, what is copied and what fills the memory is computed
from the device's ledger alone (bench/simulated/truth.py executes it again without each cause). The second is watched by
the probes, on the simulated clock, and its record is judged as `torchtriage read` would. With --seed the costs of all
operators are drawn anew around the first ones, the truth is measured again, and where another cause limits the steps
then, that is what has to be said. --truth holds what is declared of each job against its ledger, and watches nothing.

A job is right when what is true of it is found and nothing else is said: no fault above info and no verdict of a limit
that is not declared, unless the ledger bears it out (a tenth of the step). A line is right within the statement of one
of the declared lines. A time or size is right within 5 % of the ledger's; those count that are said. Jobs for which the
catalog has no page are in the sum, and listed by themselves. Only sums are printed, unless every output is asked for.
--jobs takes another file of the same format: a reading is worked on with jobs that may be looked at.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from corpus import share
from simulated.checks import disagreements
from simulated.jobs import FILE, Job, drawn, jobs, run
from simulated.judge import Figure, Judged, measured
from simulated.truth import Truth

from torchtriage.triage import judged as judge

Result = TypeVar("Result")


def judged(job: Job, seed: int | None) -> tuple[Judged, int | None]:
    """JOB's case beside its truth, and the exit code of the watched run."""
    with run(job) as ran:
        truths = ran.truths()
    costs, names = job.costs, memory_kernels(truths)
    if seed is not None:
        costs = drawn(job, truths, seed)
        with run(job, costs, bandwidth=names) as ran:
            truths = ran.truths()
        job = measured(job, truths)
    with run(job, costs, watched=True, bandwidth=names) as ran:
        case = judge(ran.record) if any(ran.record.glob("rank*.jsonl")) else None
        return Judged(job, case, truths), ran.code


def memory_kernels(truths: Iterable[Truth]) -> frozenset[str]:
    """The names of kernels that take most of their time for the device's memory."""
    spent: dict[str, Counter[bool]] = defaultdict(Counter)
    for truth in truths:
        for each in truth.ledger.kernels:
            spent[each.name][truth.is_of_memory(each)] += each.end - each.start
    return frozenset(name for name, found in spent.items() if found[True] > found[False])


def table(rows: list[Judged]) -> Iterator[str]:
    planted = [row for row in rows if not row.job.is_healthy]
    healthy = [row for row in rows if row.job.is_healthy]
    yield from shares(f"{len(planted)} jobs", planted)
    known = [row for row in planted if row.job.page]
    yield from shares(f"{len(known)} of them that a page describes", known)
    yield line("false alarms on healthy jobs", lambda row: bool(row.alarms), healthy)
    yield line("right verdict on healthy jobs", lambda row: row.is_right, [row for row in healthy if row.job.expected])
    yield "figures that are said, within 5 %"
    said = [figure for row in rows for figure in row.figures]
    by_name: dict[str, list[Figure]] = defaultdict(list)
    for figure in said:
        by_name[figure.name].append(figure)
    yield near("  all", said)
    for name, found in sorted(by_name.items()):
        yield near(f"  {name}", found)
    kinds: dict[str, list[Judged]] = defaultdict(list)
    for row in planted:
        kinds[row.job.kind].append(row)
    for kind, found_rows in sorted(kinds.items()):
        mark = "" if any(row.job.page for row in found_rows) else " (no page)"
        yield line(f"{kind}{mark}", lambda row: row.is_right, found_rows)


def shares(title: str, rows: list[Judged]) -> Iterator[str]:
    placed = [row for row in rows if row.job.lines and row.job.page]
    yield title
    yield line("  right: found, and nothing else", lambda row: row.is_right, rows)
    yield line("  found", lambda row: bool(row.found), rows)
    yield line("  something else is said", lambda row: bool(row.false), rows)
    yield line("  the line, of those that have one", lambda row: row.is_placed, placed)
    yield line("  the line, where it is found", lambda row: row.is_placed, [row for row in placed if row.found])


def line(title: str, is_so: Callable[[Judged], bool], rows: list[Judged]) -> str:
    return f"{title:<48} {share(sum(map(is_so, rows)), len(rows))}"


def near(title: str, figures: list[Figure]) -> str:
    return f"{title:<48} {share(sum(each.is_near for each in figures), len(figures))}"


def told(row: Judged, code: int | None) -> str:
    said = ", ".join(sorted(row.shown)) or "nothing"
    mark = ("FALSE" if row.alarms else "quiet") if row.job.is_healthy else ("right" if row.is_right else "WRONG")
    figures = ", ".join(f"{each.name} {each.said:.4g} of {each.true:.4g}" for each in row.figures)
    place = "placed" if row.is_placed else "not placed"
    return f"{row.job.id}: {mark}, {place}, code {code}; {row.job.kind}; said {said}; {figures}"


def hold_truths(chosen: list[Job]) -> int:
    """Prints each job whose ledger says something else than is declared; how many there are."""
    wrong = 0
    for job, found in zip(chosen, at_once(against, chosen), strict=True):
        if found:
            wrong += 1
            print(f"{job.id} ({job.kind}): {'; '.join(found)}", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} jobs are what is declared of them")
    return wrong


def against(job: Job) -> list[str]:
    with run(job) as ran:
        return list(disagreements(job, ran.truths()))


def main() -> int:
    asked = arguments()
    known = jobs(asked.jobs)
    chosen = [job for job in known if (not asked.only or job.id in asked.only) and asked.kind in (None, job.kind)]
    if asked.truth:
        return int(hold_truths(chosen) > 0)
    rows, endings = [], Counter[str]()
    for row, code in at_once(lambda job: judged(job, asked.seed), chosen):
        rows.append(row)
        if odd := unlike(row, code):
            endings[odd] += 1
        if asked.all_output:
            print(told(row, code), flush=True)
    print("\n".join(table(rows)))
    for how, count in endings.items():
        print(f"{count} jobs {how}")
    return 0


def at_once(judge_one: Callable[[Job], Result], chosen: list[Job]) -> Iterator[Result]:
    """In the order of the jobs, one for each core: virtual time does not know how busy the machine is."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(judge_one, chosen)


def unlike(row: Judged, code: int | None) -> str | None:
    """How a job ended, where that is not how it should."""
    if row.case is None:
        return "left no record"
    if code is None:
        return "took too long"
    is_to_fail = any(check.startswith("ends") for check in row.job.checks)
    return "ended otherwise than declared" if bool(code) != is_to_fail else None


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--jobs", type=Path, default=FILE, metavar="FILE", help="other jobs than those held out")
    reader.add_argument("--only", nargs="+", default=(), metavar="ID")
    reader.add_argument("--class", dest="kind", metavar="NAME", help="the jobs of one class, or healthy")
    reader.add_argument("--seed", type=int, metavar="N", help="draws other costs of the device")
    reader.add_argument("--truth", action="store_true", help="holds the declared truth against the ledger")
    reader.add_argument("--all-output", action="store_true", help="also each job's id and what was said")
    return reader.parse_args()


if __name__ == "__main__":
    sys.exit(main())
