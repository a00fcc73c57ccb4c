"""Mutants of real programs; README.md beside this file says what the verbs are for.

list                 operators, programs, and how many mutants there are
harm                 runs what harm.jsonl does not know yet, and appends to it
judge                what torchtriage says of the mutants that hurt and of healthy programs, in tables
show NAME…           the diff of open mutants, how they hurt, and what --out has of them
compare A B          which answers differ between two files of judge --out
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from difflib import unified_diff
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from mutants import judge, tables
from mutants.catalogue import Mutant, digest, every_operator, is_aside, mutants
from mutants.judge import CHECK, EXPERIMENT, RUN, Case, Heard
from mutants.measure import measure, ordered
from mutants.programs import Program, read_all
from mutants.store import FILE, Store, answer, control
from mutants.tables import Row

TOOLS = {CHECK: {CHECK}, RUN: {RUN}, "both": {CHECK, RUN}, EXPERIMENT: {EXPERIMENT}, "all": {CHECK, RUN, EXPERIMENT}}
HEALTHY = (0, 1, 2)  # the seeds with which healthy programs are judged


def main() -> None:
    asked = arguments()
    {"list": list_, "harm": harm_, "judge": judge_, "show": show, "compare": compare}[asked.verb](asked)


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    reader.add_argument("verb", choices=["list", "harm", "judge", "show", "compare"])
    reader.add_argument("names", nargs="*", metavar="NAME")
    reader.add_argument("--only", nargs="+", default=(), metavar="NAME", help="programs, operators, PROGRAM/OPERATOR")
    reader.add_argument("--public", type=Path, metavar="FOLDER", help="programs with a program.toml, elsewhere")
    reader.add_argument("--store", type=Path, default=FILE, metavar="FILE", help="default: harm.jsonl beside this")
    reader.add_argument("--sample", type=int, metavar="N", help="judge: so many mutants, the same in every run")
    reader.add_argument(
        "--aside", action="store_true", help="judge: also those set aside, whose sums alone are printed"
    )
    reader.add_argument(
        "--with", dest="tool", choices=TOOLS, default="both", help="judge: by what; both: check and run"
    )
    reader.add_argument("--programs", action="store_true", help="judge: also by program")
    reader.add_argument("--operators", action="store_true", help="judge: also by operator")
    reader.add_argument(
        "--out", type=Path, metavar="FILE", help="judge: keeps what was said; what it has is not redone"
    )
    return reader.parse_args()


def population(asked: argparse.Namespace) -> list[tuple[Program, list[Mutant]]]:
    """All programs with their mutants that are asked for; those without frameworks first."""
    found = ordered(read_all(asked.public))
    planted = mutants([each.project for each in found])
    named = {name.split("/")[0] for name in asked.only} & {each.name for each in found}
    return [(each, [mutant for mutant in planted[each.name] if _is_wanted(mutant, asked.only)])
            for each in found if not named or each.name in named]  # fmt: skip


def _is_wanted(mutant: Mutant, names: list[str]) -> bool:
    plain = f"{mutant.program}/{mutant.operator.name}"
    return not names or not {mutant.program, mutant.operator.name, plain, mutant.name}.isdisjoint(names)


def list_(asked: argparse.Namespace) -> None:
    planted = population(asked)
    found = [mutant for _, own in planted for mutant in own]
    names = {"program": [each.name for each, _ in planted], "operator": [each.name for each in every_operator()]}
    counts = {"program": Counter(each.program for each in found),
              "operator": Counter(each.operator.name for each in found)}  # fmt: skip
    for title, own in names.items():
        print(f"{title:<34} mutants")
        print("\n".join(f"{name:<34} {counts[title][name]:4d}{'  aside' if is_aside(name) else ''}" for name in own))
    ways = Counter(each.composed for each in found)
    print(f"{len(every_operator())} operators, of which {len(counts['operator'])} have a site; {len(planted)} programs")
    print(f"{len(found)} mutants: {ways['split']} split, {ways['configure']} configured, "
          f"{sum(each.is_aside for each in found)} set aside")  # fmt: skip


def harm_(asked: argparse.Namespace) -> None:
    store, torch = Store(asked.store), version("torch")
    for program, own in population(asked):
        for text in measure(program, own, store, torch):
            print(text, flush=True)
    store.tidy()


def harmful(asked: argparse.Namespace) -> Iterator[tuple[Program, Mutant, str]]:
    """The mutants that hurt, by how; those set aside only where they are asked for."""
    store = Store(asked.store)
    for program, own in population(asked):
        healthy = control(store, program)
        for mutant in own if healthy else ():
            line = store.lines.get(mutant.name)
            found = answer(line.runs, mutant, healthy) if line and healthy else None
            if found and found.hurts and (asked.aside or not mutant.is_aside):
                yield program, mutant, found.harm


def judge_(asked: argparse.Namespace) -> None:
    torch, found = version("torch"), list(harmful(asked))
    if asked.sample:
        found = sorted(found, key=lambda each: digest("sample", each[1].name))[: asked.sample]
    programs = {program.name: program for program, _ in population(asked)}
    healthy = [judge.of_healthy(each, seed, torch) for seed in HEALTHY for each in programs.values()]
    if asked.sample:
        healthy = sorted(healthy, key=lambda each: digest("sample", each.name))[: asked.sample // 3]
    cases = [judge.of_mutant(program, mutant, harm, torch) for program, mutant, harm in found]
    heard = hear([*cases, *healthy], asked)
    rows = [Row(mutant, harm, heard[mutant.name]) for _, mutant, harm in found]
    print("\n".join(report(rows, [heard[each.name] for each in healthy], asked)))


def hear(cases: list[Case], asked: argparse.Namespace) -> dict[str, Heard]:
    """What --out has not yet of the same files by the same tools is judged now, and appended to it."""
    known = judge.read(asked.out) if asked.out and asked.out.exists() else {}
    found = {each.name: known[each.name] for each in cases if each.name in known and known[each.name].key == each.key}
    tools = frozenset(TOOLS[asked.tool])
    missing = [
        (each, before)
        for each in cases
        if not tools <= {*(before := found.get(each.name, Heard(each.name, each.key))).tools}
    ]
    for number, heard in enumerate(judge.judge(missing, tools), start=1):
        found[heard.name] = heard
        if asked.out:
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(judge.written(heard) + "\n")
        print(f"\r{number} of {len(missing)} judged", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def report(rows: list[Row], healthy: list[Heard], asked: argparse.Namespace) -> Iterator[str]:
    shown, hidden = [row for row in rows if not row.mutant.is_aside], [row for row in rows if row.mutant.is_aside]
    yield from tables.summary(shown, healthy, "open")
    yield from tables.tried(shown)
    yield from tables.alarms(each for each in healthy if not is_aside(each.name.split("/")[0]))
    if asked.aside:
        yield ""
        yield from tables.summary(hidden, (), "set aside")
        yield from tables.tried(hidden)
    more = [name for name in ("program", "operator") if getattr(asked, f"{name}s")]
    yield from tables.tables(shown, ["class of harm", "theme", "composed", *more])


def show(asked: argparse.Namespace) -> None:
    asked.only, store = asked.names, Store(asked.store)
    known = judge.read(asked.out) if asked.out and asked.out.exists() else {}
    for program, own in population(asked):
        healthy = control(store, program)
        for mutant in own:
            if mutant.is_aside:
                print(f"{mutant.name}: set aside, looked at in sums only")
                continue
            print(mutant.name, difference(program, mutant), sep="\n")
            print(f"fault at {mutant.lines}; accepts {', '.join(sorted(mutant.operator.accepts)) or 'nothing yet'}")
            line = store.lines.get(mutant.name)
            if healthy and line:
                print(answer(line.runs, mutant, healthy), *line.runs, sep="\n")
            print(known.get(mutant.name, "not judged"))


def difference(program: Program, mutant: Mutant) -> str:
    old, new = program.project.texts, mutant.texts
    files = ((file, old.get(file, "").splitlines(), new[file].splitlines()) for file in sorted(new))
    diffs = (unified_diff(before, after, f"a/{file}", f"b/{file}", lineterm="", n=2) for file, before, after in files)
    return "\n".join(chain.from_iterable(diffs))


def compare(asked: argparse.Namespace) -> None:
    before, after = (judge.read(Path(name)) for name in asked.names)
    asked.aside = True
    found = list(harmful(asked))
    rows = [{mutant.name: Row(mutant, harm, heard[mutant.name]) for _, mutant, harm in found if mutant.name in heard}
            for heard in (before, after)]  # fmt: skip
    print("\n".join(tables.changes(*rows)))
