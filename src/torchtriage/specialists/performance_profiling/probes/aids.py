"""What a run writes down about debugging aids that are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_AIDS = ("anomaly mode", "a profiler")
_TIMES = frozenset({50, 100, 1000, 10_000, 100_000})  # backward passes at which the counts are written down


def aids(job: Job) -> None:
    """In how many backward passes autograd's anomaly mode was on, or a profiler recorded; and who had begun it."""
    import torch

    began: dict[str, tuple[str, int]] = {}
    counts = {"of": 0, **dict.fromkeys(_AIDS, 0)}
    asks = (torch.is_anomaly_enabled, torch.autograd._profiler_enabled)  # pyright: ignore  # public in all but its name

    def backward(_roots: Any) -> None:
        counts["of"] += 1
        for aid, ask in zip(_AIDS, asks, strict=True):
            if ask():
                counts[aid] += 1
        if counts["of"] in _TIMES:
            tell()

    def tell() -> None:
        for aid in _AIDS:
            if counts[aid]:
                path, line = began.get(aid, ("", 0))
                job.record("aid", aid=aid, on=counts[aid], of=counts["of"], path=path, line=line)

    # not detect_anomaly.__init__: it warns, and a warning names its caller's caller
    job.wrap(torch.autograd.detect_anomaly, "__enter__", _noting(job, began, 0, asks))
    job.wrap(torch.autograd.set_detect_anomaly, "__init__", _noting(job, began, 0, asks))
    job.wrap(torch.autograd.profiler.profile, "_start_trace", _noting(job, began, 1, asks))
    job.listen(backward)
    job.on("ending", tell)


def _noting(job: Job, began: dict[str, tuple[str, int]], which: int, asks: Any) -> Any:
    """Notes the user's line that switches an aid on, not one that switches it off."""

    def make(original: Any) -> Any:
        def begin(*args: Any, **kwargs: Any) -> Any:
            given = original(*args, **kwargs)
            if asks[which]():
                began[_AIDS[which]] = job.caller()
            return given

        return begin

    return make
