"""What a user can see and say, and the error messages that say it."""

from __future__ import annotations

from msgspec import Struct

from torchtriage.core.plan import Stage


class Signature(Struct, frozen=True, forbid_unknown_fields=True):
    """An error message that the program knows by heart.

    contains: a literal part of it, lower case, tested before the pattern (a regular expression with named groups)
    is even compiled. or_contains: further literals, where a message has other wordings. fields: how a group is read,
    "int", "float", "text" or "shape" ("4x57600" → [4, 57600]).
    faults: the slugs it can mean; a single one is what it means, and each verb that meets the message says so. The
    page of that fault has the sign log/<slug>. says: the message in plain words, without a full stop.
    """

    name: str
    contains: str
    pattern: str
    or_contains: tuple[str, ...] = ()
    fields: dict[str, str] = {}
    faults: tuple[str, ...] = ()
    says: str = ""

    @property
    def literals(self) -> tuple[str, ...]:
        """One of these stands in every text of the message."""
        return (self.contains, *self.or_contains)


class Symptom(Struct, frozen=True):
    """What a user can see and say, and where that leads first.

    phrases: ways to say it, matched word by word. signatures: error messages that say it.
    stage, because, collect, examine, read: of the plan's step (see core.plan.Step).
    """

    slug: str
    specialist: str
    title: str
    stage: Stage
    because: str
    phrases: tuple[str, ...]
    signatures: tuple[Signature, ...] = ()
    collect: tuple[str, ...] = ()
    examine: tuple[str, ...] = ()
    read: str | None = None
