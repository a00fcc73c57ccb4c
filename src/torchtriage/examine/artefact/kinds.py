"""What a path is, told from its content and never from its name alone; the files of one kind are one artefact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.heads import UNKNOWN, Kind, head
from torchtriage.examine.artefact.opened import is_url
from torchtriage.examine.artefact.places import Place, within

EXPECTED = (
    "profiler traces (Kineto or Chrome JSON), CUDA memory snapshots, Flight Recorder dumps, logs and tracebacks, "
    "TensorBoard event files, Lightning's metrics.csv, checkpoints, folders of `torchtriage run`; also in gzip or zip"
)
ORDER = ("run", "trace", "snapshot", "flight", "logs", "curves", "checkpoint")
_SHOWN = 3
_AT_ONCE = 32


class Artefact(Struct, frozen=True):
    """The files of one kind that a job left, in the order in which they were named. kind: one of ORDER.

    A run folder is one path, and each is an artefact of its own.
    """

    kind: str
    paths: tuple[str, ...]


class _Sorted(Struct):
    """What was made of the places so far."""

    by_kind: dict[str, list[str]] = field(default_factory=dict)
    unknown: list[tuple[Place, str]] = field(default_factory=list)


def found(paths: Sequence[str]) -> tuple[tuple[Artefact, ...], tuple[Inconclusive, ...]]:
    """The artefacts at PATHS and below them, in the order of ORDER, and what is none or could not be looked at.

    Raises TriageError where a path is not there (exit code 2), and where nothing is any of EXPECTED (exit code 3).
    """
    places, unseen = within(paths)
    made = _Sorted()
    for place, (kind, why) in zip(places, _told(places), strict=True):
        if kind == UNKNOWN:
            made.unknown.append((place, why))
        elif place.path not in made.by_kind.setdefault(kind, []):
            made.by_kind[kind].append(place.path)
    inconclusive = (*unseen, *_none_of_these(made.unknown))
    if not made.by_kind:
        raise _nothing(paths, inconclusive)
    return tuple(_artefacts(made.by_kind)), inconclusive


def _told(places: Sequence[Place]) -> Iterable[Kind]:
    """The kind of each; what is far away is asked for all at once, since each answer takes its time."""
    if sum(is_url(place.path) for place in places) < 2:
        return map(_kind, places)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(_kind, places))


def _kind(place: Place) -> Kind:
    return (place.whole, "") if place.whole else head(place)


def _artefacts(by_kind: dict[str, list[str]]) -> Iterator[Artefact]:
    for kind in ORDER:
        of_kind = tuple(by_kind.get(kind, ()))
        if kind == "run":
            yield from (Artefact(kind, (path,)) for path in of_kind)
        elif of_kind:
            yield Artefact(kind, of_kind)


def _none_of_these(unknown: Iterable[tuple[Place, str]]) -> Iterator[Inconclusive]:
    """What was named is told one by one; what lay in a folder, in one sentence for the folder."""
    folders: dict[str, list[tuple[Place, str]]] = {}
    for place, why in unknown:
        if place.folder:
            folders.setdefault(place.folder, []).append((place, why))
        else:
            yield Inconclusive("read", f"{place.path}: {why}", f"Name one of these: {EXPECTED}.")
    for folder, items in folders.items():
        said = "; ".join(f"{place.path.removeprefix(folder).lstrip('/')} ({why})" for place, why in items[:_SHOWN])
        more = f" and {len(items) - _SHOWN:,} more" if len(items) > _SHOWN else ""
        yield Inconclusive("read", f"{folder}: passed over {said}{more}", f"Name by itself what is one of: {EXPECTED}.")


def _nothing(paths: Sequence[str], inconclusive: Sequence[Inconclusive]) -> TriageError:
    what = "; ".join(item.why for item in inconclusive[:_SHOWN]) or "the folder holds no files"
    where = ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
    first = inconclusive[0].unblock if inconclusive else f"Name one of these: {EXPECTED}."
    return TriageError(what, where, first, NOTHING_EXAMINED)
