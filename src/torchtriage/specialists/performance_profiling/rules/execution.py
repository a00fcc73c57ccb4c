"""What an execution of the program shows about settings that cost time."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain
from torchtriage.examine.source.execution.values import truth


@detector("source/debug-left-on")
def debug_left_on(trainings: Trainings) -> Iterator[Sighting]:
    """Anomaly detection is on for the whole training."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            mode = call.arguments[0] if call.arguments else call.keywords.get("mode", True)
            if call.name == "torch.autograd.set_detect_anomaly" and not call.loops and truth(mode) is True:
                yield call.spot, "every backward pass checks every operation for NaN"

    yield from certain(trainings, find)


@detector("source/benchmark-with-deterministic")
def benchmark_with_deterministic(trainings: Trainings) -> Iterator[Sighting]:
    """Both `cudnn.deterministic` and `cudnn.benchmark` are set."""

    def find(training: Training) -> Facts:
        last = {each.name: each for each in training.of(events.Setting)}
        both = [last.get(f"torch.backends.cudnn.{name}") for name in ("benchmark", "deterministic")]
        if all(each is not None and truth(each.value) is True for each in both) and both[0] is not None:
            yield both[0].spot, "deterministic is set, too: which algorithm benchmark chooses differs from run to run"

    yield from certain(trainings, find)
