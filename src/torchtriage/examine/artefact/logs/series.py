"""The losses that a log prints, and where one ceased to be finite for good."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite, isnan, nan

from torchtriage.examine.artefact.logs.said import Lost

WORDS = (b"loss", b"Loss", b"LOSS", b"grad_norm", b"grad norm")
_ODD = (b"nan", b"NaN", b"NAN", b"inf", b"Inf")
ODD = re.compile(rb"(?:loss|Loss|LOSS|grad[_ ]norm)[\"']?\W{0,6}(?:tensor\()?-?(?:%s)" % b"|".join(_ODD))
"""A loss that is not finite, in the bytes of a log."""
FULL = 30_000
"""Lines with a loss that are read one by one; after those, only such as are not finite and what follows them."""
NORMS = 10
"""Norms at the end that are not finite: a GradScaler that looks for its first scale makes a few, and skips them."""
KEPT = 4000
"""Values of a series that are kept for the curve."""
NEAR_END = 32
"""Lines with a loss that are remembered, to tell whether training went on after an error."""
SCALE = "loss_scale"
"""The name of a lost series that is none of a loss: the scale that a library lowered in step after step."""
SKIPS = 40
"""Lowered scales without an end: from 2 ** 32, where DeepSpeed may begin, to below 1 it takes 33."""
_BEFORE = re.compile(
    r"(?:^|[^A-Za-z])((?:train(?:ing)?|val(?:id(?:ation)?)?|test|eval|lm|total|avg|mean|batch|epoch|g|d)[ _/.-]?)$"
)
_RECORD = re.compile(r"(?:best|min(?:imum)?|lowest|least|prev(?:ious)?|last|old|target|initial)[\w ./-]{0,12}$")
"""Words before a loss that is no value of the series, and begins at infinity."""
_HELD_OUT = ("val", "test", "eval")
_AFTER = re.compile(
    r"(?P<part>_(?!scale|weight|fn|func|type|mode)[a-z0-9_]{1,20})?"
    r"['\"]?\)?\s{0,3}(?:is|[:=|]|->)?\s{0,12}(?:tensor\(|\[|['\"])?"
    r"(?P<value>-?(?:nan|inf(?:inity)?|\d{1,18}(?:\.\d{0,18})?(?:e[+-]?\d{1,3})?))(?:(?<=nan|inf)\.0)?(?![\w.%])"
)
"""What stands between the name of a loss and its value; Lightning's bar writes nan.0."""
_NAN_ITERATIONS = re.compile(r"number of nan iterations:\s{0,9}(\d{1,9})")
_GIVEN_UP = re.compile(r"stopp?ing|abort|terminat|exiting|quitting", re.IGNORECASE)
_LOWERED = re.compile(
    r"(?:reducing to|reducing loss scale to|loss scale to) (?P<to>\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,3})?)"
)
_STEP = re.compile(r"\b(?:global[_ ]?)?(?:step|iter(?:ation)?)s?['\"]?\s{0,3}[:=#]?\s{0,3}\[?(\d{1,15})", re.IGNORECASE)


def is_odd(body: bytes) -> bool:
    """Whether a loss in BODY is not finite; five searches for a word cost less than one for the pattern."""
    return any(word in body for word in _ODD) and ODD.search(body) is not None


@dataclass
class _Run:
    """One series so far: how many finite values, and the run of others at its end."""

    finite: int = 0
    bad: int = 0
    at: tuple[int, int | None, float] = (0, None, 0.0)
    values: list[tuple[int | None, float]] = field(default_factory=list)


def _losses(text: str) -> Iterator[tuple[str, float]]:
    """The name and value of each loss in TEXT; "loss scale" and "lossless" are none."""
    lower, at = text.lower(), 0
    while (at := lower.find("loss", at)) >= 0:
        before, after = _BEFORE.search(lower, max(0, at - 16), at), _AFTER.match(lower, at + 4)
        is_word = before is not None or not lower[at - 1 : at].isalnum()
        if after is not None and is_word and not _RECORD.search(lower, max(0, at - 24), at):
            name = f"{before[1] if before else ''}loss{_kind(after['part'])}"
            yield name, float(after["value"].replace("infinity", "inf"))
        at += 4


