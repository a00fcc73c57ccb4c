"""A job on a simulated device: says which tensors are parameters, gradients and states, and records what was done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..events import NotSimulated, Rehearsal, RehearsedPeak, RehearsedSteps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..job import Job

WARM = 3  # steps left out where there are more: in the first, states and workspaces are made
COUNTED = 16  # steps, after which kernels and copies are counted no more
TOLD = (1, 4)  # steps after which all is written down, for a job that is killed
MOST = 64  # lines that are written down of each kind


def place(rehearsal: Any, job: Job) -> None:
    """What the device does for a probe is not counted.

    No step rests: what the watch costs is no matter here, and a peak is told with its step.
    """
    job.computes_nothing()
    job.rest.first = sys.maxsize
    watch = Watch(rehearsal, job)
    job.record(Rehearsal(card=rehearsal.card.name, memory=rehearsal.card.memory, devices=rehearsal.card.count))
    job.listen(watch.stepping, watch.stepped, watch.iterated, watch.ending)
    unheard = job.fire
    job.fire = rehearsal.aside(unheard)  # type: ignore[method-assign]
    job.undo(lambda: setattr(job, "fire", unheard))
    job.pause = rehearsal.native.pause_records  # in functions in the place of torch's, but not in torch's own


class Watch:
    """Follows the steps of a job on the device of REHEARSAL.

    first: of the device's own steps, the first since those of the job were last numbered from 0.
    """

    def __init__(self, rehearsal: Any, job: Job) -> None:
        self.rehearsal, self.job = rehearsal, job
        self.steps = self.first = 0
        self.told = 0  # absences

    def stepping(self, optimizer: Any) -> None:
        """An optimizer is about to use the gradients, which the job may free next."""
        parameters = [each for group in optimizer.param_groups for each in group["params"]]
        self._hold("parameters", parameters)
        self._hold("gradients", (each.grad for each in parameters))

    def stepped(self, optimizer: Any) -> None:
        """Its states are there now."""
        states = (state for state in list(optimizer.state.values()) if isinstance(state, dict))
        self._hold("optimizer_states", (value for state in states for value in state.values()))

    def iterated(self, step: int) -> None:
        ended = self.rehearsal.step()
        if step == 0 and ended > 1:  # of a job that calls models, or goes backward, for long before an optimizer steps
            self.first = ended - 1
            self.rehearsal.count_again()
        self.steps = ended - self.first
        if self.steps in TOLD:
            self.tell()
        elif self.steps == COUNTED:
            self.tell()
            self.rehearsal.stop_counting()

    def ending(self) -> None:
        self.tell(at_the_end=True)

    def tell(self, *, at_the_end: bool = False) -> None:
        """Writes down all that is known so far. AT_THE_END the last step lacks what comes before the next one."""
        for root in self.job.roots:
            parameters = list(root.parameters())
            self._hold("parameters", parameters)
            self._hold("gradients", (each.grad for each in parameters))
            self._hold("buffers", root.buffers())
        for peak in self.rehearsal.peaks():
            step = max(peak.step - self.first, 0)
            at = {"path": self._path(peak.file), "line": peak.line, "at": step, "holders": peak.holders}
            self.job.record(RehearsedPeak(device=peak.device, bytes=peak.bytes, reserved=peak.reserved, **at))
        if 0 < self.steps <= COUNTED:
            self._tell_steps(self.steps - at_the_end)
        absences, self.told = self.rehearsal.absences.found[self.told :], len(self.rehearsal.absences.found)
        for each in absences:
            path = self._path(each.file)
            self.job.record(NotSimulated(name=each.name, why=each.why, path=path, line=each.line, ends=each.ends))

    def _tell_steps(self, ended: int) -> None:
        if ended < 1:  # a job of one step tells that one
            ended = self.steps
        warm = WARM if ended > WARM else min(1, ended - 1)
        counted = self.rehearsal.counted(self.first + warm, self.first + ended)
        waits, moves = map(self._regular_first, (counted.waits, counted.transfers))
        figures = {"steps": counted.steps, "kernels": counted.kernels, "nanoseconds": counted.nanoseconds}
        self.job.record(RehearsedSteps(**figures, waits=waits[:MOST], transfers=moves[:MOST]))

    def _regular_first(self, found: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Rows for the lines of FOUND: what all steps do before what one does, as a checkpoint."""
        ordered = sorted(found, key=lambda each: (-each.in_steps, -each.times))
        return [(self._path(each.file), *each[1:]) for each in ordered]

    def _path(self, file: str) -> str:
        """As the user would write it; of an installed package the last folders."""
        if not file:
            return ""
        return self.job.path_of(file) or "/".join(Path(file).parts[-3:])

    def _hold(self, holder: str, values: Any) -> None:
        self.rehearsal.hold(holder, _tensors(values))


def _tensors(values: Any) -> Iterator[Any]:
    """Those of a sharded tensor that are here; without those that have no memory of their own."""
    import torch

    for each in values:
        tensor = getattr(each, "_local_tensor", each)
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
            yield tensor
