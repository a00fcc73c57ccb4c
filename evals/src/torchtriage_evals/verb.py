"""What a verb does: reads the scenarios, runs, reports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from torchtriage import TriageError
from torchtriage_evals import console, models, run, store
from torchtriage_evals.ledger import Price, price
from torchtriage_evals.pack import pack
from torchtriage_evals.report import Report, about, write
from torchtriage_evals.source import Source
from torchtriage_evals.summary import summary
from torchtriage_evals.trial import Arm

NOTHING = 3
RUNS = Path("torchtriage-eval-runs")


def carry_out(verb: str, arms: tuple[Arm, ...], pressures: tuple[str, ...] | None, given: Mapping[str, Any]) -> int:
    """Runs VERB and writes its report; gives the exit code. Raises TriageError for what cannot be run."""
    whole = Source(store.scenarios(), store.labelled(), store.ARTEFACTS)
    kinds = given["kinds"] or _kinds(arms)
    source, wanted = whole.chosen(kinds, given["limit"]), _wanted(verb, arms, pressures, given)
    _affordable(wanted)
    files = pack()
    held = about(wanted, source, files, verb=verb, date=given["date"] or f"{datetime.now(UTC):%Y-%m-%d}")
    with _progress() as told:
        done = run.run(wanted, source, files, told)
    report = Report(about=held, results=summary(done, source))
    write(report, wanted.folder)
    _show(report, wanted.folder, as_json=given["as_json"])
    if done.stopped == run.INTERRUPTED:
        return 128 + signal.SIGINT
    return 0 if any(group.score is not None for group in report.results.groups) else NOTHING


def _kinds(arms: tuple[Arm, ...]) -> tuple[str, ...]:
    """Whether the skill is opened is asked only where it is offered."""
    from torchtriage_evals.legs import ASKED_EVERYWHERE

    return () if Arm.OFFERED in arms else ASKED_EVERYWHERE


def _wanted(
    verb: str, arms: tuple[Arm, ...], pressures: tuple[str, ...] | None, given: Mapping[str, Any]
) -> run.Wanted:
    model, judge = str(given["model"]), given["judge"]
    if judge is None and models.simulated(model):
        judge = f"{models.MOCK}judge"
    named = ((model, given["price"]), (judge, given["judge_price"]))
    prices: dict[str, Price] = {name: price(text) for name, text in named if name and text}
    return run.Wanted(
        model=model,
        judge=judge,
        arms=arms,
        folder=_folder(given["out"], f"{verb}-{model.replace('/', '-')}"),
        pressures=pressures,
        epochs=given["epochs"],
        cost_limit=given["cost_limit"],
        prices=prices,
        base_url=given["base_url"],
    )


def _folder(named: Path | None, name: str) -> Path:
    """An empty folder: nothing is overwritten."""
    if named is not None:
        if named.exists() and (not named.is_dir() or any(named.iterdir())):
            raise TriageError("there is something in it already", str(named), "Name a new or an empty folder.")
        return named
    free = (RUNS / (name if number == 1 else f"{name}-{number}") for number in range(1, 10_000))
    return next(path for path in free if not path.exists())


def _affordable(wanted: run.Wanted) -> None:
    """A limit that no price can reach is no limit."""
    if wanted.cost_limit is None:
        return
    for name, option in ((wanted.model, "--price"), (wanted.judge, "--judge-price")):
        if name and not models.priced(name, wanted.prices):
            do = f"Give its dollars for a million tokens read and written: {option} 3,15"
            raise TriageError(f"the price of {name} is not known, so --cost-limit could not be kept", option, do)


@contextmanager
def _progress() -> Iterator[run.Told]:
    """A bar on a terminal's stderr, and nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    errors = Console(stderr=True)
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("trials", total=None)
        yield lambda planned: bar.update(task, advance=1, total=planned)


def _show(report: Report, folder: Path, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report, order="sorted")).decode() + "\n")
    else:
        from rich.console import Console

        terminal = Console()
        console.show(report, terminal if terminal.is_terminal else Console(width=120))
    sys.stderr.write(f"Written: {folder / 'report.html'}, report.json, trials.jsonl, logs/\n")
