"""Runs healthy programs and mutants over seeds until it is known which mutants hurt; appends to harm.jsonl."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from mutants import harm, runner
from mutants.catalogue import RESUME, SPEED, Mutant
from mutants.harm import Measured
from mutants.programs import Program, write
from mutants.store import Control, Line, Store, answer, control

LIMIT = 120.0  # CPU seconds of a healthy program


def measure(program: Program, own: Iterable[Mutant], store: Store, torch: str) -> Iterator[str]:
    """A line of progress for each mutant of PROGRAM; those that are stored with their key are not run again."""
    _prepare(program)
    own = list(own)
    is_resumed = any(RESUME in mutant.operator.shows for mutant in own)
    _measure_healthy(program, store, torch, is_resumed)
    healthy = control(store, program)
    if healthy is None or any(run.code for run in healthy.runs):
        yield f"{program.name}: the healthy program fails; its mutants are left out"
        return
    wrong = [healthy.bad(frozenset({each})) for each in ("report", "speed", "memory", "resume")]
    yield f"{program.name}: of {len(healthy.runs)} healthy runs bad by report, speed, memory, resume: {wrong}"
    yield f"{program.name}: {healthy.limits}"
    for mutant in own:
        key = program.key(texts_of(program, mutant), torch)
        line = store.get(mutant.name, key)
        if line is None or answer(line.runs, mutant, healthy).hurts is None:
            began = time.monotonic()
            line = Line(key, mutant.name, torch, tuple(_runs(program, mutant, healthy)))
            store.add(line)
            found = answer(line.runs, mutant, healthy)
            took = time.monotonic() - began
            yield f"{mutant.name}: hurts {found.hurts}, {found.harm}, {found.bad} of {found.done}, {took:.0f} s"


def _prepare(program: Program) -> None:
    """Imports what the healthy program imports: torch alone brings some seconds of it in the first step."""
    runner.prepare(*program.frameworks)
    with TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        write(program.texts, folder)
        runner.run(folder, program.arguments(0, "out"), LIMIT, runner.imports(folder / "modules.txt"))
        own = {path.split("/")[0].removesuffix(".py") for path in program.texts}
        names = (folder / "modules.txt").read_text(encoding="utf-8").splitlines()
    runner.prepare(*(each for each in names if each.split(".")[0] not in {*own, "__main__", "__mp_main__"}))


def texts_of(program: Program, mutant: Mutant) -> dict[str, str]:
    """All files of a mutant: its Python, and the program's other files as they are."""
    return {**program.texts, **mutant.texts}


def _measure_healthy(program: Program, store: Store, torch: str, is_resumed: bool) -> None:
    key = program.key(program.texts, torch)
    known = store.get(f"{program.name}/healthy", key)
    if known is None or (is_resumed and program.resume and all(run.resumed is None for run in known.runs)):
        seeds = (*harm.CONTROL, *harm.CALIBRATION)
        runs = tuple(one(program, program.texts, seed, LIMIT) for seed in seeds)
        twice = (*harm.SEEDS, *harm.CALIBRATION[:2]) if is_resumed else ()  # this takes as long again
        runs = tuple(_resumed(program, program.texts, run.seed, run) if run.seed in twice else run for run in runs)
        store.add(Line(key, f"{program.name}/healthy", torch, runs))
    if store.get(f"{program.name}/untrained", key) is None:
        runs = tuple(one(program, program.texts, seed, LIMIT, runner.without_learning) for seed in harm.UNTRAINED)
        store.add(Line(key, f"{program.name}/untrained", torch, runs))


def _runs(program: Program, mutant: Mutant, healthy: Control) -> Iterator[Measured]:
    """Seed after seed, until the others could not change the answer."""
    limit = 10 * healthy.limits.seconds / harm.SLOWER
    texts, done = texts_of(program, mutant), []
    shows = mutant.operator.shows
    for seed in harm.SEEDS:
        run = one(program, texts, seed, limit)
        if SPEED in shows and harm.bad(run, healthy.limits, frozenset({SPEED})):
            run = _timed_beside(program, run)
        if RESUME in shows and not run.code:
            run = _resumed(program, texts, seed, run)
        done.append(run)
        yield run
        if answer(done, mutant, healthy).hurts is not None:
            return


def one(
    program: Program, texts: dict[str, str], seed: int, limit: float, change: runner.Change | None = None
) -> Measured:
    with TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        write(texts, folder)
        ran = runner.run(folder, program.arguments(seed, "out"), limit, change)
        return Measured(seed, ran.code, program.loss(ran.output), ran.seconds, ran.memory)


def _timed_beside(program: Program, run: Measured) -> Measured:
    """With the time of a healthy run made now: a machine may be slower than when the limits were set."""
    healthy = one(program, program.texts, run.seed, LIMIT)
    return Measured(run.seed, run.code, run.figure, run.seconds, run.memory, healthy.seconds)


def _resumed(program: Program, texts: dict[str, str], seed: int, run: Measured) -> Measured:
    """With what a run ends with that is stopped after half of its steps, and taken up."""
    if not program.resume:
        return run
    with TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        write(texts, folder)
        runner.run(folder, program.arguments(seed, "out"), LIMIT, runner.interrupted(program.steps // 2))
        ran = runner.run(folder, program.arguments(seed, "out", *program.resume), LIMIT)
        return Measured(run.seed, run.code, run.figure, run.seconds, run.memory, run.beside,
                        program.loss(ran.output), ran.code)  # fmt: skip


def ordered(programs: Iterable[Program]) -> list[Program]:
    """Those without frameworks first: what has been imported stays, and is in the memory of all that come later."""
    return sorted(programs, key=lambda each: (len(each.frameworks), each.name))
