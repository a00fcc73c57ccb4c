"""Decoded messages as evidence: one that has a single meaning shows the fault that its row in symptoms.toml names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from torchtriage.core.fault import Fault, FaultClass
from torchtriage.core.query import Decoded
from torchtriage.examine.artefact.logs.said import ENDED, Logs, Said, fact
from torchtriage.examine.detector import Detector, Sighting

LOOKER = "log/"
_GENERAL = ("attribute-missing", "argument-invalid")
"""What Python raises for any slip: in a message of another fault, it is what that one quotes."""
_WRITES = re.compile(r"\b\w*(?:save|dump)\w*\(")
Fits = Callable[[Decoded, Said], bool]


def meaning(said: Said) -> Decoded | None:
    """The decoded message that says what SAID is about; None where no message in it has a single meaning.

    An error that passed through a worker, a compiler or NCCL is quoted by what it passed through, so that the last
    message of a text is the error itself. Of several messages of one fault, the first speaks: it is the heading.
    """
    found = [each for each in said.decoded if len(each.faults) == 1]
    single = [each for each in found if each.faults[0] not in _GENERAL] or found
    if not single:
        return None
    return next(each for each in single if each.faults == single[-1].faults)


def sightings(logs: Logs, slug: str, fits: Fits = lambda _, __: True) -> Iterator[Sighting]:
    """One sighting for each message of LOGS that means SLUG, FITS, and may be the cause of the end, with its ranks.

    The same words of several ranks are one sighting, at the place of the first.
    """
    seen: dict[tuple[str, str], list[Said]] = {}
    says: dict[tuple[str, str], str] = {}
    for said in logs.causes:
        found = meaning(said)
        if found is not None and found.faults == (slug,) and said.tier < ENDED and fits(found, said):
            key = (found.text, str(said.frame))
            seen.setdefault(key, []).append(said)
            says.setdefault(key, found.says or found.text)
    for key, group in seen.items():
        yield Sighting(group[0].place, fact(logs, group, says[key]))


def writes_file(code: str) -> bool:
    """Whether CODE, a line of the user's, saves or dumps something: torch.save(…), save_state(…), pickle.dump(…)."""
    return bool(_WRITES.search(code))


def sightings_by_code(logs: Logs, signature: str, fits: Callable[[str], bool]) -> Iterator[Sighting]:
    """The messages of SIGNATURE, which can mean several faults, where the line of code that raised FITS one of them."""
    for said in logs.causes:
        code = said.frame.code if said.frame else ""
        found = next((each for each in said.decoded if each.signature == signature), None)
        if found is not None and meaning(said) is None and said.tier < ENDED and fits(code):
            yield Sighting(said.place, fact(logs, [said], found.says or found.text))


def detectors(faults: Iterable[Fault], own: Collection[str]) -> Iterator[Detector]:
    """For each of FAULTS that a log can show, the detector log/<slug>; OWN: those that a room has written itself."""
    for fault in faults:
        name = LOOKER + fault.slug
        if name not in own and any(sign.detector == name for sign in fault.signs):
            yield Detector(name, Logs, _look(fault), fault.title)


def _look(fault: Fault) -> Callable[[Logs], Iterator[Sighting]]:
    def look(logs: Logs) -> Iterator[Sighting]:
        return sightings(logs, fault.slug, fits)

    def fits(_: Decoded, said: Said) -> bool:
        """What ends a job is raised: a warning of the same words was survived."""
        return said.kind != "warned" or fault.kind is not FaultClass.ERROR

    return look