def _kind(part: str | None) -> str:
    """PART of a name, unless it only says over what Lightning has averaged."""
    return "" if part in (None, "_step", "_epoch") else str(part)


def _norms(text: str) -> Iterator[tuple[str, float]]:
    """The gradients' norm in TEXT, as transformers, DeepSpeed and Megatron print it."""
    lower = text.lower()
    for word in ("grad_norm", "grad norm"):
        at = lower.find(word)
        if at >= 0 and (after := _AFTER.match(lower, at + len(word))):
            yield "grad_norm", float(after["value"].replace("infinity", "inf"))


def _skipped(text: str) -> Iterator[tuple[str, float]]:
    """The loss of Megatron's line, which leaves it out where each iteration since the last line made NaN."""
    found = _NAN_ITERATIONS.search(text)
    if found and int(found[1]):
        yield "lm loss", nan


def _as_computed(values: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """VALUES with NaN for a loss of 0.0 beside a norm of NaN: transformers averages without the losses that are NaN."""
    if not any(name == "grad_norm" and isnan(value) for name, value in values):
        return values
    return [(name, nan if value == 0 and name != "grad_norm" else value) for name, value in values]


@dataclass
class Series:
    """The losses of one file, by rank and name."""

    path: str
    runs: dict[tuple[int | None, str], _Run] = field(default_factory=dict)
    lines: int = 0
    _last: deque[int] = field(default_factory=lambda: deque(maxlen=NEAR_END))
    _lowered: dict[int | None, list[tuple[int, int | None, float]]] = field(default_factory=dict)

    def later(self, line: int) -> int:
        """How many of the last lines with a loss stand after LINE."""
        return sum(each > line for each in self._last)

    def takes(self, text: str, rank: int | None, line: int) -> None:
        """Each loss of TEXT becomes a value of its series."""
        self.lines += 1
        found = _STEP.search(text)
        step = int(found[1]) if found else None
        if "verflow" in text or "VERFLOW" in text:
            self._lower(text, rank, line, step)
        values = _as_computed([*(list(_losses(text)) or _skipped(text)), *_norms(text)])
        if values:
            self._last.append(line)
        for name, value in values:
            run = self.runs.setdefault((rank, name), _Run())
            if isfinite(value):
                run.finite, run.bad = run.finite + 1, 0
            else:
                run.at = run.at if run.bad else (line, step, value)
                run.bad += 2 if _GIVEN_UP.search(text) else 1
            if len(run.values) < KEPT:
                run.values.append((step, value))

    def _lower(self, text: str, rank: int | None, line: int, step: int | None) -> None:
        if found := _LOWERED.search(text):
            lowered = self._lowered.setdefault(rank, [])
            if len(lowered) < KEPT:
                lowered.append((line, step, float(found["to"])))

    @property
    def is_odd(self) -> bool:
        """Whether some series is not finite at the moment."""
        return any(run.bad for run in self.runs.values())

    def lost(self) -> list[Lost]:
        """The losses that ended with two values or more that are not finite, and the norms with NORMS or more.

        Of held-out data a loss may be the average of nothing. Beside them the scale of a loss (SCALE) that was lowered
        to 1 or below, or SKIPS times.
        """
        return [*self._collapsed(), *self._lost()]

    def _collapsed(self) -> Iterator[Lost]:
        for rank, lowered in self._lowered.items():
            least = min(to for _, _, to in lowered)
            if least <= 1 or len(lowered) >= SKIPS:
                line, step, _ = lowered[0]
                yield Lost(self.path, line, rank, SCALE, least, 0, len(lowered), step)

    def _lost(self) -> list[Lost]:
        return [
            Lost(self.path, run.at[0], rank, name, run.at[2], run.finite, run.bad, run.at[1])
            for (rank, name), run in self.runs.items()
            if not name.startswith(_HELD_OUT) and run.bad >= (NORMS if name == "grad_norm" else 2)
        ]
