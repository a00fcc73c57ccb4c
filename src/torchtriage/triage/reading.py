"""What a job left behind, of several kinds at once, becomes one case: each kind is read, then judged by the rooms."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.end import End
from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Inconclusive, Outcome
from torchtriage.examine.artefact.engines import Engine, ready
from torchtriage.examine.artefact.kinds import Artefact, found
from torchtriage.examine.artefact.opened import close_archives
from torchtriage.examine.detector import perform
from torchtriage.triage import begun, concluded, detectors, judge
from torchtriage.triage.ending import led

_HOME = "torchtriage.examine.artefact"


def read(
    paths: Sequence[str | Path], case: Case | None = None, engine: Engine | None = None, *, verify: bool = False
) -> Case:
    """As triage.read."""
    try:
        return _case(paths, case, ready(engine or Engine()), verify)
    finally:
        close_archives()


def _case(paths: Sequence[str | Path], case: Case | None, engine: Engine, verify: bool) -> Case:
    artefacts, unseen = found([str(path) for path in paths])
    runs = [each for each in artefacts if each.kind == "run"]
    judged = _run(runs, case) if runs else case or Case()
    outcomes: list[Outcome] = [*unseen, *_further(runs)]
    measurements, drawn = dict(judged.measurements), dict[str, Any]()
    given: dict[str, dict[str, Any]] = {
        "logs": {"decode": _decoded}, "trace": {"engine": engine}, "checkpoint": {"verify": verify},
    }  # fmt: skip
    end: End | None = None
    for artefact in artefacts:
        if artefact.kind != "run":
            noun, seen, figures, series = _read(artefact, given.get(artefact.kind, {}))
            outcomes += seen
            end = end or getattr(noun, "end", None)
            measurements |= {artefact.kind: figures} if figures else {}
            drawn = {**series, **drawn}
    if not outcomes and runs:
        return judged
    whole = replace(concluded(judged, outcomes), measurements={**_drawn(measurements), **drawn, **measurements})
    return led(whole, end) if "end" not in measurements else whole


def _run(runs: Sequence[Artefact], case: Case | None) -> Case:
    """The first run, with the words with which it began heard anew: the commands of a plan are never taken from it."""
    folder = Path(runs[0].paths[0])
    return judge(folder, case if case is not None else _begun(folder))


def _begun(folder: Path) -> Case:
    with suppress(TriageError):  # without its case the record is as good
        query = Case.load(folder / "case.json").query
        return begun(query.text) if query is not None else Case()
    return Case()


def _further(runs: Sequence[Artefact]) -> list[Inconclusive]:
    """A case is about one job."""
    first = runs[0].paths[0] if runs else ""
    return [
        Inconclusive(
            "read",
            f"{each.paths[0]}: left out, since a case is about one run, here {first}",
            "Read it by itself; `torchtriage compare` sets two runs side by side.",
        )
        for each in runs[1:]
    ]


def _read(artefact: Artefact, given: dict[str, Any]) -> tuple[Any, list[Outcome], dict[str, Any], dict[str, Any]]:
    """The noun of one kind, what it shows, its figures, and those of them that reports draw as they do a run's.

    GIVEN: what its reader takes beside the paths.
    """
    home = f"{_HOME}.{artefact.kind}"
    if find_spec(home) is None:
        why = f"{artefact.paths[0]}: files of the kind {artefact.kind} are not read in this version"
        return None, [Inconclusive(artefact.kind, why, "Update.")], {}, {}
    kind: Any = import_module(home)
    try:
        noun = kind.read(artefact.paths, **given)
        outcomes = [*noun.inconclusive, *perform(tuple(detectors("readings", home)), noun)]
        drawn = kind.as_run(noun) if hasattr(kind, "as_run") else {}
        return noun, outcomes, kind.measurements(noun), drawn
    except TriageError:  # the engine that was asked for cannot be had
        raise
    except Exception as error:  # noqa: BLE001 - as of a detector: told, and no other kind's findings are lost
        where = ", ".join(artefact.paths[:3])
        why = f"{where}: reading failed: {error!r}"[:500]
        return None, [Inconclusive(artefact.kind, why, "Report it with the file; it is torchtriage's fault.")], {}, {}


def _drawn(measurements: dict[str, Any]) -> dict[str, Any]:
    """The series that reports draw, from curves where there are some, else from logs; their steps, or their number."""
    trainings = measurements.get("curves", {}).get("trainings") or [{}]
    logged = [[number if step is None else step, value] for number, (step, value) in
              enumerate(measurements.get("logs", {}).get("loss", ()))]  # fmt: skip
    known = {name: trainings[0].get(name) for name in ("loss", "grad_norm", "scale")}
    known["loss"] = known["loss"] or logged
    return {name: series for name, series in known.items() if series}


def _decoded(text: str) -> Any:
    from torchtriage.triage.messages import decoded

    return decoded(text)
