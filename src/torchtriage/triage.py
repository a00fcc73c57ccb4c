"""The only module that knows every station: it walks a case from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.routing.listen import listen
from torchtriage.routing.order import order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from torchtriage.catalog.load import Topic
    from torchtriage.core.case import Case
    from torchtriage.core.evidence import Outcome
    from torchtriage.core.plan import Route
    from torchtriage.core.query import Query
    from torchtriage.examine.detector import Detector
    from torchtriage.examine.run.launch import Ended, Launch

# Stations other than routing are imported by the function that walks to them: `ask` costs milliseconds as a
# cold process because it loads none of the others (docs/decisions/0004).


def heard(text: str) -> tuple[Query, Route]:
    """The user's words with what was heard in them, and where they lead: the first station."""
    query = listen(text)
    return query, order(query)


def ask(text: str) -> Route:
    """Where a query leads: a Plan, one Question, or a Referral."""
    return heard(text)[1]


def opened(text: str) -> Case:
    """A case that begins with the user's words."""
    from torchtriage.core.case import Case

    return Case(*heard(text))


def explain(name: str) -> Topic:
    """The page of a fault (a Page), or a symptom, verdict or specialist; raises TriageError with the nearest names."""
    from torchtriage.catalog.load import topic

    return topic(name)


def check(paths: Sequence[str | Path], case: Case | None = None) -> Case:
    """Source detectors over the Python files under PATHS; raises TriageError where there is none to be examined."""
    from pathlib import Path

    from msgspec.structs import replace

    from torchtriage.examine.source.files import examine

    examined = examine([Path(path) for path in paths], tuple(detectors("rules")))
    return replace(_concluded(case, examined.outcomes), measurements={"files": examined.files})


def run(launch: Launch, case: Case | None = None) -> tuple[Case, Ended]:
    """Launches a job under the rooms' probes and judges the record that it left, however it ended.

    Raises TriageError only when no job started. A record that cannot be judged is Inconclusive: the job has run,
    and its exit code is its own.
    """
    from torchtriage.core.errors import TriageError
    from torchtriage.core.evidence import Inconclusive
    from torchtriage.examine.run import launch as launching

    ended = launching.launch(launch, probe_files())
    try:
        return judge(launch.folder, case), ended
    except TriageError as error:
        return _concluded(case, [Inconclusive("run", f"{error.where}: {error.what}", error.do)]), ended


def judge(folder: Path, case: Case | None = None) -> Case:
    """Judges the record in a run's folder, as often as one likes, with the pages of today."""
    from msgspec.structs import replace

    from torchtriage.examine.detector import perform
    from torchtriage.examine.run import measure, record

    recorded = record.read(folder)
    outcomes = (*recorded.inconclusive, *perform(tuple(detectors("readings")), recorded))
    return replace(_concluded(case, outcomes), measurements=measure.measurements(recorded))


def detectors(part: str) -> Iterator[Detector]:
    """The detectors that the rooms keep in their modules of one name ("rules", "readings"), room by room."""
    from torchtriage.examine.detector import Detector

    for module in _furniture(part):
        yield from (item for item in vars(module).values() if isinstance(item, Detector))


def probe_files() -> tuple[Path, ...]:
    """The rooms' probes, as files: the job loads them by path, so that nothing of ours shadows its own packages."""
    from pathlib import Path

    from torchtriage.catalog.walk import folders

    return tuple(path for folder in folders() if (path := Path(folder) / "probes.py").exists())


def _furniture(part: str) -> Iterator[Any]:
    import importlib
    import pkgutil
    from importlib.util import find_spec

    from torchtriage import specialists

    for room in pkgutil.iter_modules(specialists.__path__, f"{specialists.__name__}."):
        if find_spec(f"{room.name}.{part}"):
            yield importlib.import_module(f"{room.name}.{part}")


def _concluded(case: Case | None, outcomes: Iterable[Outcome]) -> Case:
    from msgspec.structs import replace

    from torchtriage.catalog.load import catalog
    from torchtriage.core.case import Case
    from torchtriage.diagnose import weigh

    begun, known, seen = case or Case(), catalog(), tuple(outcomes)
    seen += weigh.unsure(seen, known)
    return replace(
        begun,
        outcomes=(*begun.outcomes, *seen),
        findings=(*begun.findings, *weigh.findings(seen, known)),
        verdicts=(*begun.verdicts, *weigh.verdicts(seen, known)),
    )
