"""What became of the numbers of a checkpoint when all of them were read."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from torchtriage.examine.artefact.checkpoint.content import Trouble


class NotFinite(Struct, frozen=True):
    """The numbers of a tensor that are none. minus: how many of the infinite ones are negative."""

    tensor: str
    path: str
    dtype: str
    numbers: int
    nan: int
    inf: int
    minus: int


class Verified(Struct):
    """checked: bytes that agree with a checksum; unchecked: bytes without one. not_finite: in the order of the file."""

    checked: int = 0
    unchecked: int = 0
    troubles: list[Trouble] = field(default_factory=list)
    not_finite: list[NotFinite] = field(default_factory=list)


def shown(found: Iterable[NotFinite]) -> list[NotFinite]:
    """Those of FOUND that are a fault: a mask is a tensor in which many numbers are minus infinity, and no others."""
    return [each for each in found if not _is_mask(each)]


def _is_mask(each: NotFinite) -> bool:
    return each.nan == 0 and each.minus == each.inf and each.inf >= 0.1 * each.numbers
