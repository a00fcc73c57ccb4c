"""Runs agents through Inspect: every leg is a sample of one task, whose trials are written down as they are scored."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

import anyio
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, Model, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from msgspec import Struct

from torchtriage_evals import answer as read
from torchtriage_evals import judging, models
from torchtriage_evals.arms import SKILL, Arms
from torchtriage_evals.judge import Agreement
from torchtriage_evals.ledger import Ledger, LimitReached, Price
from torchtriage_evals.legs import Leg, left_out, legs
from torchtriage_evals.score import Judged, score
from torchtriage_evals.scripted import belongs
from torchtriage_evals.source import Source
from torchtriage_evals.talk import Talk, talk
from torchtriage_evals.trial import Arm, Book, Spent, Trial

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

    from torchtriage_evals.programs.runner import Runner

COST, INTERRUPTED = "the cost limit was reached", "it was interrupted"
AT_ONCE = 8  # samples; under a cost limit 2, so that little is paid after it


class Wanted(Struct, frozen=True, kw_only=True):
    """What a run is to do. pressures: None for calm only, else see pressure.chosen. limit, in dollars, and prices."""

    model: str
    judge: str | None
    arms: tuple[Arm, ...]
    folder: Path
    pressures: tuple[str, ...] | None = None
    epochs: int = 1
    cost_limit: float | None = None
    prices: Mapping[str, Price] = {}
    base_url: str | None = None


class Done(Struct, frozen=True, kw_only=True):
    """What a run has done. stopped: why it ended early, or empty. failed: trials without an answer, by their error."""

    trials: tuple[Trial, ...]
    planned: int
    stopped: str
    failed: dict[str, int]
    left_out: dict[str, int]
    agreement: Agreement | None
    judging: Spent


Told: TypeAlias = Callable[[int], None]


def _nobody(planned: int) -> None:
    """Hears that another of the PLANNED trials has been scored."""


class Run:
    """One run under way: what its solver and its scorer share."""

    def __init__(self, wanted: Wanted, source: Source, files: Mapping[str, str], told: Told) -> None:
        self.wanted, self.source, self.told = wanted, source, told
        self.legs = {leg.name: leg for leg in legs(source, wanted.arms, wanted.pressures)}
        self.agent = models.agent(wanted.model, tuple(self.legs.values()), wanted.base_url)
        if wanted.judge is not None:
            models.judge(wanted.judge, source)  # one that is not there is told before anything is paid
        self.ledger = Ledger(wanted.cost_limit, wanted.prices)
        self.arms, self.book = Arms(files), Book(wanted.folder)
        self.judge: Model | str = judging.NOBODY
        self._runner: Runner | None = None
        self._ran: dict[tuple[str, str], bool] = {}  # what has passed, by program and text
        self._one = anyio.Lock()

    async def judged_program(self, leg: Leg, answer: str) -> Judged | None:
        """Whether the program that ANSWER makes passes its check; None for a leg that runs none."""
        if leg.scenario.kind != "code" or leg.given is None:
            return None
        from torchtriage_evals.programs.program import program
        from torchtriage_evals.programs.runner import Runner

        after = read.program(answer, leg.given.text)
        if after is None:
            return Judged(False)
        async with self._one:
            key = (leg.scenario.program, after)
            if key not in self._ran:
                self._runner = self._runner or Runner()
                check = program(leg.scenario.program).check
                self._ran[key] = (await anyio.to_thread.run_sync(self._runner.judge, after, check)).passed
        return Judged(self._ran[key])

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()


def run(wanted: Wanted, source: Source, files: Mapping[str, str], told: Told = _nobody) -> Done:
    """Does what is WANTED with the scenarios of SOURCE and the skill pack FILES; TOLD hears of each trial."""
    one = Run(wanted, source, files, told)
    agreement, spent = _measure_judge(one)
    stopped, failed = (COST, {}) if one.ledger.ended else _evaluate(one)
    return Done(
        trials=one.book.trials(),
        planned=len(one.legs) * wanted.epochs,
        stopped=stopped,
        failed=failed,
        left_out=left_out(source, wanted.arms),
        agreement=agreement,
        judging=spent,
    )


def _measure_judge(one: Run) -> tuple[Agreement | None, Spent]:
    """Sets the judge, if it was named and is as good as it has to be."""
    name, labelled = one.wanted.judge, one.source.labelled
    if name is None or not any(not p.pattern for leg in one.legs.values() for p in leg.scenario.points):
        return None, Spent()
    try:
        found = anyio.run(judging.measured, models.judge(name, one.source), labelled, one.ledger)
    except* LimitReached:
        found = None
    if found is None:
        return None, Spent()
    one.judge = models.judge(name, one.source) if found[0].accepted else judging.REFUSED
    return found


def _evaluate(one: Run) -> tuple[str, dict[str, int]]:
    """Why it stopped early, or nothing; and the errors of trials that have no answer."""
    wanted = one.wanted
    samples = [Sample(id=name, input=leg.prompt) for name, leg in one.legs.items()]
    if not samples:
        return "", {}
    task = Task(
        dataset=MemoryDataset(samples, name="scenarios"),
        solver=_agent(one),
        scorer=_marks(one),
        name="torchtriage-eval",
    )
    logging.getLogger("inspect_ai").setLevel(logging.ERROR)
    try:
        logs = inspect_eval(
            task,
            model=one.agent,
            epochs=wanted.epochs,
            fail_on_error=False,
            max_samples=2 if wanted.cost_limit is not None else AT_ONCE,
            log_dir=str(wanted.folder / "logs"),
            log_level="error",
            display="none",
        )
    except KeyboardInterrupt:
        return INTERRUPTED, {}
    finally:
        one.close()
    return _ended(one, logs)


def _ended(one: Run, logs: list[EvalLog]) -> tuple[str, dict[str, int]]:
    interrupted = any(log.status == "cancelled" for log in logs) or not logs
    errors = [_last(sample.error.message) for log in logs for sample in log.samples or () if sample.error]
    errors += [_last(log.error.message) for log in logs if log.error]
    stopped = COST if one.ledger.ended else INTERRUPTED if interrupted else ""
    return stopped, {each: errors.count(each) for each in sorted(set(errors))}


def _last(message: str) -> str:
    lines = message.strip().splitlines()
    return lines[-1][:300] if lines else "an error without a message"


@solver
def _agent(one: Run) -> Solver:
    """The agent in its arm."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001 - Inspect's signature
        leg = one.legs[str(state.sample_id)]
        with TemporaryDirectory(prefix="query-") as folder:
            if leg.given:
                Path(folder, leg.given.name).write_text(leg.given.text, encoding="utf-8")
            async with one.arms.context(leg.arm, Path(folder)) as context:
                state.messages = [ChatMessageSystem(content=context.system), *state.messages]
                try:
                    done = await talk(get_model(), state.messages, context, one.ledger)
                except LimitReached:
                    return state
        state.output.completion = done.answer
        state.store.set("talk", done)
        state.store.set("opened", bool(context.opened))
        return state

    return solve


