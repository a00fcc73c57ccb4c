"""Legs two by two: the same command, watched alike, under the same conditions."""

from __future__ import annotations

import ctypes
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchtriage.examine.trial.leg.execute import Ended, Leg, execute, refusal, say
from torchtriage.examine.trial.leg.mirror import mirrored
from torchtriage.examine.trial.repeat import record
from torchtriage.examine.trial.repeat.record import Told

HERE = Path(__file__).resolve().parent
_FIXED_ADDRESSES = 0x0040000  # ADDR_NO_RANDOMIZE of <sys/personality.h>
_LOOKS = 0.5  # seconds between two counts of the turns


@dataclass
class Runner:
    """Runs legs of one command. steps: of the training, after which a leg is ended; timeout: seconds of a leg.

    A leg begins in a mirror that lies where that of the last one lay, so that no path tells them apart.
    """

    command: tuple[str, ...]
    folder: Path
    steps: int | None = None
    timeout: float | None = None
    said: int = 0
    ends: list[Ended] = field(default_factory=list)

    def leg(
        self, name: str, turns: int | None, wanted: Mapping[str, Any], fixed: Sequence[str] = ()
    ) -> tuple[Told, Ended]:
        """One leg to its end, or to the end of so many TURNS, and what it has written."""
        place = self.folder / "leg"
        kept = self.folder / "records" / name
        with mirrored(place) as mirror:
            leg = Leg(
                name, self.command, mirror, (HERE / "job",), self._settings(wanted, fixed), self.timeout,
                _enough(mirror.place / f"record-{name}", turns),
            )  # fmt: skip
            with _addresses("addresses" in fixed):
                ended = execute(leg)
            if ended.refused is not None:
                raise refusal(ended.refused, leg)
            kept.parent.mkdir(parents=True, exist_ok=True)
            if leg.record.is_dir():
                shutil.move(leg.record, kept)
        self.ends.append(ended)
        return record.read(kept), ended

    def pair(
        self, name: str, turns: int | None, wanted: Mapping[str, Any], fixed: Sequence[str] = ()
    ) -> tuple[Told, Told]:
        """Two legs that are looked at, or held still, in the same way."""
        one, _ = self.leg(f"{name}-1", turns, wanted, fixed)
        other, _ = self.leg(f"{name}-2", turns, wanted, fixed)
        return one, other

    def tell(self, text: str) -> None:
        say(text)

    def _settings(self, wanted: Mapping[str, Any], fixed: Sequence[str]) -> dict[str, str]:
        told = {"TORCHTRIAGE_EARLY": str(HERE / "early"), "TORCHTRIAGE_REPEAT": json.dumps(wanted)}
        if fixed:
            told["TORCHTRIAGE_FIXED"] = " ".join(fixed)
        if "hash" in fixed:
            told["PYTHONHASHSEED"] = "0"
        if "threads" in fixed:
            told |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        if "deterministic" in fixed:
            told["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
        return told


def _enough(folder: Path, turns: int | None) -> Any:
    """Whether so many turns have been written; asked for at most twice in a second."""
    looked = time.monotonic()

    def done() -> bool:
        nonlocal looked
        if turns is None or time.monotonic() - looked < _LOOKS:
            return False
        looked = time.monotonic()
        return record.turns(folder) >= turns

    return done


@contextmanager
def _addresses(fixed: bool) -> Iterator[None]:
    """Processes that start in the block get the same addresses each time, where the system lets us have it so."""
    if not fixed:
        yield
        return
    before = -1
    with suppress(OSError, AttributeError):
        set_to = ctypes.CDLL(None).personality
        before = set_to(0xFFFFFFFF)
        if before >= 0:
            set_to(before | _FIXED_ADDRESSES)
    try:
        yield
    finally:
        if before >= 0:
            ctypes.CDLL(None).personality(before)
