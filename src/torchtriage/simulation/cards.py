"""What a script is rehearsed for: how many cards, of what memory, and what their data sheets promise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from .costs import Costs

UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
MOST = 16


@dataclass(frozen=True)
class Card:
    """COUNT devices of one kind.

    memory: bytes of each. bytes_per_second, flops_per_second: the most that the data sheet promises, the latter for
    dense products in float16 with sums in float32; infinite where only the memory is known. capability: of CUDA.
    """

    name: str
    memory: int
    bytes_per_second: float = inf
    flops_per_second: float = inf
    capability: tuple[int, int] = (8, 0)
    count: int = 1

    @property
    def costs(self) -> Costs:
        """The least that a kernel takes on it: what it computes and what it moves, at the rates of the data sheet.

        In real time the host takes long enough without costs of its own.
        """
        return Costs(launch=0, kernel=0, flops_per_second=self.flops_per_second, bytes_per_second=self.bytes_per_second)

    @property
    def has_rates(self) -> bool:
        return self.bytes_per_second < inf

    def as_row(self) -> dict[str, Any]:
        """What `from_row` reads; JSON has no infinity."""
        return {name: None if value == inf else value for name, value in asdict(self).items()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Card:
        known: dict[str, Any] = {name: inf if value is None else value for name, value in row.items()}
        return cls(**{**known, "capability": tuple(known["capability"])})


# From NVIDIA's data sheet of each card: memory in decimal gigabytes, bandwidth, and what its tensor cores do without
# sparsity: where a sheet has one figure "with sparsity", half of it. The driver offers a little more or less memory.
CARDS = {
    card.name.upper(): card
    for card in (
        Card("T4", 16 * 10**9, 320e9, 65e12, (7, 5)),
        Card("V100-16GB", 16 * 10**9, 900e9, 125e12, (7, 0)),
        Card("V100-32GB", 32 * 10**9, 900e9, 125e12, (7, 0)),
        Card("A10", 24 * 10**9, 600e9, 125e12, (8, 6)),
        Card("A100-40GB", 40 * 10**9, 1555e9, 312e12, (8, 0)),
        Card("A100-80GB", 80 * 10**9, 2039e9, 312e12, (8, 0)),
        Card("RTX3090", 24 * 10**9, 936e9, 71e12, (8, 6)),
        Card("RTX4090", 24 * 10**9, 1008e9, 165e12, (8, 9)),
        Card("L4", 24 * 10**9, 300e9, 121e12, (8, 9)),
        Card("L40S", 48 * 10**9, 864e9, 362e12, (8, 9)),
        Card("H100", 80 * 10**9, 3350e9, 989e12, (9, 0)),
        Card("H200", 141 * 10**9, 4800e9, 989e12, (9, 0)),
    )
}
UNKNOWN = Card("no particular card", 16 * 2**30)

_WRITTEN = re.compile(r"(?:(?P<count>\d+)\s*x\s*)?(?P<what>.+)", re.I)
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]?i?B)?", re.I)


def parse_card(text: str) -> Card:
    """The card that TEXT names: `H100`, `24GiB`, or several of them, `2xH100`. Raises ValueError with what is known."""
    written = _WRITTEN.fullmatch(text.strip())
    count, what = int(written["count"] or 1) if written else 1, written["what"] if written else ""
    if not 1 <= count <= MOST:
        raise ValueError(f"{count} cards: 1 to {MOST} can be simulated")
    if (known := CARDS.get(what.upper().replace(" ", ""))) is not None:
        return replace(known, count=count)
    size = _SIZE.fullmatch(what)
    if size is None or not (memory := int(float(size["number"]) * UNITS[(size["unit"] or "").upper()])):
        names = ", ".join(card.name for card in CARDS.values())
        raise ValueError(f"{text!r} is neither a size of memory, such as 24GiB, nor one of {names}")
    return Card(f"{what} of memory", memory, count=count)
