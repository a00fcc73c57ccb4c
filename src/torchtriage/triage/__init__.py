"""The only package that knows every station: it walks a case from one to the next."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from torchtriage.catalog.load import Topic
    from torchtriage.core.case import Case
    from torchtriage.core.evidence import Outcome
    from torchtriage.core.finding import Finding
    from torchtriage.core.plan import Route, Step
    from torchtriage.core.query import Query
    from torchtriage.diagnose.compare import Comparison
    from torchtriage.examine.artefact.engines import Engine
    from torchtriage.examine.detector import Detector
    from torchtriage.examine.run.launcher.launch import Ended, Launch
    from torchtriage.examine.source.edits import Mended
    from torchtriage.examine.source.files import Means
    from torchtriage.examine.source.seen import Memory

_LOGS = "torchtriage.examine.artefact.logs"

# Stations are imported by the function that walks to them: `ask` and `check` cost milliseconds as a cold process
# because they load none of the others (docs/decisions/0004).


def heard(text: str, sources: Sequence[str | Path] = ()) -> tuple[Query, Route]:
    """The user's words with what was heard in them, and where they lead: the first station.

    SOURCES, files or folders, turn what a message numbers into names; they are read, never run. Raises TriageError
    for one that is missing or is no Python.
    """
    from torchtriage.routing.listen import listen
    from torchtriage.routing.order import order
    from torchtriage.triage.messages import worked_out

    query = worked_out(listen(text), sources)
    return query, order(query)


def ask(text: str) -> Route:
    """Where a query leads: a Plan, one Question, or a Referral."""
    return heard(text)[1]


def begun(text: str) -> Case:
    """A case that begins with the user's words."""
    from torchtriage.core.case import Case

    return Case(*heard(text))


def explain(name: str) -> Topic:
    """The page of a fault (a Page), or a symptom, verdict or specialist; raises TriageError with the nearest names."""
    from torchtriage.catalog.load import topic

    return topic(name)


def check(paths: Sequence[str | Path], case: Case | None = None, means: Means | None = None) -> Case:
    """Source detectors over the Python files and notebooks under PATHS.

    Raises TriageError where there is none to be examined. MEANS: where to remember, how many processes, what stdin is.
    """
    from msgspec.structs import replace

    from torchtriage.examine.source.files import examine, named

    examined = examine([named(path) for path in paths], tuple(detectors("rules")), means)
    measurements = {"files": examined.files, "silenced": examined.silenced}
    return replace(concluded(case, examined.outcomes), measurements=measurements)


def mend(case: Case, wanted: Callable[[Finding], bool], contents: Callable[[str], bytes], unsafe: bool) -> list[Mended]:
    """The files of CASE with the edits of its findings, as far as they keep their word; nothing is written.

    WANTED: which findings count, those that an edit might bring among them. CONTENTS: the bytes of a file.
    """
    from torchtriage.catalog.load import catalog
    from torchtriage.core.evidence import Observed
    from torchtriage.diagnose import weigh
    from torchtriage.examine.source.edits import mended
    from torchtriage.examine.source.seen import look

    rules = tuple(detectors("rules"))

    def judge(path: str, data: bytes) -> list[Finding] | None:
        seen = look(path, data, rules)
        if not seen.is_read:
            return None
        found = weigh.findings((Observed("source", (item,)) for item in seen.evidence), catalog())
        return [finding for finding in found if wanted(finding)]

    edited = {item.place.path for finding in case.findings for item in finding.evidence if item.edits}
    paths = sorted(path for path in edited if path is not None)
    return [mended(path, contents(path), partial(judge, path), unsafe=unsafe) for path in paths]


def memory() -> Memory:
    """Where `check` remembers what it saw in a file: forgotten as soon as any code that decides it has changed."""
    from pathlib import Path

    from torchtriage.examine.source.seen import Memory

    home = Path(__file__).parents[1]
    parts = ("core/*.py", "examine/**/*.py", "examine/**/*.toml", "specialists/**/*.py")
    return Memory(path for part in parts for path in home.glob(part))


