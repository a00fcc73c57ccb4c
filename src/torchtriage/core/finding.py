"""A fault together with the evidence that shows it: the only road to a remedy."""

from __future__ import annotations

from msgspec import Struct

from torchtriage.core.evidence import Evidence
from torchtriage.core.fault import Fault, Remedy
from torchtriage.core.some import Some


class Finding(Struct, frozen=True):
    """Evidence supports a finding; a finding carries its remedies."""

    fault: Fault
    evidence: Some[Evidence]

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"{self.fault.slug}: a finding needs evidence")
        for item in self.evidence:
            if not isinstance(item, Evidence):
                raise TypeError(f"{self.fault.slug}: {item!r} is not evidence")
            if not any(sign.shows_in(item) for sign in self.fault.signs):
                raise ValueError(f"{self.fault.slug} is not shown by {item.detector} at {item.value}")

    @property
    def remedies(self) -> Some[Remedy]:
        return self.fault.remedies

    @property
    def fingerprint(self) -> str:
        """16 hex digits that stay the same when lines shift or a figure changes."""
        from hashlib import sha256  # loads OpenSSL, which a case without findings need not wait for

        place = self.evidence[0].place
        parts = (self.fault.slug, place.path, place.module, place.container, place.anchor)
        return sha256("\0".join(part or "" for part in parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
