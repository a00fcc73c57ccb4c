"""How many of the faults planted in jobs `run` finds, where, and how often it cries in healthy ones; beside peers.

    python bench/faults.py [FILE.jsonl …] [--ranks | --silent] [--only ID…] [--repeat N] [--busy N] [--peers FOLDER]
                           [--all-output]
    python bench/faults.py --install-peers FOLDER

Without files the jobs are the marked scripts of tests/cases/run, or with --ranks those of tests/cases/ranks, which
torchrun starts, or with --silent those of tests/cases/silent: the errors that the authors of TrainCheck collected
(OSDI 2025), 20 in all, as far as a CPU can repeat them. bench/jobs.jsonl is held out: 177 jobs by people who had not
seen the probes, frozen before these were tuned; only its sums are looked at. So is bench/ranks.jsonl: 57 jobs of two
and four ranks. A FILE holds one job a line: {"id", "faults": [slug], "place": {"line", "module", "container", "rank"},
"lines", "also": [slug], "exit", "ranks", "hang", "script"}. Each is run to its end by `torchtriage run`, on one
thread. A faulty job is right when its fault is found and nothing else is said above info (what is in "also" may be); a
healthy one when nothing is. A place is exact when one of the evidences names the line, the module or the container, on
the rank that is named, if one is. With --repeat each job is run so often, and it is counted how many say the same every
time; with --busy so many processes compute beside it. Only sums are printed, unless every output is asked for.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import peers
from corpus import Job, Judged, read, share
from processes import busy, plain, watched

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Place


def judged(job: Job) -> Judged:
    return Judged(job, *watched(job.script, job.ranks, job.hang))


def specialist(job: Job) -> str:
    """The one who knows the planted fault."""
    known = catalog().faults
    named = (known[slug].specialist for slug in job.planted if slug in known)
    return next(named, "a fault that no page describes") if job.planted else "healthy"


def table(rows: list[Judged]) -> Iterator[str]:
    planted = [row for row in rows if row.job.planted]
    healthy = [row for row in rows if not row.job.planted]
    yield line("right, of all", is_right, rows)
    yield from shares("the planted fault", planted)
    yield line("  another fault is said beside it", is_false, planted)
    yield line("false alarms on healthy jobs", is_false, healthy)
    rooms = defaultdict(list)
    for row in planted:
        rooms[specialist(row.job)].append(row)
    for name, found in sorted(rooms.items()):
        yield from shares(name, found)
    odd = Counter(row.ended for row in rows if row.ended)
    yield from (f"{number} jobs {how}" for how, number in odd.most_common())


def shares(title: str, rows: list[Judged]) -> Iterator[str]:
    yield f"{title}, {len(rows)} jobs"
    yield line("  right: found, and nothing else", is_right, rows)
    yield line("  found (recall)", is_found, rows)
    yield line("  found at its exact place", is_placed, [row for row in rows if any(row.job.planted.values())])


def line(title: str, is_so: Callable[[Judged], bool], rows: list[Judged]) -> str:
    return f"{title:<36} {share(sum(map(is_so, rows)), len(rows))}"


def is_found(row: Judged) -> bool:
    return row.found == frozenset(row.job.planted)


def is_right(row: Judged) -> bool:
    return row.is_right


def is_false(row: Judged) -> bool:
    return bool(row.false)


def is_placed(row: Judged) -> bool:
    return row.is_placed


def told(row: Judged) -> str:
    """A job's own line: what was planted, what was said and where."""
    said = ", ".join(sorted(f"{slug} {place}" for slug, place in spoken(row))) or "nothing"
    place = ("placed" if row.is_placed else "elsewhere") if row.job.planted else ""
    words = ("right" if row.is_right else "WRONG", place, row.ended)
    return f"{row.job.id}: {' '.join(filter(None, words))}; planted {', '.join(row.job.planted) or 'none'}; said {said}"


