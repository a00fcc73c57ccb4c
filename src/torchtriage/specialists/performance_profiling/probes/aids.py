"""What a run writes down about debugging aids that are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Aid

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_AIDS = ("anomaly mode", "a profiler")
_CALLERS = 4  # lines: the one that switches an aid on, and those that call it
_TIMES = frozenset({50, 100, 1000, 10_000, 100_000})  # backward passes at which the counts are written down


def aids(job: Job) -> None:
    """In how many backward passes autograd's anomaly mode was on, or a profiler recorded; and who had begun it."""
    import torch

    asks = (torch.is_anomaly_enabled, torch.autograd._profiler_enabled)  # pyright: ignore  # public in all but its name
    watch = _Aids(job, dict(zip(_AIDS, asks, strict=True)))
    if any(ask() for ask in asks):  # since before the watch: nobody knows where
        watch.listen()
    # not detect_anomaly.__init__: it warns, and a warning names its caller's caller
    job.wrap(torch.autograd.detect_anomaly, "__enter__", watch.switching(_AIDS[0]))
    job.wrap(torch.autograd.set_detect_anomaly, "__init__", watch.switching(_AIDS[0]))
    job.wrap(torch.autograd.profiler.profile, "_start_trace", watch.switching(_AIDS[1]))
    job.listen(watch.ending)


class _Aids:
    """Counts backward passes by aid, from the first time that one is on."""

    def __init__(self, job: Job, asks: dict[str, Any]) -> None:
        self.job, self.probe, self.asks = job, job.placing, asks
        self.began: dict[str, list[tuple[str, int]]] = {}
        self.counts = dict.fromkeys(asks, 0)
        self.listens, self.of = False, 0  # of: backward passes before it listened, and those that it was told of

    def listen(self) -> None:
        if not self.listens:
            self.listens, self.of = True, self.job.clock.count("backwards")
            self.job.place(self.probe, self._counting)

    def _counting(self, job: Job) -> None:
        job.computes_nothing()
        job.listen(self.backwarded)

    def switching(self, aid: str) -> Any:
        """Notes the user's line that switches an aid on, not one that switches it off."""

        def make(original: Any) -> Any:
            def begin(*args: Any, **kwargs: Any) -> Any:
                given = original(*args, **kwargs)
                if self.asks[aid]():
                    self.began[aid] = self.job.callers(_CALLERS)
                    self.listen()
                return given

            return begin

        return make

    def backwarded(self, _roots: Any) -> None:
        for aid, ask in self.asks.items():
            self.counts[aid] += bool(ask())
        self.of += 1
        if self.of in _TIMES:
            self.ending()

    def ending(self) -> None:
        of = self.of
        for aid, count in self.counts.items():
            if count:
                (path, line), *calls = self.began.get(aid) or [("", 0)]
                self.job.record(Aid(aid=aid, on=count, of=of, path=path, line=line, calls=calls))
