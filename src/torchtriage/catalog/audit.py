"""The catalogue's own health: every broken promise between its files, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from torchtriage.catalog.load import Catalog
from torchtriage.core.fault import Sign


def audit(catalog: Catalog, detectors: Collection[str]) -> tuple[str, ...]:
    """The broken promises of CATALOG, given the names of all DETECTORS that exist; empty when it is sound."""
    return (
        *_unique(catalog),
        *_signs(catalog, detectors),
        *_links(catalog),
    )


def _unique(catalog: Catalog) -> Iterator[str]:
    slugs = Counter(item.slug for room in catalog.rooms for group in (room.faults, room.symptoms) for item in group)
    yield from (f"{slug}: the name is taken {count} times" for slug, count in slugs.items() if count > 1)


def _signs(catalog: Catalog, detectors: Collection[str]) -> Iterator[str]:
    shown: dict[str, Sequence[Sign]] = {slug: fault.signs for slug, fault in catalog.faults.items()}
    shown |= {f"verdict {slug}": kind.signs for slug, kind in catalog.verdicts.items()}
    used = {sign.detector for signs in shown.values() for sign in signs}
    for name, signs in shown.items():
        for sign in signs:
            if sign.detector not in detectors:
                yield f"{name}: no detector is called {sign.detector}"
    yield from (f"{name}: a detector that shows no fault and no verdict" for name in sorted({*detectors} - used))
    for slug, kind in catalog.verdicts.items():
        if bool(kind.signs) == bool(kind.unseen):
            yield f"verdict {slug}: needs either signs or, when nothing can see it yet, a word on what would"


def _links(catalog: Catalog) -> Iterator[str]:
    for slug, fault in catalog.faults.items():
        for name in fault.explains:
            if name not in catalog.symptoms:
                yield f"{slug}: explains the unknown symptom {name}"
        for name in fault.refines:
            if name not in catalog.faults:
                yield f"{slug}: refines the unknown fault {name}"
    for slug, symptom in catalog.symptoms.items():
        for signature in symptom.signatures:
            for name in signature.faults:
                if name not in catalog.faults:
                    yield f"{slug}: signature {signature.name} points to the unknown fault {name}"
