"""What operators and mutants are, which there are of a program, and which are set aside."""

from __future__ import annotations

import hashlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from zlib import crc32

from mutants import operators
from mutants.compose import configure, split
from mutants.source import Project, Site, applied, fault_lines

Finder = Callable[[Project], Iterator[Site]]
PROGRAMS = 3  # in which an operator is planted, at one site of each; which ones and where is decided by hashes
ASIDE = 2  # names whose checksum leaves this rest of three are set aside: a third

# What a training that has been hurt may show, whatever hurt it: said beside the cause it is right, alone it is not.
SYMPTOMS = frozenset({
    "cannot-overfit-one-batch", "checkpoint-not-finite", "dead-units", "gradients-exploding", "gradients-vanishing",
    "initial-loss-off", "loss-at-chance", "loss-below-possible", "loss-diverged", "non-finite-origin", "seed-decides",
})  # fmt: skip
ERROR, FIGURE, REPORT, SPEED, MEMORY, RESUME = "error", "figure", "report", "speed", "memory", "resume"


@dataclass(frozen=True)
class Operator:
    """One way to break a program, after a fault that people have made.

    repeats: where that fault is described. accepts: the slugs that a right diagnosis has, any of them; none where no
    page describes it yet. beside: what may be said with it. shows: how its harm can show; "report" is a validation
    figure that is wrong in either direction, "figure" one that is worse, "resume" a run that was stopped and resumed.
    """

    name: str
    theme: str
    find: Finder
    repeats: str
    accepts: frozenset[str]
    beside: frozenset[str]
    shows: frozenset[str]

    @property
    def is_aside(self) -> bool:
        return is_aside(self.name)


@dataclass(frozen=True)
class Mutant:
    """A program with one fault: its files, and the lines of them where the fault is."""

    program: str
    operator: Operator
    texts: dict[str, str]
    lines: dict[str, list[int]]
    composed: str = ""  # "split", "configure", or nothing

    @property
    def name(self) -> str:
        return f"{self.program}/{self.operator.name}" + (f"+{self.composed}" if self.composed else "")

    @property
    def is_aside(self) -> bool:
        return is_aside(self.program) or self.operator.is_aside


def is_aside(name: str) -> bool:
    """Whether a program or operator is set aside; the rule was fixed before any of them was judged."""
    return crc32(name.encode()) % 3 == ASIDE


def operator(
    repeats: str,
    accepts: tuple[str, ...] = (),
    *,
    beside: tuple[str, ...] = (),
    shows: tuple[str, ...] = (ERROR, FIGURE),
) -> Callable[[Finder], Operator]:
    """Makes the function under it an operator; its name, with dashes, is the operator's."""

    def made(find: Finder) -> Operator:
        name = getattr(find, "__name__", "").replace("_", "-")
        theme = find.__module__.rpartition(".")[2]
        return Operator(name, theme, find, repeats, frozenset(accepts), SYMPTOMS | set(beside), frozenset(shows))

    return made


@cache
def every_operator() -> tuple[Operator, ...]:
    """The operators of all modules of mutants.operators, by theme and name."""
    modules = [import_module(f"{operators.__name__}.{each.name}") for each in pkgutil.iter_modules(operators.__path__)]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, Operator)}
    return tuple(sorted(found, key=lambda each: (each.theme, each.name)))


def mutants(projects: Iterable[Project]) -> dict[str, list[Mutant]]:
    """By program: each operator in the first few programs that have a site for it, in an order of its own."""
    found: dict[str, list[Mutant]] = {project.name: [] for project in projects}
    for each in every_operator():
        planted = 0
        for project in sorted(projects, key=lambda project: _rank(each, project)):
            mutant = plant(each, project) if planted < PROGRAMS else None
            if mutant:
                found[project.name].append(mutant)
                planted += 1
    return found


def _rank(operator: Operator, project: Project) -> float:
    """Random by the names. Programs whose loop is a framework's, where few operators have a site, come earlier."""
    draw = int(digest(operator.name, project.name)[:12], 16) / 16**12
    has_loop = any(".backward(" in source.text for source in project.sources)
    return draw if has_loop else draw / 3


def plant(operator: Operator, project: Project) -> Mutant | None:
    """The operator's mutant of one program; None where it has no site.

    Plain or, by a hash, with the fault in another file or behind a setting, where it can be put there.
    """
    sites = sorted(operator.find(project), key=lambda site: digest(operator.name, project.name, *_key(site)))
    site = next((site for site in sites if _is_whole(project, site)), None)
    if site is None:
        return None
    turn = int(digest("composed", operator.name, project.name)[:8], 16) % 4
    way = {0: split, 1: configure}.get(turn)
    composed = way(project, site, operator.name) if way else None
    if composed is not None and way is not None and parses(_changed(project, composed.texts)):
        return Mutant(project.name, operator, composed.texts, composed.lines, way.__name__)
    texts = applied(project.texts, site.changes)
    return Mutant(project.name, operator, texts, fault_lines(texts, site))


def _key(site: Site) -> Iterator[str]:
    for edit in site.changes:
        yield f"{edit.file}:{edit.start}:{edit.end}:{edit.text}"


def _is_whole(project: Project, site: Site) -> bool:
    """Whether the edits fit together, change something and leave Python."""
    try:
        texts = applied(project.texts, site.changes)
    except ValueError:
        return False
    changed = _changed(project, texts)
    return bool(changed) and parses(changed)


def _changed(project: Project, texts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text != project.texts.get(name)}


def parses(texts: dict[str, str]) -> bool:
    try:
        for name, text in texts.items():
            compile(text, name, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def digest(*parts: str) -> str:
    """A hash of texts, each set apart from the next."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(f"{len(part)}:".encode() + part.encode())
    return whole.hexdigest()
