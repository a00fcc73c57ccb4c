"""A file as the program of a training: what happens when it is executed, on either choice at unknown conditions.

A rule looks at each execution by itself, and says in how many of them it has to find something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeAlias, TypeVar

from torchtriage.core.evidence import Edit, Inconclusive, Place, is_test
from torchtriage.examine.detector import CannotSee, Sighting, view
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.callers import EACH_UNSEEN, MOST_UNSEEN, UnseenCaller
from torchtriage.examine.source.execution.conditions import Takes
from torchtriage.examine.source.execution.entries import Entries, is_module
from torchtriage.examine.source.execution.executor import MOST, SECONDS
from torchtriage.examine.source.execution.imports import FILES
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.values import Class, Spot
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.script import Script

_SPOT = re.compile("line ([0-9]+) of «(.*?)»")
"""A spot in a fact."""
_LINES = re.compile(r"\bline (\d+)((?:, line \d+)*) and line (\d+)\b(?! of)")
"""Several of them, all in one file."""
_TRAINS = re.compile(rb"\.backward\(|\bTrainer\b")
"""What calls backward, by itself or for the program."""
TAKES: tuple[Takes, ...] = ("always", "never", "once")
PARTLY = ("once", "else")
"""Those that take some conditions, and others not: what is missing in one of them is missing nowhere else."""
E = TypeVar("E", bound=events.Event)
Mend = Callable[[Script, ast.AST], tuple[Edit, ...]]
Fact: TypeAlias = tuple[Spot, str] | tuple[Spot, str, Mend]
"""Where something is wrong, what, and the edits that put it right, where there are some."""
Facts = Iterator[Fact]
Find = Callable[[Training], Facts]


@dataclass(eq=False)
class Trainings:
    """The executions of one file: a fault counts where each of them that comes to its place has it."""

    script: Script
    runs: tuple[Training, ...]
    is_program: bool = True
    """Whether the file was executed as a program, and not a function of it that nothing in sight calls."""
    others: tuple[Training, ...] = ()
    """The executions in which nothing is trained: with `--fp16`, by apex."""

    def sighting(self, fact: Fact) -> Sighting:
        """The sighting of FACT, in this file, where it may be mended, or in another one of the project."""
        spot = fact[0]
        told = _LINES.sub(_joined, _SPOT.sub(lambda found: self._line(found, spot.path), fact[1]))
        if spot.path == self.script.text.path:
            return self.script.seen(spot.node, told, fact[2](self.script, spot.node) if len(fact) > 2 else ())
        end = getattr(spot.node, "end_lineno", None)
        return Sighting(Place(path=spot.path, line=spot.line, end_line=end, anchor=self._code(spot)), told)

    def _line(self, found: re.Match[str], path: str) -> str:
        """The place that was FOUND in a fact about the file PATH, as its reader looks for it."""
        line, of = found.groups()
        if of != path:
            return f"{PurePath(of).name}:{line}"
        cell, number = self.script.text.spot(int(line)) if of == self.script.text.path else (None, line)
        return f"line {number}" if cell is None else f"line {number} of cell {cell}"

    def _code(self, spot: Spot) -> str | None:
        """The line at SPOT, of another file of the project."""
        files = (each for run in self.runs for each in run.executor.files.values())
        real = next((each.real for each in files if each.path == spot.path), None)
        linked = self.runs[0].executor.links.used.get(real) if real is not None else None
        lines = linked.content.decode(errors="replace").splitlines() if linked is not None else []
        return lines[spot.line - 1].strip() if spot.line <= len(lines) else None


def _joined(found: re.Match[str]) -> str:
    """Several lines as one reads them: lines 3, 4 and 7."""
    first, others, last = found.groups()
    return f"lines {first}{others.replace('line ', '')} and {last}"


def note_unfinished(script: Script) -> Inconclusive | None:
    """How many functions of SCRIPT that nothing in sight calls were not followed to their end."""
    taken = (each for each in script.taken.get(Trainings, ()) if isinstance(each, Trainings))
    seen = [each for each in taken if each.runs[0].executor.caller is not None]
    open_ = sum(not all(run.executor.is_finished for run in each.runs) for each in seen)
    if not open_:
        return None
    return Inconclusive(
        "source/execution",
        f"{open_} of {len(seen)} functions that nothing here calls were not followed to their end: "
        f"one takes more than {EACH_UNSEEN:,} steps, or together they take more than {MOST_UNSEEN:,}",
        "Check the script that trains with them: what it calls is followed by itself.",
    )


@view(Trainings, of=Script)
def trainings(script: Script) -> Iterator[Trainings]:
    links = Links(script.text.path, script.facts, trains=True)
    is_program = _is_program(script)
    runs: list[UnseenCaller] = []
    for takes in TAKES:
        made = UnseenCaller(script.text.path, script.tree, links, takes=takes)
        runs.append(made.execute("__main__" if is_program else "a module"))
        is_open = is_program or any(each.spot.path == script.text.path for each in runs[0].events)
        if not runs[0].decisions or not is_open:  # the others would go the same way
            break
    trained = tuple(
        Training(script, each) for each in runs if each.events_of(events.Backward) or "backward" in each.blind
    )
    if is_program and trained and _may_train(script, links):
        others = (each for each in runs if all(each is not one.executor for one in trained))
        yield Trainings(script, trained, others=tuple(Training(script, each) for each in others))
    else:  # an evaluation, or what a module does when it is imported
        yield Trainings(script, tuple(Training(script, each) for each in runs), is_program=False)
    yield from _entries(script, runs)
    script.links.used.update(links.used)
    script.links.absent += links.absent


def _entries(script: Script, modules: list[UnseenCaller]) -> Iterator[Trainings]:
    """The functions of the file that its program does not come to, each executed by itself."""
    if is_test(script.text.path):
        return
    entries = Entries(script.roles)
    module = copy(modules[0])
    module.entered = set().union(*(each.entered for each in modules))
    ways: dict[tuple[int, int], list[UnseenCaller]] = {}
    for takes in (*TAKES, "else"):
        wanted = {key for key, runs in ways.items() if _shows_more(runs[0], takes)}
        if takes != TAKES[0] and not wanted:
            continue
        module.takes, module.unseen = takes, 0
        for key, made in module.begin(entries, wanted if ways else None):
            ways.setdefault(key, []).append(made)
    for runs in ways.values():
        trained = (Training(script, each) for each in runs)
        yield Trainings(script, tuple(trained), is_program=False)


def _shows_more(first: UnseenCaller, takes: Takes) -> bool:
    """Whether an execution that TAKES its conditions otherwise may go another way than the FIRST one.

    Not where every condition is known, or nothing happens. A model that is tried out is executed once more behind
    `else`, and everything else once more with each condition taken a single time.
    """
    if not first.decisions or not (first.events or first.asks_rank):
        return False
    is_model = isinstance(first.entry, Class) and is_module(first.entry) and first.receiver is None
    return takes in ("never", "else" if is_model else "once")


def _is_program(script: Script) -> bool:
    """Whether the file is run by itself: it asks for that, or trains at its top level or by a call from there.

    A module of a package, which imports its neighbours by a relative name, cannot be run so.
    """
    if b"__main__" in script.text.data:
        return True
    module = script.facts.scopes[0]
    is_of_package = any(name.startswith(".") for name in script.facts.imports)
    acts = any(isinstance(each.statement, ast.Expr) or each.block.kind == "loop" for each in module.calls)
    return _TRAINS.search(script.text.data) is not None and acts and not is_of_package


def _may_train(script: Script, links: Links) -> bool:
    """Whether the file, or one of the project that it imports, calls backward; of large packages few are looked at."""
    if _TRAINS.search(script.text.data):
        return True
    if links.own is None:
        return False
    waiting, seen = [(links.own, tuple(script.facts.imports))], set[Path]()
    while waiting and len(seen) < FILES:
        importer, names = waiting.pop(0)
        for name in names:
            found = links.file(name.removesuffix(".*"), importer)
            if found is None or found[0].path in seen:
                continue
            file = found[0]
            seen.add(file.path)
            if _TRAINS.search(file.content):
                return True
            waiting.append((file.path, file.imports))
    return False


def shown(trainings: Trainings, find: Find, *, throughout: bool = False) -> Iterator[Sighting]:
    """What FIND sees in any execution: that it can happen is enough.

    throughout: conditions that cannot be known have to come out the same each time: what is taken over from a
    checkpoint in a loop over its parts would be taken over for the first one only.
    """
    runs = [each for each in trainings.runs if not throughout or each.executor.takes not in PARTLY]
    found = {fact[0].key: fact for run in runs for fact in find(run)}
    for fact in found.values():
        yield trainings.sighting(fact)


def certain(
    trainings: Trainings, find: Find, *, where_reached: bool = False, among: Callable[[Training], bool] | None = None
) -> Iterator[Sighting]:
    """What FIND sees, with its place, in every execution: whatever the conditions that cannot be known come to.

    where_reached: an execution that does not come to the place counts as if it had seen it: what is done there is
    wrong by itself, and not because something else is missing. among: which executions count: with `--amp` one has a
    scaler, and the other has none.
    """
    counted = [each for each in trainings.runs if among is None or among(each)]
    partly = ("once",) if where_reached else PARTLY
    runs = [each for each in counted if each.executor.takes not in partly] or counted  # --no-cuda
    if not runs:
        return
    if not where_reached and not all(each.executor.is_finished for each in runs):
        if not trainings.is_program:
            return
        raise CannotSee(
            f"the program was not followed to its end: it takes more than {MOST:,} steps or {SECONDS:g} s to execute",
            "Check a script that trains on fewer options, or run it: torchtriage run -- python …",
        )
    found = [{fact[0].key: fact for fact in find(run)} for run in runs]
    reached = [run.reached for run in runs] if where_reached else [set() for _ in runs]
    for key, fact in {key: value for each in reversed(found) for key, value in each.items()}.items():
        may_miss = where_reached and any(key in each for each in reached)
        if all(key in mine or (may_miss and key not in places) for mine, places in zip(found, reached, strict=True)):
            yield trainings.sighting(fact)


def by_default(trainings: Trainings, find: Find, *, where_reached: bool = True) -> Iterator[Sighting]:
    """What FIND sees in every execution, or when the program is started without options.

    where_reached: in every one that comes to the place.
    """
    seen = list(certain(trainings, find, where_reached=where_reached))
    yield from seen
    places = {(each.place.path, each.place.line, each.place.column) for each in seen}
    plain = [each for each in trainings.runs if each.executor.takes == "never" and trainings.is_program]
    found = (trainings.sighting(fact) for run in plain for fact in find(run))
    yield from (each for each in found if (each.place.path, each.place.line, each.place.column) not in places)


def wherever(trainings: Trainings, kind: type[E], say: Callable[[E], str]) -> Iterator[Sighting]:
    """Every event of KIND, wherever an execution comes to it: it is wrong by itself, and SAY says how."""

    def find(training: Training) -> Facts:
        return ((each.spot, say(each)) for each in training.of(kind))

    yield from certain(trainings, find, where_reached=True)
