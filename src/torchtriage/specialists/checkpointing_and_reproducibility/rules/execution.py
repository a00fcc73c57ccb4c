"""What an execution of the program shows about states that are kept, saved and taken over again."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, shown
from torchtriage.examine.source.execution.values import Object, Operation, Value


@detector("source/best-state-aliased")
def best_state_aliased(trainings: Trainings) -> Iterator[Sighting]:
    """A state that is taken over later is kept by reference: the steps in between have changed it."""

    def find(training: Training) -> Facts:
        for restore in training.of(events.Restore):
            state = restore.state
            if isinstance(state, Object) and state.kind == "state" and state.state["of"] is restore.part:
                after = training.executor.events[state.state["at"] :]
                steps = [each for each in after if isinstance(each, events.OptimizerStep)]
                if steps and state.spot is not None and after.index(steps[0]) < after.index(restore):
                    yield (
                        state.spot,
                        f"line {restore.spot.line} takes it over when the steps in between have changed it",
                    )

    yield from shown(trainings, find)


@detector("source/whole-object-saved")
def whole_object_saved(trainings: Trainings) -> Iterator[Sighting]:
    """torch.save is given a module or an optimizer itself."""

    def find(training: Training) -> Facts:
        for save in training.of(events.Save):
            whole = [each for each in _parts(save.saved) if isinstance(each, Object) and each.kind in _WHOLE]
            if whole:
                yield save.spot, f"a {whole[0].kind} is pickled with its class, and needs the same code to be loaded"

    yield from certain(trainings, find, where_reached=True)


_WHOLE = frozenset({"module", "wrapper", "optimizer", "scheduler", "scaler"})


@detector("source/state-dict-not-called")
def state_dict_not_called(trainings: Trainings) -> Iterator[Sighting]:
    """The method state_dict itself is saved, or a path is given where a state belongs."""

    def find(training: Training) -> Facts:
        for save in training.of(events.Save):
            if any(isinstance(each, Operation) and each.name == "state_dict" for each in _parts(save.saved)):
                yield save.spot, "state_dict is named here and not called"
        for restore in training.of(events.Restore):
            if isinstance(restore.state, str):
                yield restore.spot, f"load_state_dict gets the path {restore.state!r}, and no state"

    yield from certain(trainings, find, where_reached=True)


@detector("source/checkpoint-incomplete")
def checkpoint_incomplete(trainings: Trainings) -> Iterator[Sighting]:
    """A checkpoint holds the optimizer's state and leaves out that of the scheduler, which is taken over nowhere."""

    def find(training: Training) -> Facts:
        schedulers = {id(each.scheduler): each.scheduler for each in training.of(events.SchedulerStep)}
        restored = {id(each.part) for each in training.of(events.Restore)}
        for save in training.of(events.Save):
            saved = {
                id(each.state["of"]) for each in _parts(save.saved) if isinstance(each, Object) and each.kind == "state"
            }
            for key, scheduler in schedulers.items():
                optimizer = scheduler.argument("optimizer", 0)
                is_resumed = id(optimizer) in saved and id(optimizer) in restored
                if is_resumed and key not in saved and key not in restored:
                    yield save.spot, f"the scheduler of line {scheduler.spot.line if scheduler.spot else 0} starts anew"

    yield from certain(trainings, find, where_reached=True)


def _parts(value: Value) -> Iterator[Value]:
    """VALUE, and the values of a dict, a list or a tuple."""
    yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in inside:
        yield from _parts(each)
