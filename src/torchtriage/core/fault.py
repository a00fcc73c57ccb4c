"""One named thing that goes wrong, the signs that show it, and the remedies that are reached only through it."""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct

from torchtriage.core.evidence import Evidence
from torchtriage.core.some import Some

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class FaultClass(Enum):
    """What the fault does to the job."""

    ERROR = "error"
    WRONG = "wrong"
    WASTE = "waste"
    ADVICE = "advice"
    API = "api"


class Confidence(Enum):
    """How sure a detector's word is when it speaks."""

    HIGH = "high"
    MEDIUM = "medium"


class Persona(Enum):
    """Who wants to see it: everyone, or those who asked for more."""

    DEFAULT = "default"
    PEDANTIC = "pedantic"


class Severity(Enum):
    """How loudly it is said."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Basis(Enum):
    """What has shown the harm of a fault: a job on the CPU, on the simulated accelerator or on CUDA, or a trace of one.

    A trace counts when it was recorded on a real device.
    """

    CPU = "cpu"
    SIM = "sim"
    TRACE = "trace"
    CUDA = "cuda"


class EditSafety(Enum):
    """Whether an edit may be applied without a look: safe keeps the meaning that was intended."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class Sign(Struct, frozen=True):
    """The detector that shows a fault or verdict, and how high its measure must at least be.

    Written "run/data-wait > 0.30", or "source/clip-before-unscale" where seeing it is enough.
    """

    detector: str
    above: float | None = None

    @classmethod
    def parse(cls, text: str) -> Sign:
        """Raises ValueError for anything but DETECTOR or DETECTOR > NUMBER."""
        match text.split():
            case [detector]:
                return cls(detector)
            case [detector, ">", above]:
                return cls(detector, float(above))
            case _:
                raise ValueError(f"sign {text!r}: write DETECTOR or DETECTOR > NUMBER")

    def shows_in(self, item: Evidence) -> bool:
        """Whether ITEM satisfies the sign even at the near end of its interval."""
        if item.detector != self.detector or self.above is None:
            return item.detector == self.detector
        near = item.value if item.spread is None else item.spread[0]
        return near is not None and near > self.above

    def straddled_by(self, item: Evidence) -> bool:
        """Whether the sign's bound lies inside ITEM's interval: too close to call."""
        if item.detector != self.detector or self.above is None or item.spread is None:
            return False
        return item.spread[0] <= self.above < item.spread[1]


class Remedy(Struct, frozen=True):
    """A change that may help.

    when: the condition under which it is the right one. cost: what it takes or gives up.
    order: its place among its siblings, from 1. verify: the command or measurement that shows that it helped.
    """

    id: str
    title: str
    when: str
    cost: str
    order: int
    verify: str
    edit: EditSafety | None = None

    def __post_init__(self) -> None:
        empty = [name for name in ("id", "title", "when", "cost", "verify") if not getattr(self, name)]
        if empty:
            raise ValueError(f"remedy {self.id or self.title!r}: {', '.join(empty)} must be said")


class Fault(Struct, frozen=True, rename={"kind": "class"}):
    """One fault; its page is its documentation and its slug is its name everywhere.

    kind: its class ("class" in JSON). explains: the symptoms (slugs) that it can cause. refines: the faults (slugs) of
    which it is a special case; where the message of one ended a job and this is found too, this is what is said of it.
    proof: what has shown the harm, values of Basis ("cpu", "cpu, sim"), else in words why nothing has.
    torch: the versions that have the fault and what its remedies need (">=2.4"); "" for all.
    """

    slug: str
    specialist: str
    title: str
    kind: FaultClass
    confidence: Confidence
    persona: Persona
    signs: Some[Sign]
    remedies: Some[Remedy]
    explains: tuple[str, ...] = ()
    proof: str = "cpu"
    torch: str = ""
    refines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not SLUG.fullmatch(self.slug):
            raise ValueError(f"fault {self.slug!r}: a slug is lower-case words joined by hyphens")
        if not self.signs or not self.remedies:
            raise ValueError(f"fault {self.slug}: needs a sign that shows it and a remedy that treats it")
        if [remedy.order for remedy in self.remedies] != list(range(1, len(self.remedies) + 1)):
            raise ValueError(f"fault {self.slug}: remedies are numbered from 1 in the order they stand")
        known = [each.value for each in Basis]
        has_basis = any(part in known for part in self.proof.split(", "))
        if not self.proven_on and (has_basis or " " not in self.proof):
            raise ValueError(
                f"fault {self.slug}: proof {self.proof!r}: write some of {known}, or in words why none has"
            )

    @property
    def proven_on(self) -> tuple[Basis, ...]:
        """What has shown the harm; empty where nothing has, and `proof` is the reason."""
        known = {each.value: each for each in Basis}
        named = tuple(known.get(part) for part in self.proof.split(", "))
        return tuple(each for each in named if each) if all(named) else ()

    @property
    def severity(self) -> Severity:
        """By class; silently wrong results are errors only when the detector is sure."""
        sure = self.confidence is Confidence.HIGH
        match self.kind:
            case FaultClass.ERROR:
                return Severity.ERROR
            case FaultClass.WRONG:
                return Severity.ERROR if sure else Severity.WARNING
            case FaultClass.WASTE:
                return Severity.WARNING
            case _:
                return Severity.INFO
