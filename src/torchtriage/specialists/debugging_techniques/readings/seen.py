"""What a record must hold before its silence means anything, and what its first number that is not finite means."""

from __future__ import annotations

from torchtriage.examine.detector import CannotSee
from torchtriage.examine.run.job.events import NonFinite, Step
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.debugging_techniques.probes.events import Updates


def anything_learned(record: RankRecord) -> None:
    """A job that never runs backward has nothing to show here, and that is no health."""
    if not any(step.backward for step in record.all(Step)) and not record.has(Updates):
        raise CannotSee(
            "no backward pass was seen", "Run the job until it trains: ten steps are enough for most readings."
        )


# operations that are not defined everywhere: what is not finite there need not have grown first
BOUNDED = ("log", "sqrt", "rsqrt", "div", "reciprocal", "pow", "norm", "std", "var", "acos", "asin", "atanh")


def overflowed(event: NonFinite) -> bool:
    """Whether a number may be infinite only because those before it had grown, as far as its origin is known."""
    if event.stage in ("forward", "loss"):
        made = [event.op] if event.stage == "forward" else event.chain
        return not any(op.lower().lstrip("_").startswith(BOUNDED) and "oftmax" not in op for op in made)
    return event.stage in ("unknown", "parameter")


def too_narrow(event: NonFinite) -> bool:
    """Whether a number is infinite in float16 alone."""
    return event.stage == "forward" and event.autocast == "float16" and not event.persists
