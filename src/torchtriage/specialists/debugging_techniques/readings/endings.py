"""What a record says about why the job ended badly, beyond the words of its error."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error, Exit, Loader, NonFinite
from torchtriage.examine.run.record import RunRecord
from torchtriage.examine.run.record.crash import signal_of
from torchtriage.specialists.debugging_techniques.probes.events import Refused
from torchtriage.specialists.debugging_techniques.readings.origins import in_batch

_SENT = frozenset({"SIGTERM", "SIGHUP", "SIGXCPU", "SIGUSR1", "SIGUSR2"})
"""Signals that schedulers, launchers and terminals send; those of a crash come from the process itself."""
_CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"})


@detector("run/stopped-from-outside")
def stopped_from_outside(record: RunRecord) -> Iterator[Sighting]:
    """A signal that nothing within the job raises by failing ended it.

    Nor does anything in it raise SIGKILL: where the kernel did not send it for memory, somebody else did.
    """
    name, is_uncaught = signal_of(record.ended), bool(record.ended.signal)
    if name in _SENT:
        how = "which did not handle it" if is_uncaught else f"which then ended with exit code {record.ended.code}"
        yield Sighting(Place(step=record.step), f"{name} was sent to the job, {how}")
    elif name == "SIGKILL" and record.ended.oom_counted and not record.ended.oom:
        fact = "SIGKILL was sent to the job; the kernel's counters of kills for memory did not move meanwhile"
        yield Sighting(Place(step=record.step), fact)


@detector("run/native-crash")
def native_crash(record: RunRecord) -> Iterator[Sighting]:
    """A signal that only code below Python raises ended the job."""
    name = signal_of(record.ended)
    if name in _CRASHES:
        yield Sighting(Place(step=record.step), f"{name} ended the job; no Python error was raised")


@detector("run/ended-not-finite")
def ended_not_finite(record: RunRecord) -> Iterator[Sighting]:
    """What the job checked before it ended itself was NaN or infinite, and the probes had not seen it before.

    Recipes in the style of detectron and MAE test the loss before backward, and leave by sys.exit.
    """
    if any(rank.has(NonFinite) or rank.has(Refused) for rank in record.ranks):
        return
    for event, name, value in _checked(record):
        place = Place(event.path or None, event.line or None, step=record.step)
        yield Sighting(place, f"`{name}` is {value} on the line where the job ends itself, or in its condition")


@detector("run/ended-by-input")
def ended_by_input(record: RunRecord) -> Iterator[Sighting]:
    """What the job checked before it ended itself was NaN or infinite, and the last batch held such values."""
    for _, name, value in _checked(record):
        for rank in record.ranks:
            last = [event for event in rank.all(Refused) if event.step == record.step]
            for event in last[-1:]:
                place = Place(rank=rank.rank, step=event.at)
                yield from in_batch(event.batch, place, f"the job ended itself when `{name}` was {value}")


@detector("run/dataset-empty")
def dataset_empty(record: RunRecord) -> Iterator[Sighting]:
    """A loader that was iterated has no batch, in a job that an error ended.

    Evaluations divide by the number of samples that they have seen. Without an error, an empty part of a mixture may
    be meant.
    """
    if not record.ended.code or not record.crashes:
        return
    for rank in record.ranks:
        for loader in rank.all(Loader):
            if loader.length == 0:
                path, line = loader.built or ("", 0)
                fact = f"the DataLoader over {loader.dataset} (batch_size={loader.batch_size}) has no batch"
                yield Sighting(Place(path or None, line or None, rank=rank.rank), fact)
                return


def _checked(record: RunRecord) -> Iterator[tuple[Error | Exit, str, str]]:
    """The last error or exit whose condition named something not finite, with that name and "nan" or "inf"."""
    if not record.ended.code:
        return
    noted: list[Error | Exit] = [event for rank in record.ranks for event in rank.all(Error)]
    noted += [*record.notes.all(Error), *record.notes.all(Exit)]
    for event in reversed(noted):
        for name, value in event.not_finite:
            yield event, name, value
            return