def spoken(row: Judged) -> frozenset[tuple[str, str]]:
    """Every finding's slug with each of its places, without folders."""
    return frozenset((each.fault.slug, short(item.place)) for each in row.findings for item in each.evidence)


def short(place: Place) -> str:
    named = {
        "rank": place.rank or None,
        "line": place.line,
        "module": place.module,
        "container": place.container,
        "step": place.step,
    }
    return " ".join(f"{name} {value}" for name, value in named.items() if value is not None)


def verdicts(row: Judged) -> frozenset[str]:
    return frozenset(each.verdict for each in row.case.verdicts) if row.case else frozenset()


def slugs(row: Judged) -> frozenset[str]:
    return frozenset(slug for slug, _ in spoken(row))


SAMENESS: dict[str, Callable[[Judged], object]] = {
    "findings by slug": slugs,
    "findings by slug and place": spoken,
    "verdicts": verdicts,
    "right or wrong": is_right,
}


def sameness(runs: dict[str, list[Judged]]) -> Iterator[str]:
    """How many jobs say the same every time, and which share of all runs says what their job says most often."""
    number = sum(map(len, runs.values()))
    for name, what in SAMENESS.items():
        counts = [Counter(map(what, rows)) for rows in runs.values()]
        alike = sum(len(count) == 1 for count in counts)
        usual = sum(count.most_common(1)[0][1] for count in counts)
        yield f"  {name:<34} the same every time in {alike} of {len(counts)} jobs; usual in {share(usual, number)}"


def progress(jobs: Iterable[Job], repeat: int, say: Callable[[Judged], None]) -> Iterator[Judged]:
    for job in jobs:
        for _ in range(repeat):
            row = judged(job)
            say(row)
            yield row


def main() -> None:
    asked = arguments()
    if asked.install_peers:
        return peers.install(asked.install_peers)
    jobs = [job for job in read(asked.files, asked.kind) if not asked.only or job.id in asked.only]
    faulty = sum(bool(job.planted) for job in jobs)
    print(f"{len(jobs)} jobs: {faulty} with a planted fault, {len(jobs) - faulty} healthy", flush=True)
    say: Callable[[Judged], None] = (lambda row: print(told(row), flush=True)) if asked.all_output else lambda _: None
    runs: dict[str, list[Judged]] = defaultdict(list)
    ratios: dict[str, float] = {}
    with busy(asked.busy):
        for row in progress(jobs, asked.repeat, say):
            runs[row.job.id].append(row)
            if asked.peers and row.job.id not in ratios:
                ratios[row.job.id] = row.seconds / plain(sys.executable, row.job.script)
    print("\n".join(table([rows[0] for rows in runs.values()])))
    if asked.repeat > 1:
        print(f"{asked.repeat} runs of each job", *sameness(runs), sep="\n")
    if asked.peers:
        first = [rows[0] for rows in runs.values()]
        ours = [peers.Row(row.job, is_found(row), is_false(row), ratios[row.job.id]) for row in first]
        for text in peers.compare(ours, asked.peers):
            print(text, flush=True)
    return None


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("files", nargs="*", type=Path, metavar="FILE.jsonl")
    reader.set_defaults(kind="run")
    reader.add_argument("--ranks", dest="kind", action="store_const", const="ranks", help="the jobs of several ranks")
    reader.add_argument("--silent", dest="kind", action="store_const", const="silent", help="TrainCheck's errors")
    reader.add_argument("--only", nargs="+", default=(), metavar="ID")
    reader.add_argument("--repeat", type=int, default=1, metavar="N")
    reader.add_argument("--busy", type=int, default=0, metavar="N", help="processes that compute beside the jobs")
    reader.add_argument("--peers", type=Path, metavar="FOLDER", help="environments with the peers in them")
    reader.add_argument("--install-peers", type=Path, metavar="FOLDER", help="makes them, with pip, and ends")
    reader.add_argument("--all-output", action="store_true", help="also each job's id and what was said")
    return reader.parse_args()


if __name__ == "__main__":
    main()