def run(launch: Launch, case: Case | None = None, stands: Callable[[Case], None] | None = None) -> tuple[Case, Ended]:
    """Launches a job under the rooms' probes and judges the record that it left, however it ended.

    STANDS is told what the record shows so far, each time that all ranks have come to stand still.

    Raises TriageError only when no job started, as with a baseline that tells nothing. A record that cannot be judged
    is Inconclusive: the job has run, and its exit code is its own. So is a job of several launchers for all but the
    one that has rank 0.
    """
    from dataclasses import replace

    from torchtriage.examine.run.launcher import launch as launching
    from torchtriage.examine.run.measures import scaling

    baseline = scaling.noted(launch.baseline) if launch.baseline is not None else None

    def standing() -> None:
        if stands is not None:
            stands(judged(launch.folder, case))

    ended = launching.launch(replace(launch, focus=suspected(case)), probes(), standing)
    if not ended.leads:
        return unwatched(case, "the launcher of rank 0 judges the whole job"), ended
    if baseline is not None:
        scaling.keep(baseline, launch.folder)
    return judged(launch.folder, case), ended


def suspected(case: Case | None) -> tuple[str, ...]:
    """The rooms that the plan of CASE goes to, or whose faults it wants ruled out; none where there is no plan."""
    from torchtriage.catalog.load import catalog
    from torchtriage.core.plan import Plan

    if case is None or not isinstance(case.route, Plan):
        return ()
    faults = catalog().faults
    homes = {step.specialist for step in case.route.steps}
    homes |= {faults[slug].specialist for step in case.route.steps for slug in step.rule_out if slug in faults}
    return tuple(sorted(home.replace("-", "_") for home in homes))


def judged(folder: Path, case: Case | None = None) -> Case:
    """`judge`, and Inconclusive where it raises TriageError: the job has run, whatever became of its record."""
    from torchtriage.core.errors import TriageError
    from torchtriage.core.evidence import Inconclusive

    try:
        return judge(folder, case)
    except TriageError as error:
        return concluded(case, [Inconclusive("run", f"{error.where}: {error.what}", error.do)])


def unwatched(case: Case | None, why: str) -> Case:
    """CASE after a block of a job that was not watched, which is Inconclusive."""
    from torchtriage.core.evidence import Inconclusive

    return concluded(case, [Inconclusive("run", why, "Read the case of the one that watches.")])


def judge(folder: Path, case: Case | None = None) -> Case:
    """Judges the record in a run's folder, as often as one likes, with the pages of today."""
    from msgspec.structs import replace

    from torchtriage.examine.detector import perform
    from torchtriage.examine.run.measures import figures as measure
    from torchtriage.examine.run.reader import load
    from torchtriage.triage.ending import ending, led

    recorded = load.read(folder)
    said, end = ending(recorded)
    outcomes = (*recorded.inconclusive, *perform(tuple(detectors("readings")), recorded), *said)
    return led(replace(concluded(case, outcomes), measurements=measure.measurements(recorded)), end)


def read(
    paths: Sequence[str | Path],
    case: Case | None = None,
    engine: str | Engine = "auto",
    address: str | None = None,
    *,
    verify: bool = False,
) -> Case:
    """What a job left behind, of whatever kinds: files, folders of ranks, run folders, fsspec URLs.

    What a path is is told from its content. ENGINE: where traces are summed up, "one" (this process), "local" (the
    cores of this machine), "ray" (a cluster at ADDRESS, else a Ray of this machine), or "auto": local where large
    files are worth it. The answer is the same. VERIFY: all numbers of checkpoints are read, held against their
    checksums and looked at for NaN. Raises TriageError where a path is not there, or none of them can be told, or the
    engine cannot be had.
    """
    from torchtriage.examine.artefact.engines import Engine
    from torchtriage.triage.reading import read as reading

    return reading(paths, case, Engine(engine, address) if isinstance(engine, str) else engine, verify=verify)


def compare(before: Case, after: Case) -> Comparison:
    """What became of the findings of BEFORE once something was changed, and of the time and memory of a step."""
    from torchtriage.diagnose import compare as comparing

    return comparing.compare(before, after)