@scorer(metrics=[mean()])
def _marks(one: Run) -> Scorer:
    """What the answer is worth; a trial that the cost limit has cut short is no trial."""

    async def mark(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's signature
        leg, done = one.legs[str(state.sample_id)], state.store.get("talk")
        if done is None:
            return Score(value=nan, explanation=COST)
        try:
            trial = await _trial(one, leg, state, done)
        except LimitReached:
            return Score(value=nan, explanation=COST)
        one.book.write(trial)
        one.told(len(one.legs) * one.wanted.epochs)
        return Score(value=nan if trial.score is None else trial.score, answer=done.answer, metadata=dict(trial.parts))

    return mark


async def _trial(one: Run, leg: Leg, state: TaskState, done: Talk) -> Trial:
    scenario = leg.scenario
    made, cost = await judging.points(scenario, scenario.query, done.answer, one.judge, one.ledger)
    ran = await one.judged_program(leg, done.answer)
    marks = score(scenario, done.answer, made, ran, leg.given.text if leg.given else "")
    opened = bool(state.store.get("opened")) if leg.arm is Arm.OFFERED else None
    parts, value = marks.parts, marks.value
    if scenario.kind == "trigger":
        value = float(opened is belongs(scenario))
        parts = {SKILL: value}
    return Trial(
        scenario=scenario.id,
        family=scenario.family,
        kind=scenario.kind,
        arm=leg.arm,
        pressure=leg.pressure,
        epoch=state.epoch,
        score=value,
        parts=parts,
        unscored=marks.unscored,
        opened=opened,
        calls=done.calls,
        stopped=done.stopped,
        agent=done.spent,
        judge=cost,
    )
