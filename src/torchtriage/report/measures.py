"""The measurements of a run as the reports show them. They may come from any file: what does not fit is left out."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from torchtriage.core.plain import number, within

PHASES = (
    "data", "input", "transfer", "forward", "backward", "compute", "optimizer", "communication", "memcpy", "sync",
    "launch", "host", "idle", "other",
)  # fmt: skip
"""Of runs and of traces, in the order in which a step goes through them."""
MEANS = {
    "input": "the loop waits for the next batch",
    "memcpy": "copies that nothing hides",
    "sync": "the device idles after the host waited for it",
    "launch": "the device idles until the host launches the next kernel",
    "host": "nothing computes while the host runs other code, most often Python",
}
"""What a phase is, where its name alone does not tell."""


class Share(Struct, frozen=True):
    """One phase of the step: its share from 0 to 1, and its seconds where the step's time is known."""

    phase: str
    share: float
    seconds: float | None


class Pace(Struct, frozen=True):
    """How long a step takes, in seconds: the median and the range that holds four steps in five."""

    median: float
    low: float | None
    high: float | None


def pace(measurements: dict[str, Any]) -> Pace | None:
    """The time of a step, or None when it was not measured."""
    median, low, high = (number(within(measurements, "step_time", name)) for name in ("median", "p10", "p90"))
    return None if median is None else Pace(median, low, high)


def shares(measurements: dict[str, Any]) -> tuple[Share, ...]:
    """The phases that were measured, in the order in which a step goes through them."""
    step, table = pace(measurements), within(measurements, "shares")
    known = {phase: number(within(table, phase)) for phase in PHASES}
    return tuple(
        Share(phase, share, share * step.median if step else None)
        for phase, share in known.items()
        if share is not None and 0 <= share <= 1
    )


def overhead(measurements: dict[str, Any]) -> float | None:
    """The probes' own share of the run, from 0 to 1."""
    whole = within(measurements, "overhead")
    return number(within(whole, "share") if isinstance(whole, dict) else whole)


def overhead_later(measurements: dict[str, Any]) -> float | None:
    """The same after the first steps, which all probes watch."""
    return number(within(measurements, "overhead_later"))


def steps(measurements: dict[str, Any]) -> int | None:
    """How many steps were measured."""
    value = number(within(measurements, "steps"))
    return int(value) if value is not None and abs(value) < 1e15 else None


def memory(measurements: dict[str, Any]) -> tuple[tuple[str, float, float], ...]:
    """Where memory is, and the bytes of it that were taken after warm-up and at most, as far as they were measured."""
    names = {"allocated": "on the device", "rss": "on the host"}
    table = within(measurements, "memory")
    ends = {said: [number(within(table, name, end)) for end in ("first", "highest")] for name, said in names.items()}
    return tuple((said, low, high) for said, (low, high) in ends.items() if low is not None and high is not None)