def sides(before: str, after: str) -> tuple[Case, Case]:
    """The two cases of a comparison: each a case.json, the folder of a run, or what `read` takes, which is read.

    Raises TriageError where one is not there, and where the two are not of one kind.
    """
    from torchtriage.triage.comparing import sides as both

    return both(before, after)


def detectors(part: str, naming: str = "") -> Iterator[Detector]:
    """The detectors that the rooms keep in their modules of one name ("rules", "readings"), room by room.

    NAMING: only of modules whose source names that; a cold `read` loads none that looks at another kind of artefact.
    Last come those that messages alone make, one for each page with a sign log/<its slug> and no function in a room.
    """
    from torchtriage.examine.detector import Detector

    names = set()
    for module in _furniture(part, naming):
        own = (item for item in vars(module).values() if isinstance(item, Detector))
        for item in own:
            if item.look.__module__ == module.__name__:
                names.add(item.name)
                yield item
    if part == "readings" and naming in ("", _LOGS):
        from torchtriage.catalog.load import catalog
        from torchtriage.examine.artefact.logs import messages

        yield from messages.detectors(catalog().faults.values(), names)


def probes(part: str = "probes") -> tuple[Path, ...]:
    """The rooms' folders of probes, or of another PART that lies inside a job.

    It loads them by path, so that nothing of ours shadows its own packages.
    """
    from pathlib import Path

    from torchtriage.catalog.walk import folders

    return tuple(path for folder in folders() if (path := Path(folder) / part).exists())


def interventions() -> dict[str, bool]:
    """What can be changed inside a job, by name; whether it must be there when the job starts."""
    from torchtriage.examine.trial.experiment.job.interventions import is_from_start

    found = {}
    for module in _furniture("interventions", ""):
        for name, item in vars(module).items():
            if not name.startswith("_") and getattr(item, "__module__", "") == module.__name__ and callable(item):
                found[name.replace("_", "-")] = is_from_start(item)
    return found


@cache
def _furniture(part: str, naming: str) -> tuple[Any, ...]:
    """The rooms' modules of the name PART; of a folder of that name, all modules in it. Files are looked through once:
    who reads a thousand logs would spend four fifths of the time on that.
    """
    import importlib
    import pkgutil
    from importlib.util import find_spec

    from torchtriage import specialists

    found = []
    for room in pkgutil.iter_modules(specialists.__path__, f"{specialists.__name__}."):
        if spec := find_spec(f"{room.name}.{part}"):
            inner = pkgutil.iter_modules(spec.submodule_search_locations or (), f"{room.name}.{part}.")
            names = (f"{room.name}.{part}", *(each.name for each in inner))
            found += [importlib.import_module(name) for name in names if not naming or _names(name, naming)]
    return tuple(found)


def _names(module: str, what: str) -> bool:
    """Whether the source of MODULE names WHAT; so it is taken to do where the source is not there."""
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return True
    return what in Path(spec.origin).read_text(encoding="utf-8")


def concluded(case: Case | None, outcomes: Iterable[Outcome]) -> Case:
    """CASE with OUTCOMES, and what they show by the pages of today."""
    from msgspec.structs import replace

    from torchtriage.catalog.load import catalog
    from torchtriage.core.case import Case
    from torchtriage.diagnose import weigh

    given, known, seen = case or Case(), catalog(), tuple(outcomes)
    seen += weigh.unsure(seen, known)
    concluded = replace(
        given,
        outcomes=(*given.outcomes, *seen),
        findings=(*given.findings, *weigh.findings(seen, known)),
        verdicts=(*given.verdicts, *weigh.verdicts(seen, known)),
    )
    return _moved(concluded) if concluded.route else concluded


def _moved(case: Case) -> Case:
    """CASE with the steps that its evidence opens beside its plan."""
    from msgspec.structs import replace

    from torchtriage.routing.order import opened

    homes = {finding.fault.slug: finding.fault.specialist for finding in case.findings}
    return replace(case, opened=opened(case.route, case.shown, homes))


def next_step(case: Case) -> tuple[Step, ...]:
    """The steps that may be taken now, given what the evidence of CASE shows: of its plan, and beside it."""
    return _moved(case).open_steps
